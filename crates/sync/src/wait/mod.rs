//! Primitives that wait for something other than a lock.

mod barrier;
mod broadcast;
mod condvar;
mod event;
mod event_count;
mod inside;
mod latch;
mod list;
mod once;
mod several;
mod spin;
mod together;

pub use barrier::Barrier;
pub use broadcast::{Broadcast, Generation};
pub use condvar::{Condvar, End, Entry};
pub use event::Event;
pub use event_count::{EventCount, Key};
pub use inside::{Inside, Visit};
pub use latch::{Latch, MAX_COUNT};
pub use once::Once;
pub use several::{Left, Place, Several};
pub use together::{CrowdForm, Unpolled};

pub use crate::lock::shfl::{MAX_PERMITS, Semaphore, TooManyPermits};
