//! Search for a failing seed: `Runner::find` and `Runner::explore`.

use std::env::{self, VarError};
use std::rc::Rc;
use std::thread;

use super::{Failure, Pool, Runner};

/// The environment variable that gives the only seed to try.
const SEED: &str = "ANTIPHON_SEED";

impl Runner {
    /// Runs the closure once with each seed until it fails. Returns `None` if no run fails.
    pub fn find(
        &self,
        seeds: impl IntoIterator<Item = u64>,
        closure: impl Fn(Pool) + 'static,
    ) -> Option<Failure> {
        self.find_of(seeds, &Rc::new(closure))
    }

    fn find_of(
        &self,
        seeds: impl IntoIterator<Item = u64>,
        closure: &Rc<impl Fn(Pool) + 'static>,
    ) -> Option<Failure> {
        seeds.into_iter().find_map(|seed| self.once(seed, closure).err())
    }

    fn once(
        &self,
        seed: u64,
        closure: &Rc<impl Fn(Pool) + 'static>,
    ) -> Result<super::Run<()>, Failure> {
        let closure = Rc::clone(closure);
        self.run(seed, move |pool| closure(pool))
    }

    /// Like [`find`](Self::find), for tests. If the environment variable `ANTIPHON_SEED` is set,
    /// only that seed is run, and its schedule is printed to the standard error.
    ///
    /// # Panics
    ///
    /// If a run fails. The message has its seed, its schedule, and the command that replays it.
    pub fn explore(&self, seeds: impl IntoIterator<Item = u64>, closure: impl Fn(Pool) + 'static) {
        let closure = Rc::new(closure);
        let failure = match only_seed() {
            None => self.find_of(seeds, &closure),
            Some(seed) => match self.once(seed, &closure) {
                Ok(run) => {
                    eprint!("seed {seed} does not fail:\n{}", run.schedule);
                    None
                }
                Err(failure) => {
                    eprint!("{}", failure.schedule);
                    Some(failure)
                }
            },
        };
        if let Some(failure) = failure {
            let replay = match self.once(failure.seed, &closure) {
                Err(again) if again == failure => replay(failure.seed),
                _ => ELSE.to_owned(),
            };
            panic!("{failure}{replay}");
        }
    }
}

const ELSE: &str = "Once more it went another way: the closure depends on something else than its \
    seed, such as the order of a HashMap, real time, or what an earlier run has left in a static.";

/// Returns the command that runs this seed again.
fn replay(seed: u64) -> String {
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("NAME");
    format!("replay: {SEED}={seed} cargo test {test} -- --exact --nocapture")
}

fn only_seed() -> Option<u64> {
    match env::var(SEED) {
        Err(VarError::NotPresent) => None,
        Ok(seed) if seed.parse::<u64>().is_ok() => seed.parse().ok(),
        other => panic!("{SEED} takes the seed of a failure, a number from 0 on, not {other:?}"),
    }
}
