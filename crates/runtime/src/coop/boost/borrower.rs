//! The side of a loop that is helped: it tells when its next timer is due, and gives back the CPU
//! time that it was lent.

use core::marker::PhantomData;

use antiphon_platform::{Clock, SharedWait};

use super::debt::Debt;
use super::seats::{Boosts, Place};
use crate::coop::{Answer, Ask};

/// The system's accounts of a thread, which only the thread itself reads.
pub trait Own {
    /// The CPU time that the thread has had, in nanoseconds.
    fn ran_ns(&mut self) -> u64;

    /// Returns the CPU time, and how long the thread was ready without running; `None` if the
    /// system does not report it. The call may be slow, so it is made seldom.
    fn times(&mut self) -> Option<Times>;
}

/// Times that a thread has had, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// CPU time.
    pub ran_ns: u64,
    /// For how long the thread was ready and did not run.
    pub waited_ns: u64,
}

/// A loop with a seat: its debt, and the measurements by which it gives that back. Times are in
/// nanoseconds.
#[derive(Debug)]
pub struct Borrower<P: SharedWait, S: Own> {
    system: S,
    debt: Debt,
    /// Number of raises of the loop and the time it had borrowed, as last read.
    raises: u64,
    borrowed_ns: u64,
    /// Running and waiting times of the loop at its last reading, with the time it had borrowed;
    /// and when that was.
    times: Option<(Times, u64)>,
    asked_ns: u64,
    /// When the loop last ended a poll, and its CPU time then, if it is needed.
    went_on_ns: u64,
    had_ns: Option<u64>,
    /// The loop is asleep to give back, or would be if its timer had not been due.
    napping: bool,
    /// The loop was raised when it last published.
    left_raised: bool,
    /// The CPU time of the loop when the kernel gave it the CPU, unless it was raised after that.
    given_ns: Option<u64>,
    napped_ns: u64,
    /// When the loop began to poll, and whether it gives back meanwhile.
    poll: Option<(u64, bool)>,
    platform: PhantomData<P>,
}

impl<P: SharedWait, S: Own> Borrower<P, S> {
    /// The longest time between two polls.
    const POLLS_NS: u64 = 1_000_000;
    /// The shortest time between two readings of the loop's times: each reads a file.
    const ASKS_NS: u64 = 20_000_000;
    /// A loop that was kept from its CPU for this long has just been given it.
    const KEPT_NS: u64 = 300_000;
    /// A loop first runs for this long: one that sleeps at once keeps a claim to its turn, of which
    /// the kernel honours only a part.
    const TURN_NS: u64 = 1_000_000;
    /// A loop that owes this much sleeps without that turn: with many timers it is raised before
    /// the turn ends, each time.
    const PRESSING_NS: u64 = 5_000_000;
    /// The shortest sleep that the loop begins.
    const SHORTEST_NS: u64 = 200_000;
    /// The longest sleep that the loop begins.
    const LONGEST_NS: u64 = 20_000_000;

    /// Creates the borrower of a seat that the calling thread has just taken.
    pub fn new(boosts: &Boosts<P>, place: &Place, system: S) -> Self {
        let (raises, borrowed_ns) = boosts.borrowed(place);
        Self {
            system,
            debt: Debt::NEW,
            raises,
            borrowed_ns,
            times: None,
            asked_ns: 0,
            went_on_ns: 0,
            had_ns: None,
            napping: false,
            left_raised: false,
            given_ns: None,
            napped_ns: 0,
            poll: None,
            platform: PhantomData,
        }
    }

    /// Returns for how long the loop has slept to give back what it owed, in nanoseconds.
    #[must_use]
    pub const fn napped_ns(&self) -> u64 {
        self.napped_ns
    }

    /// Called when the loop begins to poll. The loop is helped until it polls again. Returns the
    /// ask for the tier through which it gives its CPU away.
    pub fn before(&mut self, boosts: &Boosts<P>, place: &Place, ask: Ask) -> Ask {
        // The helper may be on another CPU, and lower the loop only after the last poll.
        let raised = boosts.raised(place) || self.left_raised;
        let kept = self.settle(boosts.borrowed(place));
        // Here the loop is lowered, and others run.
        boosts.publish(place, ask.release_ns, self.debt.owed_ns());
        self.left_raised = boosts.raised(place);
        let lowered = raised && !self.left_raised;
        let now_ns = now::<P>();
        let nap = self.nap(now_ns, lowered || kept);
        let nap = nap.filter(|_| ask.importance.is_some());
        self.poll = Some((now_ns, nap.is_some()));
        nap.map_or(ask, |until_ns| {
            let release_ns = ask.release_ns.map_or(until_ns, |at| at.min(until_ns));
            Ask { release_ns: Some(release_ns), importance: None }
        })
    }

