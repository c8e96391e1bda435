//! The measuring engine: one lock, one workload, one repetition, in a process of its own.
//!
//! A process for each repetition keeps subjects apart: what a subject has switched on (the light
//! unlock), learned (how crowded the machine is) or broken stays in its process; a process that
//! never made a thread is available; and a lock that hangs is a process that can be killed. The
//! figures leave as one JSON line, and are combined elsewhere.

mod contended;
mod figures;
mod justine;
mod tally;
mod uncontended;

use std::hint::black_box;

use serde::{Deserialize, Serialize};

pub use figures::{Contended, Side};
pub use justine::{LIMIT_S as JUSTINE_LIMIT_S, Spent, THREADS as JUSTINE_THREADS};

use super::subjects::{Family, Subject, Visitor};
use crate::ticks::Ticks;

/// The work of the threads of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// One thread locks and unlocks; a second thread exists.
    Uncontended,
    /// One thread locks and unlocks, in a process that never made another.
    UncontendedAlone,
    /// One thread reads under a readers-writer lock; a second thread exists.
    UncontendedRead,
    /// One thread writes under a readers-writer lock; a second thread exists.
    UncontendedWrite,
    /// Many threads; the critical section touches two cache lines.
    Short,
    /// Many threads; the critical section takes 5 µs.
    #[serde(rename = "5us")]
    FiveMicroseconds,
    /// Many threads; the critical section takes 100 µs.
    #[serde(rename = "100us")]
    HundredMicroseconds,
    /// Many threads; the critical section takes 1 ms.
    #[serde(rename = "1ms")]
    Millisecond,
    /// Many threads; the critical section takes 10 ms.
    #[serde(rename = "10ms")]
    TenMilliseconds,
    /// Many threads; the owner sleeps for 1 ms in the critical section.
    Sleep,
    /// All threads but the first read, for 5 µs each time, and return as soon as they have left;
    /// the first one writes.
    Continuous,
    /// 30 threads add 1 to one counter, 100 000 times each; the total time is measured.
    Justine,
}

impl Case {
    /// Long critical sections: waiters are judged by the CPU time that they use meanwhile.
    pub const LONG: [Self; 4] =
        [Self::HundredMicroseconds, Self::Millisecond, Self::TenMilliseconds, Self::Sleep];

    /// Returns its name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::UncontendedAlone => "uncontended-alone",
            Self::UncontendedRead => "uncontended-read",
            Self::UncontendedWrite => "uncontended-write",
            Self::Short => "short",
            Self::FiveMicroseconds => "5us",
            Self::HundredMicroseconds => "100us",
            Self::Millisecond => "1ms",
            Self::TenMilliseconds => "10ms",
            Self::Sleep => "sleep",
            Self::Continuous => "continuous",
            Self::Justine => "justine",
        }
    }

    /// Returns whether its threads compete for the lock until the time is up, so that more work is
    /// better.
    pub fn contended(self) -> bool {
        matches!(self, Self::Short | Self::FiveMicroseconds | Self::Continuous) || self.is_long()
    }

    /// Returns whether it is one of [`LONG`](Self::LONG).
    pub fn is_long(self) -> bool {
        Self::LONG.contains(&self)
    }

    /// Returns how long the critical section computes, besides accessing its two lines, in
    /// nanoseconds.
    pub fn stay_ns(self) -> u32 {
        match self {
            Self::FiveMicroseconds | Self::Continuous => 5_000,
            Self::HundredMicroseconds => 100_000,
            Self::Millisecond => 1_000_000,
            Self::TenMilliseconds => 10_000_000,
            _ => 0,
        }
    }

    /// Returns whether a lock is judged by the work done in this case. Where readers never leave it
    /// is not, because a lock that starves the writer does the most work.
    pub fn is_judged_by_work(self) -> bool {
        matches!(self, Self::Short | Self::FiveMicroseconds)
    }
}

/// The order for one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The family of the lock.
    pub family: Family,
    /// The lock's name.
    pub subject: String,
    /// The workload.
    pub case: Case,
    /// Percentage of critical sections that only read; `None` for cases without a mixture.
    pub reads: Option<u32>,
    /// Number of threads that use the lock.
    pub threads: usize,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// The rate of the counter that times waits.
    pub ticks: Ticks,
}

/// The figures of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Uncontended cost.
    Uncontended {
        /// Nanoseconds per lock and unlock: the median of the batches of this repetition.
        ns_per_op: f64,
    },
    /// The figures of a contended repetition.
    Contended(Box<Contended>),
    /// Costs of the work of [`Case::Justine`].
    Justine(Spent),
}

/// The result of a repetition. A violation means that another thread was inside together with a
/// writer.
pub type Outcome = crate::bench::rounds::Outcome<Figures>;

/// Carries out one repetition in this process.
///
/// # Errors
///
/// One line, if there is no such lock.
pub fn measure(order: &Order) -> Result<Outcome, String> {
    let unknown = || format!("no lock '{}'", order.subject);
    order.family.visit(&order.subject, Repetition(order)).ok_or_else(unknown)
}

struct Repetition<'a>(&'a Order);

impl Visitor for Repetition<'_> {
    type Output = Outcome;

    fn visit<S: Subject>(self) -> Outcome {
        let lock = match S::new() {
            Ok(lock) => lock,
            Err(missing) => return Outcome::Missing(missing),
        };
        match self.0.case {
            Case::Uncontended | Case::UncontendedWrite => {
                uncontended::beside_a_thread(self.0, || black_box(&lock).hold(|| ()))
            }
            Case::UncontendedRead => {
                uncontended::beside_a_thread(self.0, || black_box(&lock).share(|| ()))
            }
            Case::UncontendedAlone => uncontended::alone(self.0, || black_box(&lock).hold(|| ())),
            Case::Justine => justine::run(lock),
            _ => contended::run(lock, self.0),
        }
    }
}
