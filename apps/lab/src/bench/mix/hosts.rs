//! Hosts of conferences: one or several pools of fibers with a policy, or threads.
//!
//! | subject | what runs where |
//! |---|---|
//! | `POLICY` | everything in one pool |
//! | `POLICY+silos` | a conference in one of ten pools, or of `--silos`, which share the workers |
//! | `POLICY+stages` | receivers, mixers, senders have a pool each: half, a fifth, three tenths |
//! | `threads` | a thread for each receiver and mixer; a mixer sends, too |
//!
//! Each pool has at least one worker, so there may be more threads than workers: [`threads`]
//! returns how many. The numbers are the dissertation's: 10 schedulers of 10 domains, and pools of
//! 50, 20, 30.

use std::io;
use std::sync::LazyLock;

use antiphon::pool::{
    Pool,
    policy::{BoxedPolicy, Policy},
};
use antiphon_linux::Linux;

use super::conference::{Host, Part};
use crate::bench::pools::policies::{self, Ranks, Take};
use crate::bench::pools::runner::Kind;
use crate::bench::pools::subjects::ours::STAGES;

/// The peer that is not a pool.
pub const THREADS: &str = "threads";
/// Our policies.
pub const POLICIES: [&str; 10] = [
    "fifo/steal-half",
    "fifo/steal-one",
    "lifo/steal-half",
    "lifo/steal-one",
    "lifo/shallow",
    "lifo-slot/steal-half",
    "adaptive/steal-half",
    "staged",
    "edf",
    "levels",
];
const SILOS: &str = "+silos";
/// Default number of pools of a host with silos.
pub const SILO_COUNT: u16 = 10;
/// Share of the workers for each part, in tenths.
const SHARES: [usize; 3] = [5, 2, 3];
/// Capacity of a worker's queue, in tasks.
const ROOM: usize = 1 << 16;
/// Stack of a thread that runs a part, in stacks of a fiber.
const THREAD_STACKS: usize = 2;

/// Returns the names of all our hosts.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let composed = |how: &'static str| {
            POLICIES.into_iter().map(move |policy| &*format!("{policy}{how}").leak())
        };
        POLICIES.into_iter().chain(composed(SILOS)).chain(composed(STAGES)).collect()
    });
    &NAMES
}

/// An operation on a host of any type.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Runs the operation on `host`.
    fn visit<H: Host>(self, host: &'static H) -> Self::Output;
}

/// Limits on the parts that exist at once.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Maximal number of parts.
    pub count: usize,
    /// Stack of each part, in bytes.
    pub stack_bytes: usize,
}

/// Number of workers, and of the pools that share them in a host with silos.
#[derive(Clone, Copy)]
pub struct Size {
    /// Number of workers.
    pub workers: usize,
    /// Number of pools.
    pub silos: usize,
}

/// Visits the host `name`, which has this size and room for these parts.
///
/// # Errors
///
/// If no such host exists, or it can't start its threads.
pub fn with<V: Visitor>(
    name: &str,
    size: Size,
    parts: Parts,
    visitor: V,
) -> Result<V::Output, String> {
    if name == THREADS {
        return Ok(visitor.visit(Box::leak(Box::new(Threads(parts.stack_bytes)))));
    }
    let (policy, how) = composed(name);
    let (pools, ranks) = pools(policy, &how.threads(size), parts)?;
    // The process ends soon.
    Ok(visitor.visit(Box::leak(Box::new(Pools { pools, ranks, how }))))
}

/// Returns how many threads the host `name` has, with this size and `parts` receivers and mixers.
pub fn threads(name: &str, size: Size, parts: usize) -> usize {
    if name == THREADS { parts } else { composed(name).1.threads(size).iter().sum() }
}

/// Returns the policy, and how pools share the work.
fn composed(name: &str) -> (&str, How) {
    match name.split_once('+') {
        Some((policy, _)) if name.ends_with(SILOS) => (policy, How::Silos),
        Some((policy, _)) => (policy, How::Stages),
        None => (name, How::One),
    }
}

/// How pools share the work.
#[derive(Clone, Copy)]
enum How {
    One,
    Silos,
    Stages,
}

impl How {
    /// Returns the number of threads of each pool.
    fn threads(self, Size { workers, silos }: Size) -> Vec<usize> {
        match self {
            Self::One => vec![workers],
            // Distributed as evenly as possible.
            Self::Silos => (0..silos).map(|pool| ((workers + pool) / silos).max(1)).collect(),
            Self::Stages => SHARES.map(|share| (workers * share / 10).max(1)).to_vec(),
        }
    }
}

