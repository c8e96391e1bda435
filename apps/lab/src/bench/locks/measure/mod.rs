//! The measuring engine: one lock, one workload, one repetition, in a process of its own.
//!
//! A process for each repetition keeps subjects apart: what one has switched on (the light unlock),
//! learned (how crowded the machine is) or broken stays with it; a process that never made a thread
//! can be had; and a lock that hangs is a process that can be killed. What is measured here leaves
//! as one JSON line and is put together elsewhere.

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
use crate::bench::ticks::Ticks;

/// The work of the threads of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// One thread locks and unlocks; another one exists.
    Uncontended,
    /// One thread locks and unlocks, in a process that never made another.
    UncontendedAlone,
    /// One thread reads, of a lock that can be shared; another one exists.
    UncontendedRead,
    /// One thread writes, of a lock that can be shared; another one exists.
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
    /// All threads but one read, for 5 µs each time, and come again as soon as they have left; the
    /// first one writes.
    Continuous,
    /// 30 threads add 1 to one counter, 100 000 times each: how long that takes.
    Justine,
}

impl Case {
    /// Long critical sections: waiters are judged by the CPU time that they take meanwhile.
    pub const LONG: [Self; 4] =
        [Self::HundredMicroseconds, Self::Millisecond, Self::TenMilliseconds, Self::Sleep];

    /// Its name in reports and on the command line.
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

    /// Whether its threads meet at the lock until the time is up: then more work is better.
    pub fn contended(self) -> bool {
        matches!(self, Self::Short | Self::FiveMicroseconds | Self::Continuous) || self.is_long()
    }

    /// Whether it is one of [`LONG`](Self::LONG).
    pub fn is_long(self) -> bool {
        Self::LONG.contains(&self)
    }

    /// How long the critical section computes, beside its two lines, in nanoseconds.
    pub fn stay_ns(self) -> u32 {
        match self {
            Self::FiveMicroseconds | Self::Continuous => 5_000,
            Self::HundredMicroseconds => 100_000,
            Self::Millisecond => 1_000_000,
            Self::TenMilliseconds => 10_000_000,
            _ => 0,
        }
    }

    /// Whether a lock is judged by the work done in this case. Where readers never leave it is not,
    /// because a lock that starves the writer does the most work.
    pub fn is_judged_by_work(self) -> bool {
        matches!(self, Self::Short | Self::FiveMicroseconds)
    }
}

/// One repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The family of the lock.
    pub family: Family,
    /// The lock's name.
    pub subject: String,
    /// The workload.
    pub case: Case,
    /// How many of a hundred critical sections only read; `None` for all that have no mixture.
    pub reads: Option<u32>,
    /// Threads that meet at the lock.
    pub threads: usize,
    /// How long to measure.
    pub seconds: f64,
    /// The rate of the counter that times waits.
    pub ticks: Ticks,
}

/// The figures of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Nanoseconds of a lock and an unlock.
    Uncontended {
        /// The median of the batches of this repetition.
        ns_per_op: f64,
    },
    /// The figures of a contended repetition.
    Contended(Box<Contended>),
    /// The costs of the work of [`Case::Justine`].
    Justine(Spent),
}

/// The result of a repetition. A violation means that another thread was in beside a writer.
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
