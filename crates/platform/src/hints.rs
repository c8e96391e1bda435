//! Guesses about the scheduler, and hints of algorithms to it and to tracers. Nothing here decides
//! what is correct: a platform may leave all of it out.

use crate::ThreadId;

/// Guesses and messages.
pub trait Hints {
    /// Tells the scheduler something about the caller. Doing nothing is a legal answer.
    fn hint(_hint: Hint) {}

    /// Tells a tracer of the program what happens here. Not called on the way to a lock that is
    /// free. Doing nothing is a legal answer.
    #[inline(always)]
    fn probe(_probe: Probe) {}

    /// Whether more threads want to run than there are CPUs, as far as this platform can tell.
    /// A guess: it decides how long to spin, never what is correct.
    fn crowded() -> bool {
        false
    }

    /// Whether there are CPUs to spare: one is left that no other thread needs, beside those of the
    /// caller, which spins, and of the thread that is waited for. Never where it is
    /// [`crowded`](Self::crowded); a guess as that is.
    fn roomy() -> bool {
        !Self::crowded()
    }

    /// Cost of a sleep: how long a woken thread takes to be back, in nanoseconds, from the call of
    /// [`unpark`](crate::Platform::unpark) to the return of [`park`](crate::Platform::park), where
    /// a CPU is free for it. A guess, as [`crowded`](Self::crowded) is: it decides how long to
    /// spin.
    fn sleep_cost_ns() -> u32 {
        20_000
    }

    /// How long the caller keeps its CPU if it goes on, in nanoseconds: what is left of its time
    /// slice, or [`u32::MAX`] while no other thread wants that CPU. A guess, as
    /// [`crowded`](Self::crowded) is; where the platform can't tell, it is one end or the other by
    /// that.
    fn slice_left_ns() -> u32 {
        if Self::crowded() { 0 } else { u32::MAX }
    }

    /// Lets others run that share the caller's thread and may go on, as fibers do; returns whether
    /// there were any. A caller that has to wait may call it once before it does, and look again:
    /// what it waits for may come from one of these, and no wait has to be prepared then.
    fn give_way() -> bool {
        false
    }

    /// Whether `thread`, which may have ended, has a CPU now. A guess; `true` where the platform
    /// can't tell.
    fn runs(_thread: ThreadId) -> bool {
        true
    }
}

/// A message of an algorithm to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The caller begins to wait by spinning.
    SpinBegin,
    /// The caller has stopped waiting by spinning.
    SpinEnd,
    /// The caller owns what it waited for, and goes on to do something for others that wait.
    Owns,
    /// The caller may park until that time of the monotonic clock, in nanoseconds, which is not the
    /// end of its wait: it looks again then, and goes on waiting.
    LooksAgain {
        /// The time at which it looks again.
        at_ns: u64,
    },
}

/// A message of an algorithm to a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The caller has to wait.
    WaitStart(Traced),
    /// The caller has waited, and has it.
    Acquired(Traced),
    /// The caller has waited in vain.
    GaveUp(Traced),
}

/// A lock, as it is described to a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The address of the lock.
    pub address: usize,
    /// The way in which the lock is waited for.
    pub kind: TracedKind,
}

impl Traced {
    /// The lock `lock`, for a tracer.
    pub fn new<L>(lock: &L, kind: TracedKind) -> Self {
        Self { address: core::ptr::from_ref(lock).addr(), kind }
    }
}

/// The way in which a lock is waited for. Tracers see the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TracedKind {
    /// A mutex.
    Mutex = 0,
    /// A readers-writer lock, to read.
    Read = 1,
    /// A readers-writer lock, to write.
    Write = 2,
    /// A spinlock.
    Spin = 3,
    /// A semaphore.
    Semaphore = 4,
}
