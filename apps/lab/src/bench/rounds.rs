//! Subjects that take turns.
//!
//! Within a cell, all subjects are measured in each round, in a new order each time, so that
//! whatever else happens on the machine meets all alike. The first round warms caches, frequencies
//! and page tables; it is rejected.

use std::fmt::Display;

use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::neighbours::{Load, Neighbours};
use super::others::Moment;

/// Under what conditions something is measured.
pub trait Cell: Copy + PartialEq + Display {
    /// What else the machine has to do.
    fn load(&self) -> Load;
}

/// The result of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<F> {
    /// The figures, because it was measured.
    Figures(F),
    /// This machine can't have it: what is missing, and how to get it.
    Missing(String),
    /// The subject broke its promise.
    Violation(String),
}

impl<F> Outcome<F> {
    /// The result with other figures.
    pub fn map<G>(self, of: impl FnOnce(F) -> G) -> Outcome<G> {
        match self {
            Self::Figures(figures) => Outcome::Figures(of(figures)),
            Self::Missing(what) => Outcome::Missing(what),
            Self::Violation(what) => Outcome::Violation(what),
        }
    }
}

/// The subjects that take turns, and how often.
pub struct Rounds {
    /// Ours.
    pub subjects: Vec<&'static str>,
    /// The peers beside ours; ratios are to the first.
    pub peers: Vec<&'static str>,
    /// Repetitions that count.
    pub repetitions: usize,
    /// The seed of the order of subjects.
    pub seed: u64,
}

/// The measurements of one subject in one cell.
pub struct Measured<C, F> {
    /// The conditions.
    pub cell: C,
    /// Its name.
    pub subject: &'static str,
    /// Figures by repetition, the rejected one left out; shorter if there was trouble.
    pub figures: Vec<F>,
    /// CPUs that others used meanwhile, by repetition.
    pub others: Vec<f64>,
    /// Why there is no more: missing, broken, without end.
    pub trouble: Option<Trouble>,
}

/// Why a subject could not be measured.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// This machine can't have it.
    Missing(String),
    /// The subject failed.
    Failed(String),
}

impl Rounds {
    /// Ours and the peers.
    pub fn all_subjects(&self) -> impl Iterator<Item = &'static str> {
        self.subjects.iter().chain(&self.peers).copied()
    }

    /// How many repetitions `cells` cells need in all.
    pub fn steps(&self, cells: usize) -> usize {
        cells * self.all_subjects().count() * (self.repetitions + 1)
    }

    /// Measures everything by `repeat`, which says in one line what hindered it.
    ///
    /// # Errors
    ///
    /// If this command can't start processes. A subject that fails is no error here, but trouble in
    /// its row.
    pub fn carry_out<C: Cell, F>(
        &self,
        cells: &[C],
        progress: &mut Progress,
        repeat: impl Fn(C, &'static str) -> Result<Outcome<F>, String>,
    ) -> Result<Vec<Measured<C, F>>, Failure> {
        let mut random = Random(self.seed);
        let mut all = Vec::new();
        for &cell in cells {
            let neighbours = Neighbours::of(cell.load())
                .map_err(|error| Failure::measured(format!("can't start a neighbour: {error}")))?;
            let mut measured: Vec<_> =
                self.all_subjects().map(|subject| Measured::new(cell, subject)).collect();
            for round in 0..=self.repetitions {
                let mut order: Vec<_> = (0..measured.len()).collect();
                random.shuffle(&mut order);
                for index in order {
                    let one = &mut measured[index];
                    if one.trouble.is_none() {
                        one.repeat(round > 0, &repeat);
                    }
                    progress.step(&format!("{cell}: {}", one.subject));
                }
            }
            drop(neighbours);
            all.extend(measured);
        }
        Ok(all)
    }
}

impl<C: Cell, F> Measured<C, F> {
    fn new(cell: C, subject: &'static str) -> Self {
        Self { cell, subject, figures: Vec::new(), others: Vec::new(), trouble: None }
    }