/// A pool of any policy, behind one type.
pub type AnyPool = Pool<BoxedPolicy<Linux>>;

/// Makes pools of fibers with a policy, one for each element of `threads`, with room for these
/// parts.
///
/// # Errors
///
/// If no such policy exists, or the pools can't be started.
pub fn pools(
    policy: &str,
    threads: &[usize],
    parts: Parts,
) -> Result<(Vec<AnyPool>, Ranks), String> {
    let workers = threads.iter().sum();
    let pools = policies::with(policy, workers, ROOM, Start { threads, parts })?;
    pools.map_err(|error| format!("can't start its pools: {error}"))
}

struct Start<'a> {
    threads: &'a [usize],
    parts: Parts,
}

impl Take for Start<'_> {
    type Output = io::Result<(Vec<AnyPool>, Ranks)>;

    fn take<Y: Policy<Linux> + 'static>(self, make: impl Fn() -> Y, ranks: Ranks) -> Self::Output {
        let start = |(number, &threads): (usize, &usize)| {
            let name = format!("pool-{number}");
            // All parts are spawned from outside, before any has ended.
            let builder =
                Pool::builder().threads(threads).name(name).room(self.parts.count.max(64));
            // SAFETY: the code of the parts sets no thread-local temporarily; the only one that
            // they make, for the tally, does not wait while it is made.
            unsafe { builder.fibers(self.parts.stack_bytes) }.build_with(BoxedPolicy::new(make()))
        };
        let pools = self.threads.iter().enumerate().map(start).collect::<io::Result<Vec<_>>>()?;
        Ok((pools, ranks))
    }
}

/// Pools of fibers.
struct Pools {
    pools: Vec<AnyPool>,
    ranks: Ranks,
    how: How,
}

impl Host for Pools {
    fn run(
        &'static self,
        number: u64,
        part: Part,
        kind: Kind,
        work: impl FnOnce() + Send + 'static,
    ) {
        let pool = match self.how {
            How::One => 0,
            How::Silos => number as usize % self.pools.len(),
            How::Stages => part as usize,
        };
        self.ranks.spawn(&self.pools[pool], kind, work);
    }
}

/// A thread for each part, as in FreeSWITCH; fibers would need as large a stack.
struct Threads(usize);

impl Host for Threads {
    fn run(&'static self, _: u64, part: Part, _: Kind, work: impl FnOnce() + Send + 'static) {
        if part == Part::Send {
            return work();
        }
        let thread = std::thread::Builder::new().stack_size(THREAD_STACKS * self.0);
        // Without the thread, the others would wait for ever.
        drop(thread.spawn(work).expect("a thread for each leg and mixer"));
    }
}

#[cfg(test)]
mod tests {
    use antiphon::fiber::STACK_BYTES;

    use super::*;

    struct Nothing;

    impl Visitor for Nothing {
        type Output = ();

        fn visit<H: Host>(self, _: &'static H) {}
    }

    /// Checks the thread counts that a host names, and the pools that it starts.
    #[test]
    fn each_pool_has_a_thread_and_silos_share_the_workers() {
        for (name, workers, silos, said) in [
            ("edf", 2, 10, 2),
            ("edf+silos", 2, 10, 10),
            ("edf+silos", 2, 2, 2),
            ("edf+silos", 15, 10, 15),
            ("edf+silos", 3, 2, 3),
            ("edf+stages", 2, 10, 3),
            ("edf+stages", 20, 10, 20),
        ] {
            let size = Size { workers, silos };
            assert_eq!(threads(name, size, 6), said, "{name}, {workers} workers");
            let (policy, how) = composed(name);
            let parts = Parts { count: 6, stack_bytes: STACK_BYTES };
            let (pools, _) = pools(policy, &how.threads(size), parts).expect("pools");
            assert_eq!(pools.iter().map(|pool| pool.threads()).sum::<usize>(), said, "{name}");
        }
        let (size, parts) = (Size { workers: 2, silos: 10 }, Parts { count: 6, stack_bytes: 1 });
        assert_eq!(threads(THREADS, size, 6), 6);
        assert!(with("none", size, parts, Nothing).is_err());
    }
}
