//! Waiting for something else than a lock.

mod condvar;

pub use condvar::{Condvar, End, Entry};
