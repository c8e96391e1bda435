//! A count of tasks, for one thread that waits for all of them.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–3 | `left` | all | twice the tasks that are not done, plus 1 if the maker makes no more |
//! | 4–7 | `let_go` | the last task | 1: the task no longer uses this |
//! | 8–15 | `bell` | the maker, the last task | by which the maker is woken |
//!
//! - COUNT-1: the thread that takes `left` to 1 is the last, and sees the accesses of all threads
//!   that have subtracted before.
//! - COUNT-2: the maker goes on, and may free this, when no task is left and the last task, if that
//!   was not the maker, has let go: by then it has taken the ticket that it will notify.
//!
//! A [`BiasedCountdown`] counts the maker's thread separately from all others, because a word that
//! two CPUs write in turn costs each of them a transfer of its line, for each task.
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
//!   settle a countdown that is over.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Notify, Platform, ThreadId};

use super::Awaited;
use crate::lines::Lines;
use crate::sleep::{Bell, Park};

/// Tasks that their maker waits for: all are done when [`wait`](Self::wait) returns. All zero: no
/// tasks yet.
#[repr(C)]
pub struct Countdown<P: Platform> {
    left: P::U32,
    let_go: P::U32,
    bell: Bell<P>,
}

/// One task, in `left`.
const TASK: u32 = 2;
/// The value of `left` when no tasks are left, and the maker makes no more.
const OVER: u32 = 1;

impl<P: Platform> Countdown<P> {
    /// A countdown without tasks.
    pub const NEW: Self = Self { left: P::U32::ZERO, let_go: P::U32::ZERO, bell: Bell::NEW };

    /// Adds a task. The caller is the maker, or one of the tasks.
    pub fn add(&self) {
        // Relaxed: the caller is counted itself, and subtracts later.
        self.left.fetch_add(TASK, Relaxed);
    }

    /// Removes a task that is done. The caller must not use this afterwards.
    pub fn done(&self) {
        // Release: COUNT-1; pairs with the acquires of the maker, and for the last thread with the
        // fence in `Bell::take`.
        if self.left.fetch_sub(TASK, Release) == OVER + TASK {
            let ticket = self.bell.take();
            // Release: COUNT-2; pairs with the acquire in `leave`.
            self.let_go.store(1, Release);
            if let Some(ticket) = ticket {
                Park::<P>::NEW.notify(ticket);
            }
        }
    }

    /// Announces that the maker makes no more tasks. `None` if all tasks are done; otherwise the
    /// event to wait for before it [leaves](Self::leave). Must be called once.
    pub fn close(&self) -> Option<Awaited<'_, P>> {
        // Acquire: COUNT-1; pairs with the releases in `done`. It releases nothing: the last thread
        // only uses the bell, which has its own orderings.
        let last = self.left.fetch_add(OVER, Acquire) == 0;
        (!last).then_some(self.awaited(None))
    }

    fn awaited<'a>(&'a self, own: Option<&'a P::U32>) -> Awaited<'a, P> {
        let lasts = |left| left != OVER;
        Awaited { word: &self.left, lasts, bell: &self.bell, watched: 0, own }
    }

    /// Waits until the last task has let go, which follows soon after the awaited event.
    pub fn leave(&self) {
        // Acquire: COUNT-2; pairs with the release in `done`.
        self.let_go.wait_while(Acquire, |let_go| let_go == 0);
    }

    /// Ends the making of tasks, and waits until all tasks are done. Blocks.
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

/// Like [`Countdown`], but cheap for the maker's thread, to which it is bound: tasks that this
/// thread adds, or completes, cost no atomic exchange. After biased reference counting (Choi,
/// Shull, Torrellas, PACT 2018).
pub struct BiasedCountdown<P: Platform> {
    others: Lines<Countdown<P>>,
    own: Lines<P::U32>,
    maker: Option<ThreadId>,
}

/// The value of `own` when nothing is lacking.
pub(super) const SETTLED: u32 = 1;

/// Returns what the countdown lacks if the word is `own`.
#[inline]
pub(super) fn lacks(own: u32) -> u32 {
    own ^ SETTLED
}

impl<P: Platform> BiasedCountdown<P> {
    /// Creates a countdown without tasks, for a maker that stays on thread `maker`; or, if `None`,
    /// for one that may change its thread, at the cost of a [`Countdown`].
    #[must_use]
    pub const fn new(maker: Option<ThreadId>) -> Self {
        Self { others: Lines(Countdown::NEW), own: Lines(P::U32::ZERO), maker }
    }

    /// Returns the separate count of the calling thread. `None`: it is not the maker's, or all is
    /// settled.
    #[inline]
    fn own(&self) -> Option<u32> {
        if self.maker != Some(P::thread()) {
            return None;
        }
        // Relaxed, here and below: only this thread uses it.
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

    /// Removes a task that is done. The caller must not use this afterwards.
    #[inline]
    pub fn done(&self) {
        match self.own() {
            Some(own) => self.own.0.store(own.wrapping_sub(TASK), Relaxed),
            None => self.others.0.done(),
        }
    }

    /// Announces that the maker makes no more tasks. `None` if all tasks are done; otherwise the
    /// event to wait for before it [leaves](Self::leave). Must be called once, by the maker.
    pub fn close(&self) -> Option<Awaited<'_, P>> {
        if self.maker.is_none() {
            return self.others.0.close();
        }
        let awaited = self.others.0.awaited(Some(&self.own.0));
        (!awaited.is_over()).then_some(awaited)
    }

    /// Waits until the last task has let go, which follows soon after the awaited event.
    pub fn leave(&self) {
        // COUNT-3: if it ended unsettled, there is no last task.
        if self.maker.is_none() || self.own.0.load(Relaxed) == SETTLED {
            self.others.0.leave();
        }
    }
}