    /// Called when the poll has returned `answer`. Returns the answer for the loop.
    pub fn after(&mut self, asked: Ask, answer: Answer) -> Answer {
        if let Some((began_ns, naps)) = self.poll.take() {
            self.polled(began_ns, asked, naps);
        }
        // The loop gives back what it owes when it polls.
        let own_ns = now::<P>().saturating_add(Self::POLLS_NS);
        let poll_at_ns = answer.poll_at_ns.map_or(own_ns, |at_ns| at_ns.min(own_ns));
        Answer { poll_at_ns: Some(poll_at_ns), ..answer }
    }

    /// Called when the loop goes on: it has dispatched the timer that it was raised for, or has
    /// another that is due.
    pub fn tell(&mut self, boosts: &Boosts<P>, place: &Place, release_ns: Option<u64>) {
        // The helper may lower the loop at once: the next poll sees that.
        self.left_raised |= boosts.raised(place);
        // BOOST-4: the time that the loop has borrowed after its last poll is no debt yet.
        let (_, borrowed_ns) = boosts.borrowed(place);
        let since_ns = borrowed_ns.wrapping_sub(self.borrowed_ns);
        boosts.publish(place, release_ns, self.debt.owed_ns().saturating_add(since_ns));
    }

    /// Records what the loop has borrowed. Returns whether it was kept from the CPU after it last
    /// ended a poll, and not raised: then the kernel has just given it the CPU.
    fn settle(&mut self, (raises, borrowed_ns): (u64, u64)) -> bool {
        let (now_ns, raised) = (now::<P>(), raises != self.raises);
        let borrowed = borrowed_ns.wrapping_sub(self.borrowed_ns);
        (self.raises, self.borrowed_ns) = (raises, borrowed_ns);
        if (borrowed > 0 || self.debt.owed_ns() > 0)
            && now_ns >= self.asked_ns.saturating_add(Self::ASKS_NS)
        {
            self.ask(now_ns);
        }
        self.debt.borrow(borrowed);
        if raised {
            self.given_ns = None;
        }
        !raised && self.kept_ns(now_ns) >= Self::KEPT_NS
    }

    /// Returns until when the loop should sleep now, or `None`; `given`: the kernel has just given
    /// it the CPU, by its share.
    fn nap(&mut self, now_ns: u64, given: bool) -> Option<u64> {
        let nap_ns = self.debt.nap_ns();
        if nap_ns == 0 {
            self.napping = false;
            return None;
        }
        // DEBT-3.
        if !self.napping && nap_ns >= Self::SHORTEST_NS {
            let had_ns = self.system.ran_ns();
            if given {
                self.given_ns = Some(had_ns);
            }
            let turn_ns = if self.debt.owed_ns() < Self::PRESSING_NS { Self::TURN_NS } else { 0 };
            self.napping = self.given_ns.is_some_and(|given_ns| had_ns >= given_ns + turn_ns);
        }
        if self.napping {
            self.given_ns = None;
        }
        self.napping.then(|| now_ns.saturating_add(nap_ns.min(Self::LONGEST_NS)))
    }

    /// Returns for how long the loop was ready without running, after it last ended a poll.
    fn kept_ns(&mut self, now_ns: u64) -> u64 {
        let Some(had_ns) = self.had_ns else { return 0 };
        let ran_ns = self.system.ran_ns().saturating_sub(had_ns);
        now_ns.saturating_sub(self.went_on_ns).saturating_sub(ran_ns)
    }

    /// Reads from the system how long the loop ran and waited while it shared time.
    fn ask(&mut self, now_ns: u64) {
        self.asked_ns = now_ns;
        let Some(times) = self.system.times() else { return };
        let last = self.times.replace((times, self.borrowed_ns));
        let Some((last, borrowed_ns)) = last else { return };
        let ran_ns = times.ran_ns.saturating_sub(last.ran_ns);
        let lent_ns = self.borrowed_ns.saturating_sub(borrowed_ns);
        let waited_ns = times.waited_ns.saturating_sub(last.waited_ns);
        self.debt.shared(ran_ns.saturating_sub(lent_ns), waited_ns);
    }

    /// The loop ends a poll that began at `began_ns`.
    fn polled(&mut self, began_ns: u64, asked: Ask, napped: bool) {
        self.had_ns = None;
        if self.debt.owed_ns() == 0 {
            return;
        }
        self.went_on_ns = now::<P>();
        self.had_ns = Some(self.system.ran_ns());
        if asked.importance.is_none() {
            // Beyond the time that the loop asked for, it was ready and waited.
            let until_ns = asked.release_ns.unwrap_or(u64::MAX).min(self.went_on_ns);
            let slept_ns = until_ns.saturating_sub(began_ns);
            self.debt.slept(slept_ns);
            self.napped_ns += if napped { slept_ns } else { 0 };
        }
    }
}

fn now<P: SharedWait>() -> u64 {
    P::now(Clock::Monotonic)
}
