//! ShflLock: a test-and-set word that any thread may take, and a queue of waiters that a waiter
//! sorts.
//!
//! Source: `000_…`, "SHFLLOCKS: Family of lock algorithms". `README.md` in this folder describes
//! the protocol, its invariants, and how and why it departs from the published code.

mod abandoned;
mod aside;
mod cohort;
mod comer;
mod contended;
mod exclusive;
mod fair;
mod fence;
mod form;
mod handover;
mod held;
mod invite;
mod lately;
mod linger;
pub(crate) mod moved;
mod mutex;
mod owned;
mod queue;
mod rw;
mod semaphore;
mod shuffle;
mod sort;
mod spin;
pub(crate) mod status;
mod turn;
mod urgent;
mod wake;
mod watch;
mod words;

pub use form::{Form, Published, Standard};
pub(crate) use held::held;
pub use moved::Moved;
pub use mutex::ShflMutex;
pub use owned::ShflOwned;
pub use rw::{Central, GroupReaders, GroupWriters, MAX_READERS, PerSocket, Recursive, Refused};
pub use rw::{RwForm, Seat, ShflRwLock};
pub use semaphore::{MAX_PERMITS, Semaphore, TooManyPermits};
pub use spin::ShflSpin;
