//! The locks of the Linux kernel, as its documentation and developers describe them; the documents
//! call them "stock".
//!
//! | lock | bytes | there | a waiter | order |
//! |---|---|---|---|---|
//! | [`QSpinLock`] | 4 | 4 | spins on the lock; from the third on its own node | in order |
//! | [`LinuxMutex`] | 20 | 32 | spins while the owner runs, in line; then sleeps | overtaken once |
//! | [`LinuxRwSem`] | 24 | 40 | a writer as above; a reader sleeps | overtaken for 4 ms |
//!
//! Written from public descriptions: none of the kernel's code is here. They are for comparison,
//! not for programs. If a platform cannot tell whether an owner runs, the owner is assumed to run
//! ([`Hints::runs`](antiphon_platform::Hints::runs)).

mod list;
mod mutex;
mod osq;
mod qspinlock;
mod rwsem;

use crate::registry::shows;

crate::locks!(stock => shows);
pub use rwsem::LinuxRwSem;
