//! The locks of the Linux kernel, as its documentation and its developers describe them: what the
//! documents call "stock".
//!
//! | lock | bytes | there | a waiter | order |
//! |---|---|---|---|---|
//! | [`QSpinLock`] | 4 | 4 | spins on the lock; from the third on its own node | in order |
//! | [`LinuxMutex`] | 20 | 32 | spins while the owner runs, in line; then sleeps | overtaken once |
//! | [`LinuxRwSem`] | 24 | 40 | a writer as above; a reader sleeps | overtaken for 4 ms |
//!
//! From public descriptions, and written anew: none of the kernel's code is here. They are to
//! compare with and not for programs. Where a platform can't tell whether an owner runs, the owner
//! is taken to run ([`Hints::runs`](antiphon_platform::Hints::runs)).

mod list;
mod mutex;
mod osq;
mod qspinlock;
mod rwsem;

use crate::registry::shows;

crate::locks!(stock => shows);
pub use rwsem::LinuxRwSem;
