//! Several tasks that one thread waits for.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–3 | `left` | all | twice the tasks that are not done, and 1 if their maker makes no more |
//! | 4–7 | `let_go` | the last task | 1: the task touches this no more |
//! | 8–15 | `bell` | the maker, the last task | how the maker sleeps |
//!
//! - COUNT-1: the thread that takes `left` to 1 is the last, and sees what was done by all that
//!   took some away before.
//! - COUNT-2: the maker goes on, and this may be gone, when nothing is left and the last task, if
//!   that was not the maker, has let go: it has taken the ticket that it will notify by then.
//!
//! A [`BiasedCountdown`] counts the maker's thread apart from all others, because a word that two
//! CPUs write in turn costs each of them a transfer of its line, for each task.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `others` | all but the maker's thread | a countdown |
//! | 2–3 | `own` | the maker's thread | even: twice the tasks that `left` lacks; 1: settled |
//! | 4 | `maker` | | the maker's thread; `None`: that may change, and `own` is not used |
//!
//! ```text
//!                the maker is about to sleep
//!   ┌───────────┐ or to spin: left += own+1,  ┌─────────┐  the last task
//!   │ unsettled │ own = 1 ──────────────────► │ settled │ ────────────────► over, `let_go`
//!   └─────┬─────┘                             └─────────┘
//!         │ left + own is 0: over; no task is the last
//!         ▼
//!       over
//! ```
//!
//! - COUNT-3: while it is unsettled, `left + own + 1` is what `left` is otherwise, and `left` is
//!   even: no thread takes that for the end. Only the maker's thread reads `own`. It does not
//!   settle what is over.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Notify, Platform, ThreadId};

use super::Awaited;
use crate::lines::Lines;
use crate::sleep::{Bell, Park};

/// Tasks that their maker waits for: all are done when [`wait`](Self::wait) is back. All zero: no
/// tasks yet.
#[repr(C)]
pub struct Countdown<P: Platform> {
    left: P::U32,
    let_go: P::U32,
    bell: Bell<P>,
}

/// A task, in `left`.
const TASK: u32 = 2;
/// Nothing left, and the maker makes no more.
const OVER: u32 = 1;

impl<P: Platform> Countdown<P> {
    /// Creates a countdown of no tasks yet.
    pub const NEW: Self = Self { left: P::U32::ZERO, let_go: P::U32::ZERO, bell: Bell::NEW };

    /// Adds a task. The caller is the maker, or one of the tasks.
    pub fn add(&self) {
        // Relaxed: the caller has one, which it takes away later.
        self.left.fetch_add(TASK, Relaxed);
    }

    /// A task is done. The caller touches this no more.
    pub fn done(&self) {
        // Release, Acquire: COUNT-1.
        if self.left.fetch_sub(TASK, AcqRel) == OVER + TASK {
            let ticket = self.bell.take();
            // Release: COUNT-2; pairs with the acquire in `leave`.
            self.let_go.store(1, Release);
            if let Some(ticket) = ticket {
                Park::<P>::NEW.notify(ticket);
            }
        }
    }

    /// Says that the maker makes no more tasks. `None` if all tasks are done, else what to wait for
    /// before it [leaves](Self::leave). Call it once.
    pub fn close(&self) -> Option<Awaited<'_, P>> {
        // Acquire: COUNT-1.
        let last = self.left.fetch_add(OVER, AcqRel) == 0;
        (!last).then_some(self.awaited(None))
    }

    fn awaited<'a>(&'a self, own: Option<&'a P::U32>) -> Awaited<'a, P> {
        let lasts = |left| left != OVER;
        Awaited { word: &self.left, lasts, bell: &self.bell, watched: 0, own }
    }

    /// Waits until the last task has let go, which it is about to when what is awaited is over.
    pub fn leave(&self) {
        // Acquire: COUNT-2; pairs with the release in `done`.
        self.let_go.wait_while(Acquire, |let_go| let_go == 0);
    }

    /// The maker makes no more, and waits until all tasks are done. Blocks.
    pub fn wait(&self) {
        if let Some(awaited) = self.close() {
            awaited.wait();
            self.leave();
        }
    }
}

impl<P: Platform> Default for Countdown<P> {
    fn default() -> Self {
        Self::NEW
    }
}

/// Like [`Countdown`], but cheap for the thread of the maker, which stays on that thread: what it
/// adds and what it does itself costs no atomic exchange. After biased reference counting (Choi,
/// Shull, Torrellas, PACT 2018).
pub struct BiasedCountdown<P: Platform> {
    others: Lines<Countdown<P>>,
    own: Lines<P::U32>,
    maker: Option<ThreadId>,
}

/// In `own`: nothing is lacking.
pub(super) const SETTLED: u32 = 1;

/// What the countdown lacks beside a word `own`.
#[inline]
pub(super) fn lacks(own: u32) -> u32 {
    own ^ SETTLED
}

impl<P: Platform> BiasedCountdown<P> {
    /// Creates a countdown of no tasks yet, for a maker that stays on that thread; or with `None`
    /// for one that may change its thread, where it costs what a [`Countdown`] does.
    #[must_use]
    pub const fn new(maker: Option<ThreadId>) -> Self {
        Self { others: Lines(Countdown::NEW), own: Lines(P::U32::ZERO), maker }
    }

    /// What the calling thread has apart. `None`: it is not the maker's, or all is settled.
    #[inline]
    fn own(&self) -> Option<u32> {
        if self.maker != Some(P::thread()) {
            return None;
        }
        // Relaxed, here and below: the thread's own.
        let own = self.own.0.load(Relaxed);
        (own != SETTLED).then_some(own)
    }

    /// Adds a task. The caller is the maker, or one of the tasks.
    #[inline]
    pub fn add(&self) {
        match self.own() {
            Some(own) => self.own.0.store(own.wrapping_add(TASK), Relaxed),
            None => self.others.0.add(),
        }
    }

    /// A task is done. The caller touches this no more.
    #[inline]
    pub fn done(&self) {
        match self.own() {
            Some(own) => self.own.0.store(own.wrapping_sub(TASK), Relaxed),
            None => self.others.0.done(),
        }
    }

    /// Says that the maker makes no more tasks. `None` if all tasks are done, else what to wait for
    /// before it [leaves](Self::leave). Call it once, as the maker.
    pub fn close(&self) -> Option<Awaited<'_, P>> {
        if self.maker.is_none() {
            return self.others.0.close();
        }
        let awaited = self.others.0.awaited(Some(&self.own.0));
        (!awaited.is_over()).then_some(awaited)
    }

    /// Waits until the last task has let go, which it is about to when what is awaited is over.
    pub fn leave(&self) {
        // COUNT-3: over and unsettled, it has no last task.
        if self.maker.is_none() || self.own.0.load(Relaxed) == SETTLED {
            self.others.0.leave();
        }
    }
}
