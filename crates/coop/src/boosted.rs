//! A loop that is boosted when it is late, and pays the borrowed CPU time back later.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_linux::schedule;
use antiphon_platform::{Platform as _, ThreadId};
use antiphon_runtime::coop::boost::{Borrower, Own, Place, Times};

use super::{Answer, Ask, Booster, Cooperate, Counts, Halves, Pause};

/// A loop that a [`Booster`] helps.
///
/// The kernel does not charge the loop for the time that it runs while it is raised. So if other
/// threads want the CPU, the loop sometimes sleeps although it has work: at most until its next
/// timer, and only while it runs by its fair share. It then gets about as much CPU time as without
/// help. After a poll returns, dispatch the timers that are due before other work: work that is
/// done first is borrowed time.
///
/// It may be sent to another thread. Once it is dropped, its thread shares time as before, and its
/// debt is forgotten: a program that boosts itself again and again pays nothing back.
#[derive(Debug)]
pub struct Boosted<C> {
    seat: Seat,
    inner: C,
}

impl<C> Boosted<C> {
    pub(super) fn new(booster: Booster, inner: C) -> Self {
        Self { seat: Seat::new(booster), inner }
    }

    /// Returns the counts of events since this thread's first poll.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.seat.counts()
    }

    /// Returns how long the loop has slept to pay its debt, in nanoseconds.
    #[must_use]
    pub fn napped_ns(&self) -> u64 {
        self.seat.place.as_ref().map_or(0, |seated| seated.borrower.napped_ns())
    }

    /// Returns the inner way of yielding the CPU.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    /// Returns the inner value without help; its thread then shares time.
    #[must_use]
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Cooperate> Cooperate for Boosted<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.seat.poll(&mut self.inner, ask, wait)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        self.seat.tell(release_ns);
        self.inner.tell(release_ns);
    }

    fn rest(&mut self) {
        self.seat.leave();
        self.inner.rest();
    }

    fn reports_to(&mut self, flag: &Arc<AtomicBool>) -> bool {
        self.inner.reports_to(flag)
    }
}

impl<C: Halves> Halves for Boosted<C> {
    fn before(&mut self, ask: Ask) -> Pause {
        let asked = self.seat.before(ask);
        self.inner.before(asked)
    }

    fn after(&mut self, pause: Pause) -> Answer {
        let answer = self.inner.after(pause);
        self.seat.after(pause.ask(), answer)
    }
}

/// The booster's view of a loop.
pub(super) struct Seat {
    booster: Booster,
    place: Option<Seated>,
}

/// A place among the loops that the booster helps.
struct Seated {
    place: Place,
    thread: ThreadId,
    /// The counts of the threads that had the place before.
    before: Counts,
    borrower: Borrower<Linux, Myself>,
}

impl Seat {
    pub(super) fn new(booster: Booster) -> Self {
        Self { booster, place: None }
    }

    pub(super) fn counts(&self) -> Counts {
        let place = self.place.as_ref();
        place.map_or_else(Counts::default, |Seated { place, before, .. }| {
            self.booster.0.boosts.counts(place).since(before)
        })
    }

    /// Polls by `inner`; the loop is helped until its next poll.
    pub(super) fn poll(
        &mut self,
        inner: &mut dyn Cooperate,
        ask: Ask,
        wait: &mut dyn FnMut(Option<u64>),
    ) -> Answer {
        let asked = self.before(ask);
        let answer = inner.poll(asked, wait);
        self.after(asked, answer)
    }

    /// Returns the question for the inner scheduler, which then gives away this thread's CPU.
    fn before(&mut self, ask: Ask) -> Ask {
        let me = Linux::thread();
        if self.place.as_ref().is_some_and(|seated| seated.thread != me) {
            self.leave();
        }
        if !self.booster.0.here() {
            return ask;
        }
        let boosts = &self.booster.0.boosts;
        if self.place.is_none() {
            if let Some(place) = boosts.sit(me) {
                let before = boosts.counts(&place);
                let borrower = Borrower::new(boosts, &place, Myself);
                self.place = Some(Seated { place, thread: me, before, borrower });
            } else {
                // Relaxed: a counter for reports.
                self.booster.0.unseated.fetch_add(1, Relaxed);
            }
        }
        // If no place is left, the loop is polled as if it were alone.
        match &mut self.place {
            Some(Seated { place, borrower, .. }) => borrower.before(boosts, place, ask),
            None => ask,
        }
    }

    /// Ends the poll, with the answer of the inner scheduler.
    fn after(&mut self, asked: Ask, answer: Answer) -> Answer {
        match &mut self.place {
            Some(Seated { borrower, .. }) if self.booster.0.here() => borrower.after(asked, answer),
            _ => answer,
        }
    }

    /// Tells the booster that the loop's earliest release has changed.
    pub(super) fn tell(&mut self, release_ns: Option<u64>) {
        if let Some(Seated { place, thread, borrower, .. }) = &mut self.place
            && *thread == Linux::thread()
            && self.booster.0.here()
        {
            borrower.tell(&self.booster.0.boosts, place, release_ns);
        }
    }

    /// Gives the place back, until the next poll.
    pub(super) fn leave(&mut self) {
        // The child of a fork has no helper, and was not raised.
        if let Some(Seated { place, .. }) = self.place.take()
            && self.booster.0.here()
        {
            self.booster.0.boosts.leave(place);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// Linux, as used by a thread on itself.
#[derive(Debug)]
struct Myself;

impl Own for Myself {
    fn ran_ns(&mut self) -> u64 {
        schedule::own_cpu_ns()
    }

    fn times(&mut self) -> Option<Times> {
        let schedule::Times { ran_ns, waited_ns } = schedule::times()?;
        Some(Times { ran_ns, waited_ns })
    }
}
