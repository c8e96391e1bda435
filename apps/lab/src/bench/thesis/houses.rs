//! The runners of the mixed workload: one policy for all parts, or a suitable one for each.
//!
//! | subject | where the parts run |
//! |---|---|
//! | a policy | all in one pool of it |
//! | `pools` | a pool for each, with equally many threads, scheduled by the kernel |
//! | `pools-nice` | the same, and the threads of options are nice to the others (`nice` 10) |
//! | `two-pools` | options in a pool with one worker less, the others in a pool with one worker |

use std::sync::{Arc, Barrier};

use antiphon::fiber::STACK_BYTES;

use crate::bench::mix::conference::{Host, Part};
use crate::bench::mix::hosts::{AnyPool, POLICIES, Parts, pools};
use crate::bench::pools::policies::Ranks;
use crate::bench::pools::runner::{Kind, Runner};

/// The subjects that are not one policy.
pub const COMPOSED: [&str; 3] = ["pools", NICE, "two-pools"];

const NICE: &str = "pools-nice";
/// Nice value of the threads of options in `pools-nice`.
const NICENESS: libc::c_int = 10;

/// Returns the names of all our runners.
pub fn names() -> Vec<&'static str> {
    POLICIES.into_iter().chain(COMPOSED).collect()
}

/// The pools that run the parts of the workload.
pub struct Houses {
    /// The pool of packets.
    pub packets: House,
    /// The pool of options.
    pub options: House,
    /// The pool of the parts of conferences.
    pub frames: House,
}

/// A pool, and the meaning of ranks to its policy.
#[derive(Clone)]
pub struct House {
    pool: Arc<AnyPool>,
    ranks: Ranks,
}

impl Houses {
    /// Starts the pools of a subject, with room for `parts` parts of conferences.
    ///
    /// # Errors
    ///
    /// If no such subject exists, or the pools can't be started.
    pub fn start(subject: &str, workers: usize, parts: usize) -> Result<Self, String> {
        let parts = Parts { count: parts, stack_bytes: STACK_BYTES };
        let house = |policy: &str, threads: usize| {
            let (mut pools, ranks) = pools(policy, &[threads], parts)?;
            let pool = Arc::new(pools.remove(0));
            Ok::<_, String>(House { pool, ranks })
        };
        let few = workers.saturating_sub(1).max(1);
        Ok(match subject {
            "pools" | NICE => {
                let options = house("adaptive/steal-half", workers)?;
                if subject == NICE {
                    options.be_nice(workers);
                }
                let packets = house("lifo/shallow", workers)?;
                Self { packets, options, frames: house("staged", workers)? }
            }
            "two-pools" => {
                let urgent = house("staged", 1)?;
                let options = house("adaptive/steal-half", few)?;
                Self { packets: urgent.clone(), options, frames: urgent }
            }
            policy => {
                let all = house(policy, workers)?;
                Self { packets: all.clone(), options: all.clone(), frames: all }
            }
        })
    }
}

impl House {
    /// Sets the nice value of its `threads` threads; each is kept in one task until all are done.
    fn be_nice(&self, threads: usize) {
        let all = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            let all = all.clone();
            drop(self.pool.spawn(move || {
                // SAFETY: no memory is passed; 0 is the calling thread. It fails for a thread whose
                // nice value is already higher, which keeps it.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
                // The barrier blocks the thread, not the fiber, so each task has its own thread.
                all.wait();
            }));
        }
        all.wait();
    }
}

impl Runner for House {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.pool.spawn(work));
    }

    fn spawn_as(&'static self, kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.ranks.spawn(&self.pool, kind, work);
    }
}

impl Host for House {
    fn run(&'static self, _: u64, _: Part, kind: Kind, work: impl FnOnce() + Send + 'static) {
        self.spawn_as(kind, work);
    }
}
