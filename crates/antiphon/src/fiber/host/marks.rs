//! A thread's looks at the clock, and the accounting of its timed fibers that follows from them.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Clock, Deadline};

use super::super::clocked::{Clocked, Thread, WANTED};
use super::super::control::Fiber;
use super::super::current;
use super::below::Busy;
use super::{Host, TIMERS_EVERY};

impl Thread for Host {
    /// Looks at the clock, between two fibers or in a fiber that is suspended or continues; returns
    /// the time.
    fn mark(&self) -> u64 {
        let _busy = Busy::of(self);
        let kept = self.looks.kept_ns();
        let (now, next) = self.looks.look(self.turn());
        let kept = self.looks.kept_ns() - kept;
        if kept > 0 {
            Self::tell_kept(kept);
        }
        if self.untold.is_due(now) {
            self.cut(now, kept);
        }
        let timed = !(self.polls.is_idle() && self.timers.borrow().is_empty());
        // Relaxed: only this thread and ticks write it.
        self.desk.look_in.store(if timed { next.min(TIMERS_EVERY) } else { next }, Relaxed);
        now
    }

    #[inline]
    fn is_look_due(&self) -> bool {
        // Relaxed: only this thread and ticks write it.
        self.turns() >= self.desk.look_in.load(Relaxed)
    }

    fn kept_ns(&self) -> u64 {
        self.looks.kept_ns()
    }

    fn looked_ns(&self) -> u64 {
        self.looks.looked_ns()
    }
}

impl Host {
    /// Tells the running fiber, if any, that its task has kept the thread from its run queue for
    /// `kept` ns. Fibers in the run queue see it when they are suspended again, because there may
    /// be very many.
    #[cold]
    fn tell_kept(kept: u64) {
        let runs = current::current_fiber();
        if let Some(clocked) = runs.and_then(|fiber| fiber.get().clocked.get()) {
            // SAFETY: as in `woken`.
            unsafe { clocked.as_ref() }.has_kept(kept);
        }
    }

    /// Cuts the waits of untold fibers, after a look at `now` and a task that kept the thread for
    /// `kept` ns. These fibers have waited from before that task at the latest, because none of
    /// them was the task.
    #[cold]
    pub(super) fn cut(&self, now: u64, kept: u64) {
        let at = now.saturating_sub(kept);
        let _busy = Busy::of(self);
        self.untold.take(now, |fiber| {
            let clocked =
                fiber.get().clocked.get().expect("a fiber that is not timed any more has no entry");
            // SAFETY: as in `woken`.
            unsafe { clocked.as_ref() }.cut(at, self);
        });
    }

    /// Removes a fiber that is no longer timed, and has been noted.
    #[cold]
    pub(in super::super) fn forget(&self, fiber: Fiber) {
        let _busy = Busy::of(self);
        self.untold.forget(fiber);
    }

    /// Records that the thread has rested, or looked for tasks elsewhere, until `at`: that time is
    /// charged to no fiber.
    pub(crate) fn resumed(&self, at: u64) {
        self.looks.resumed(at, self.turn());
    }

    /// Records that a timed fiber may continue. The time since its wake-up was one turn, or a few
    /// for a deadline, or a rest.
    #[inline(never)]
    pub(super) fn woken(
        &self,
        fiber: Fiber,
        clocked: NonNull<Clocked>,
        deadline: Option<Deadline>,
    ) {
        // SAFETY: it is on the stack of a fiber that is in the middle of a task.
        let clocked = unsafe { clocked.as_ref() };
        if self.finds(NonNull::from(clocked)) {
            clocked.is_found(self);
            // Relaxed: the fiber is no longer posted, so no other thread uses it.
            return fiber.get().woken_ns.store(0, Relaxed);
        }
        let now = self.mark();
        let at = woken_ns(fiber, deadline, now);
        if clocked.is_untold() {
            // The fiber was not suspended after all, or the thread has cut others a moment ago.
            clocked.is_found(self);
        } else if let Some(at) = at {
            clocked.wakes(at, self.looks.hogged_ns(at, now), self);
        }
    }

    /// Returns whether a timed fiber may continue without a look: neither it nor its thread has
    /// looked since it began to wait, and no look is due.
    #[inline]
    pub(super) fn finds(&self, clocked: NonNull<Clocked>) -> bool {
        // SAFETY: as in `woken`.
        unsafe { clocked.as_ref() }.is_untold() && !self.is_look_due()
    }

    /// Notes a waiting fiber, if it is timed and has not looked: the next look of the thread is
    /// charged to it.
    #[inline]
    pub(super) fn note(&self, fiber: Fiber) {
        // SAFETY: as in `woken`.
        let is_to_note = |clocked: NonNull<Clocked>| unsafe { clocked.as_ref() }.is_to_note();
        if fiber.get().clocked.get().is_some_and(is_to_note) {
            self.untold.note(fiber);
        }
    }
}

/// Returns the time from which a fiber could continue that waited until `deadline` at the latest,
/// and that its thread has found at `now_ns`. `None` if it was not suspended.
fn woken_ns(fiber: Fiber, deadline: Option<Deadline>, now_ns: u64) -> Option<u64> {
    let woken_ns = &fiber.get().woken_ns;
    // Relaxed: published by the post of the fiber, or written by this thread.
    let at_ns = woken_ns.load(Relaxed);
    woken_ns.store(0, Relaxed);
    let is_over = |it: &Deadline| it.clock == Clock::Monotonic && it.ns <= now_ns;
    match at_ns {
        0 => None,
        WANTED => Some(deadline.filter(is_over).map_or(now_ns, |it| it.ns)),
        at_ns => Some(at_ns.min(now_ns)),
    }
}
