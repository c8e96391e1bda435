//! Waiting for something else than a lock.

mod barrier;
mod condvar;
mod inside;
mod once;
mod together;

pub use barrier::Barrier;
pub use condvar::{Condvar, End, Entry};
pub use inside::{Inside, Visit};
pub use once::Once;
pub use together::CrowdForm;

pub use crate::lock::shfl::{MAX_PERMITS, Semaphore, TooManyPermits};
