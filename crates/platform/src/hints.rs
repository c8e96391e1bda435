//! Guesses about the scheduler, and hints from algorithms to the scheduler and to tracers.
//! Correctness depends on none of them: a platform may leave all of them out.

use crate::ThreadId;

/// Guesses about the scheduler, and messages to it and to tracers.
pub trait Hints {
    /// Tells the scheduler something about the caller. Doing nothing is a legal answer.
    fn hint(_hint: Hint) {}

    /// Reports an event to a tracer of the program. Not called on the way to a free lock. Doing
    /// nothing is a legal answer.
    #[inline(always)]
    fn probe(_probe: Probe) {}

    /// Returns whether the platform wants to be told of critical sections, by
    /// [`Hint::SectionBegin`], [`Hint::SectionEnd`] and [`Hint::Released`]. Asked on the way to a
    /// free lock: it must cost next to nothing where the answer is no. Where it is yes,
    /// [`light`](crate::LightUnlock::light) is `false`.
    #[inline(always)]
    fn heeds_sections() -> bool {
        false
    }

    /// Returns whether there are more runnable threads than CPUs, as far as this platform can tell.
    /// A guess: it affects how long to spin, never correctness.
    fn crowded() -> bool {
        false
    }

    /// Returns whether there are CPUs to spare: at least one that no thread needs, besides those of
    /// the caller, which spins, and of the thread that it waits for. Never `true` where the
    /// platform is [`crowded`](Self::crowded). A guess, like [`crowded`](Self::crowded).
    fn roomy() -> bool {
        !Self::crowded()
    }

    /// The cost of a sleep, in nanoseconds: the time from the call of
    /// [`unpark`](crate::Platform::unpark) to the return of [`park`](crate::Platform::park), where
    /// a CPU is free for the woken thread. A guess, like [`crowded`](Self::crowded): it affects how
    /// long to spin.
    fn sleep_cost_ns() -> u32 {
        20_000
    }

    /// The time that the caller keeps its CPU if it goes on, in nanoseconds: the rest of its time
    /// slice, or [`u32::MAX`] while no other thread wants that CPU. A guess; where the platform
    /// can't tell, it is 0 if [`crowded`](Self::crowded), and [`u32::MAX`] otherwise.
    fn slice_left_ns() -> u32 {
        if Self::crowded() { 0 } else { u32::MAX }
    }

    /// Runs other runnable tasks that share the caller's thread, such as fibers; returns whether
    /// there were any. A caller that must wait may call this once first and check its condition
    /// again: one of these tasks may make it true, and then no wait need be prepared.
    fn give_way() -> bool {
        false
    }

    /// Returns whether `thread`, which may have ended, is on a CPU now. A guess; `true` where the
    /// platform can't tell.
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
    /// The caller owns what it waited for, and now works for other waiters.
    Owns,
    /// The caller has begun a critical section: it owns what other threads may wait for. Sections
    /// may nest. Like the next two it is given only where the platform
    /// [heeds them](Hints::heeds_sections).
    SectionBegin,
    /// The caller's section ends: it is about to release what it owns, or has just done so. A
    /// section whose beginning was not told may end, and one may end that its thread did not begin.
    SectionEnd,
    /// The caller has released what it owned in the section that has just ended. If a preemption
    /// was put off meanwhile, this is the time for it.
    Released,
    /// The caller may park until that time of the monotonic clock, in nanoseconds. This is not the
    /// deadline of its wait: it checks its condition then, and goes on waiting.
    LooksAgain {
        /// The time of the next check.
        at_ns: u64,
    },
}

/// A message of an algorithm to a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The caller has to wait.
    WaitStart(Traced),
    /// The caller has waited, and has got the lock.
    Acquired(Traced),
    /// The caller has stopped waiting without the lock.
    GaveUp(Traced),
}

/// The description of a lock for a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The address of the lock.
    pub address: usize,
    /// The kind of the lock and the mode of the wait.
    pub kind: TracedKind,
}

impl Traced {
    /// Describes `lock` to a tracer.
    pub fn new<L>(lock: &L, kind: TracedKind) -> Self {
        Self { address: core::ptr::from_ref(lock).addr(), kind }
    }
}

/// The kind of a lock and the mode of a wait for it. Tracers see the number.
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
