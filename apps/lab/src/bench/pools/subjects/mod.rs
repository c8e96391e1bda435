//! The runners of tasks: our pools, and the peers in Rust.

mod ours;
mod peers;

use super::figures::Counted;
use super::policies;
use super::runner::Runner;

/// How a subject is to be set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Threads that run tasks.
    pub workers: usize,
    /// The number of tasks that each has room for.
    pub capacity: usize,
    /// Whether what a pool of ours has recorded is wanted.
    pub trace: bool,
}

/// Work that takes a subject of whatever type.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Does it; `counted` is what the subject has counted, if it has.
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
/// If there is none, or it can't start its threads.
pub fn with<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Output, String> {
    if policies::names().contains(&name) {
        ours::with(name, setup, visitor)
    } else {
        peers::with(name, setup, visitor)
    }
}

/// The process ends soon.
pub fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
