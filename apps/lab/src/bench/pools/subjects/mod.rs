//! The runners of tasks: our pools, and the peers in Rust.

pub mod ours;
mod peers;

use super::figures::Counted;
use super::policies;
use super::runner::Runner;

/// Parameters of a subject.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Number of threads that run tasks.
    pub workers: usize,
    /// Capacity of each worker's queue, in tasks.
    pub capacity: usize,
    /// Whether the recording of our pool is wanted.
    pub trace: bool,
}

/// An operation on a subject of any type.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Runs the operation; `counted` returns what the subject has counted, if it counts.
    fn visit<R: Runner>(
        self,
        runner: &'static R,
        counted: &dyn Fn() -> Option<Counted>,
    ) -> Self::Output;
}

/// Visits the subject `name`.
///
/// # Errors
///
/// If no such subject exists, or it can't start its threads.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    if policies::names().contains(&name.strip_suffix(ours::STAGES).unwrap_or(name)) {
        ours::with(name, setup, visitor)
    } else {
        peers::with(name, setup, visitor)
    }
}

/// Leaks the value; the process ends soon.
pub fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
