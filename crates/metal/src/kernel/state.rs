//! The state of threads and of schedulers, which `schedule`, `thread` and `message` change.

use alloc::boxed::Box;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use antiphon_platform::{Atomics, Local};

use super::cpu::{Apart, Cpu};
use crate::deadlines::{Alarm, Deadlines};
use crate::inbox::{self, Linked};
use crate::metal::Metal;
use crate::scheduler::Turns;
use crate::x86::context::StackPointer;

/// Largest number of actions for broadcasts.
pub const BROADCAST_ACTIONS: usize = 16;

/// The type of the tokens of sleeps.
pub(crate) type Token = <Metal as Atomics>::U32;
/// What links threads in inboxes and run queues.
pub(crate) type Link = inbox::Link<Metal>;

/// A kernel thread.
pub struct Thread {
    pub(super) stack_pointer: UnsafeCell<StackPointer>,
    pub(super) link: Link,
    /// The next thread that has ended, while this one is among them.
    pub(super) free: AtomicPtr<Self>,
    /// The CPU that the thread runs on. Only the thread itself changes it, when it moves. Wakers
    /// read it, so it is apart from what the thread writes.
    pub(super) cpu: Apart<Cell<&'static Cpu>>,
    pub(super) number: u32,
    /// The lowest address of the stack, and the one above it.
    pub(super) stack: (usize, usize),
    /// The node of the CPU for which the stack was made, by which the thread is reused.
    pub(super) home: u16,
    pub(super) alarm: Alarm<Sleeper>,
    /// The token of the kernel's own waits: joins, sleeps and calls of the host.
    pub(super) token: Token,
    /// The token of `thread::block`, which no other wait takes from it.
    pub(super) blocks: Token,
    pub(super) runs: AtomicBool,
    pub(super) body: Cell<Option<Box<dyn FnOnce() + Send>>>,
    pub(crate) local: Local<Metal>,
}

// SAFETY: fields that are not atomic are written by the thread's creator before it runs, and then
// by the thread itself.
unsafe impl Sync for Thread {}
// SAFETY: as for `Sync`; a thread is not tied to the CPU that has created it.
unsafe impl Send for Thread {}

// SAFETY: a thread always returns the one link that it has.
unsafe impl Linked for Thread {
    type Words = Metal;

    #[inline]
    fn link(&self) -> &Link {
        &self.link
    }
}

/// The scheduler of a CPU.
pub struct Scheduler {
    pub(super) turns: Turns<Thread>,
    pub(super) deadlines: Deadlines<Sleeper>,
    /// The thread that has slept last, while it sleeps and no other has come back from a sleep.
    pub(super) last: Option<Sleeper>,
    /// The time at which the timer will interrupt; `u64::MAX` if it is not set.
    pub(super) alarm_ns: u64,
    /// The end of the running thread's slice; `u64::MAX` if it has none.
    pub(super) slice_end_ns: u64,
}

/// A thread that sleeps, and its token.
#[derive(Clone, Copy, Debug)]
pub struct Sleeper {
    pub(super) thread: *const Thread,
    pub(super) token: *const Token,
}

impl Scheduler {
    pub(super) const NEW: Self = Self {
        turns: Turns::NEW,
        deadlines: Deadlines::NEW,
        last: None,
        alarm_ns: u64::MAX,
        slice_end_ns: u64::MAX,
    };
}