    fn repeat(
        &mut self,
        counts: bool,
        repeat: impl Fn(C, &'static str) -> Result<Outcome<F>, String>,
    ) {
        let before = Moment::now();
        let outcome = repeat(self.cell, self.subject);
        // The neighbours that we have started ourselves are no news.
        if self.cell.load() == Load::Idle {
            self.others.extend(before.and_then(|moment| moment.others_since()));
        }
        match outcome {
            Ok(Outcome::Missing(what)) => self.trouble = Some(Trouble::Missing(what)),
            Ok(Outcome::Violation(what)) => {
                let what = format!("{} ({}): {what}", self.subject, self.cell);
                self.trouble = Some(Trouble::Failed(what));
            }
            Ok(Outcome::Figures(figures)) if counts => self.figures.push(figures),
            Ok(Outcome::Figures(_)) => {}
            Err(what) => {
                let what = format!("{} ({}): {what}", self.subject, self.cell);
                self.trouble = Some(Trouble::Failed(what));
            }
        }
    }

    /// CPUs that others used on average.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.others.iter().copied())
    }
}

impl Trouble {
    /// The key and the words in JSON.
    pub fn json(&self) -> (&'static str, &str) {
        match self {
            Self::Missing(what) => ("skipped", what),
            Self::Failed(what) => ("failed", what),
        }
    }

    /// The failures among these, in one line; subjects that this machine can't have are none.
    pub fn failures<'a>(all: impl Iterator<Item = &'a Self>) -> Option<String> {
        let failed = all.filter_map(|trouble| match trouble {
            Self::Failed(what) => Some(what.as_str()),
            Self::Missing(_) => None,
        });
        let failed: Vec<_> = failed.collect();
        (!failed.is_empty()).then(|| failed.join("; "))
    }
}

/// The mean of what there is.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fmt;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Place(u32);

    impl Cell for Place {
        fn load(&self) -> Load {
            Load::Idle
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "place {}", self.0)
        }
    }

    fn rounds() -> Rounds {
        Rounds { subjects: vec!["ours"], peers: vec!["one", "other"], repetitions: 3, seed: 1 }
    }

    #[test]
    fn all_take_turns_and_the_first_round_does_not_count() {
        let rounds = rounds();
        let cells = [Place(1), Place(2)];
        let calls = RefCell::new(Vec::new());
        let mut progress = Progress::new(rounds.steps(cells.len()));
        let measured = rounds.carry_out(&cells, &mut progress, |cell, subject| {
            calls.borrow_mut().push((cell, subject));
            Ok(Outcome::Figures(calls.borrow().len()))
        });
        let Ok(measured) = measured else { panic!("nothing is started") };
        assert_eq!(calls.borrow().len(), rounds.steps(cells.len()));
        for round in calls.borrow().chunks(3) {
            for subject in rounds.all_subjects() {
                assert!(round.iter().any(|call| call.1 == subject), "{subject} in {round:?}");
            }
        }
        assert_eq!(measured.len(), 6);
        for one in &measured {
            let first = if one.cell == Place(1) { 3 } else { 15 };
            assert!(one.figures.len() == 3 && one.figures.iter().all(|&call| call > first));
        }
    }

    #[test]
    fn who_is_in_trouble_is_asked_no_more() {
        let calls = RefCell::new(0);
        let measured =
            rounds().carry_out(&[Place(7)], &mut Progress::new(1), |_, subject| match subject {
                "ours" => {
                    *calls.borrow_mut() += 1;
                    Err("it hangs".to_owned())
                }
                "one" => Ok(Outcome::Missing("not here".to_owned())),
                _ => Ok(Outcome::Figures(())),
            });
        let Ok(measured) = measured else { panic!("nothing is started") };
        assert_eq!(calls.into_inner(), 1);
        let troubles = || measured.iter().filter_map(|one| one.trouble.as_ref());
        assert_eq!(Trouble::failures(troubles()), Some("ours (place 7): it hangs".to_owned()));
        assert_eq!(troubles().count(), 2);
    }
}
