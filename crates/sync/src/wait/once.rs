//! One-time initialization: a function runs once, and each thread that needs its effect waits until
//! it has run.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–1 | phase | `NEW`, `RUNNING`, `DONE` |
//! | 2–11 | epoch | while `RUNNING`: the epoch of the process in which a thread runs it |
//! | 12–31 | `waiters` | index of the last waiter to come, 0 if no thread waits |
//!
//! ```text
//!            a caller runs it            done: all go
//!   NEW ────────────────────────► RUNNING ───────────► DONE
//!    ▲                               │
//!    └───────────────────────────────┘
//!            it failed or panicked: all go, and one of them runs its own
//! ```
//!
//! - ONCE-1: one caller at a time runs it, and no caller after it was done.
//! - ONCE-2: a caller that returns has run it, or is ordered after all that the caller that ran it
//!   did.
//! - ONCE-3: a waiter is on the list of the word, which the thread that ends the run takes whole;
//!   arriving waiters that get no node, or a node whose index is too large for the word, nap and
//!   check.
//!
//! After a fork while a thread runs it, that thread does not exist in the child, so the next
//! caller, which finds the epoch of another process, runs it again. A thread that forks in the
//! middle of running it may end the run in the child too; others there may have begun to run it
//! meanwhile.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::together::{CrowdForm, Member, Told, let_go};
use crate::lock::Standard;
use crate::nap;

/// Runs a function once, 4 bytes. All zero bytes: not done yet.
///
/// It is never poisoned: a run that fails or panics does not count, and the next caller runs its
/// own function. A recursive call from within the function deadlocks.
#[repr(transparent)]
pub struct Once<P: Platform, F: CrowdForm = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

/// The word, unpacked.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u32);

impl Word {
    const NEW: Self = Self(0);
    const DONE: Self = Self(2);
    const PHASE: u32 = 3;
    const RUNNING: u32 = 1;
    const EPOCH_SHIFT: u32 = 2;
    const EPOCH: u32 = 0x3FF;
    const WAITERS_SHIFT: u32 = 12;

    /// Returns the word while a thread in the process of `epoch` runs it, and no thread waits.
    fn running(epoch: u32) -> Self {
        Self(epoch << Self::EPOCH_SHIFT | Self::RUNNING)
    }

    /// Returns whether a thread in the process of `epoch` runs it.
    fn is_running_in(self, epoch: u32) -> bool {
        let running = self.0 & Self::PHASE == Self::RUNNING;
        running && self.0 >> Self::EPOCH_SHIFT & Self::EPOCH == epoch
    }

    fn waiters(self) -> u32 {
        self.0 >> Self::WAITERS_SHIFT
    }

    /// Returns the word with this waiter first; `None` if its index does not fit.
    fn joined_by(self, index: u32) -> Option<Self> {
        let others = self.0 & ((1 << Self::WAITERS_SHIFT) - 1);
        let fits = index < 1 << (u32::BITS - Self::WAITERS_SHIFT);
        fits.then_some(Self(others | index << Self::WAITERS_SHIFT))
    }
}

/// How long a caller without a node sleeps between two checks, in nanoseconds.
const NAP_NS: u64 = 200_000;

impl<P: Platform, F: CrowdForm> Once<P, F> {
    /// A `Once` that is not done yet.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// Returns whether it was done. If so, what the function did happens before the return.
    #[inline]
    pub fn is_completed(&self) -> bool {
        // Acquire: ONCE-2; pairs with the release in `end`.
        self.word.load(Acquire) == Word::DONE.0
    }

    /// Runs `f` if no caller has, or waits for the caller that runs it. Blocks until it is done. If
    /// `f` panics it counts as not run, and the next caller runs its own.
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        let Ok(()) = self.try_call_once(|| {
            f();
            Ok::<(), Infallible>(())
        });
    }

    /// Does what [`call_once`](Self::call_once) does, but `f` may fail: then it counts as not run,
    /// and the next caller runs its own.
    ///
    /// # Errors
    ///
    /// The error of `f`.
    #[inline]
    pub fn try_call_once<E>(&self, f: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.is_completed() || !self.begin() {
            return Ok(());
        }
        let mut run = Run { once: self, end: Word::NEW };
        f()?;
        run.end = Word::DONE;
        Ok(())
    }

    /// Waits until it was done (returns `false`) or must be done by the caller (returns `true`).
    #[cold]
    fn begin(&self) -> bool {
        let epoch = P::epoch();
        loop {
            // Acquire, here and where an exchange fails: as in `is_completed`.
            let seen = Word(self.word.load(Acquire));
            if seen == Word::DONE {
                return false;
            }
            if seen.is_running_in(epoch) {
                self.wait(seen);
                continue;
            }
            // Acquire: what a caller whose run failed has done; pairs with the release in `end`.
            let run = Word::running(epoch).0;
            if self.word.compare_exchange(seen.0, run, Acquire, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Waits until the caller that runs it has ended; may return early.
    fn wait(&self, seen: Word) {
        let Some(me) = Member::<P>::take() else { return nap::nap::<P>(NAP_NS) };
        let Some(joined) = seen.joined_by(me.index()) else {
            me.give();
            return nap::nap::<P>(NAP_NS);
        };
        let _ = me.stand_before(seen.waiters());
        // Release: our node; pairs with the acquire in `end`.
        match self.word.compare_exchange(seen.0, joined.0, Release, Relaxed) {
            // The result is ignored, because the caller checks the word.
            Ok(_) => {
                let (Told::Gone(_) | Told::Lost) = me.wait::<F>();
            }
            Err(_) => me.give(),
        }
    }

    /// Ends the caller's run.
    #[cold]
    fn end(&self, word: Word) {
        // Release: ONCE-2. Acquire: the nodes of all waiters that have joined; pairs with the
        // releases in `wait`, each of which continues the release sequence of the one before it.
        let ended = Word(self.word.swap(word.0, AcqRel));
        let_go::<P, F>(ended.waiters(), 0);
    }
}

/// A run by the caller, which ends with `end` when this is dropped.
struct Run<'a, P: Platform, F: CrowdForm> {
    once: &'a Once<P, F>,
    end: Word,
}

impl<P: Platform, F: CrowdForm> Drop for Run<'_, P, F> {
    fn drop(&mut self) {
        self.once.end(self.end);
    }
}
