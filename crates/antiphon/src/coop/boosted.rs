//! A loop that is helped when it is late, and gives back what it has had by that.

use std::fmt;

use antiphon_linux::Linux;
use antiphon_linux::schedule::{self, Times};
use antiphon_platform::{Clock, Platform as _, ThreadId};
use antiphon_runtime::coop::boost::{Debt, Place};

use super::{Answer, Ask, Booster, Cooperate, Counts, Halves, Pause};

/// A loop of a [`Booster`].
///
/// What it runs while it is raised the kernel does not charge it for; so where others want the CPU,
/// it now and then sleeps for a while though it has work: until its next timer at most, and while
/// it runs by its share. That is then about what it would be without help. Timers that are due are
/// to be dispatched before other work, once a poll returns: work that comes first is borrowed.
///
/// It may be sent to another thread. Once dropped, its thread shares time as before.
#[derive(Debug)]
pub struct Boosted<C> {
    seat: Seat,
    inner: C,
}

impl<C> Boosted<C> {
    pub(super) fn new(booster: Booster, inner: C) -> Self {
        Self { seat: Seat::new(booster), inner }
    }

    /// What has happened to it, and to those that had its seat before; nothing before it polls.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.seat.counts()
    }

    /// For how long it has slept to give back what it owed, in nanoseconds.
    #[must_use]
    pub fn napped_ns(&self) -> u64 {
        self.seat.account.napped_ns
    }

    /// The way in which it gives its CPU away.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    /// The same, without help; its thread shares time.
    #[must_use]
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Cooperate> Cooperate for Boosted<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.seat.poll(&mut self.inner, ask, wait)
    }
}

impl<C: Halves> Halves for Boosted<C> {
    fn before(&mut self, ask: Ask) -> Pause {
        let asked = self.seat.before(ask);
        self.inner.before(asked)
    }

    fn after(&mut self, pause: Pause) -> Answer {
        let answer = self.inner.after(pause);
        self.seat.after(pause.ask());
        answer
    }
}

/// A loop, as its booster has it.
pub(super) struct Seat {
    booster: Booster,
    place: Option<(Place, ThreadId)>,
    account: Account,
    /// When it began to poll, and whether it is to give back meanwhile; `None`: it is not helped.
    poll: Option<(u64, bool)>,
}

impl Seat {
    pub(super) fn new(booster: Booster) -> Self {
        Self { booster, place: None, account: Account::default(), poll: None }
    }

    pub(super) fn counts(&self) -> Counts {
        let place = self.place.as_ref();
        place.map_or_else(Counts::default, |(place, _)| self.booster.0.boosts.counts(place))
    }

    /// Polls by `inner`, and is helped until it polls again.
    pub(super) fn poll(
        &mut self,
        inner: &mut dyn Cooperate,
        ask: Ask,
        wait: &mut dyn FnMut(Option<u64>),
    ) -> Answer {
        let asked = self.before(ask);
        let answer = inner.poll(asked, wait);
        self.after(asked);
        answer
    }

    /// What is to be asked of who gives its CPU away, for this.
    fn before(&mut self, ask: Ask) -> Ask {
        self.poll = None;
        let me = Linux::thread();
        if self.place.as_ref().is_some_and(|(_, thread)| *thread != me) {
            self.leave();
        }
        if !self.booster.0.here() {
            return ask;
        }
        let boosts = &self.booster.0.boosts;
        if self.place.is_none()
            && let Some(place) = boosts.sit(me)
        {
            self.account = Account::new(boosts.borrowed(&place));
            self.place = Some((place, me));
        }
        // With no seat left it is as if it were alone.
        let Some((place, _)) = &self.place else { return ask };
        // The helper may be on another CPU, and lower it only after the last poll.
        let raised = boosts.raised(place) || self.account.left_raised;
        let kept = self.account.settle(boosts.borrowed(place));
        // Here it is lowered, and others run.
        boosts.publish(place, ask.release_ns, self.account.debt.owed_ns());
        self.account.left_raised = boosts.raised(place);
        let lowered = raised && !self.account.left_raised;
        let now_ns = now();
        let nap = self.account.nap(now_ns, lowered || kept);
        let nap = nap.filter(|_| ask.importance.is_some());
        self.poll = Some((now_ns, nap.is_some()));
        nap.map_or(ask, |until_ns| {
            let release_ns = ask.release_ns.map_or(until_ns, |at| at.min(until_ns));
            Ask { release_ns: Some(release_ns), importance: None }
        })
    }

    /// It is through with that.
    fn after(&mut self, asked: Ask) {
        if let Some((began_ns, naps)) = self.poll.take() {
            self.account.polled(began_ns, asked, naps);
        }
    }

    fn leave(&mut self) {
        // The child of a fork has no helper, and was not raised.
        if let Some((place, _)) = self.place.take()
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

/// What the loop owes, and what it knows of itself to give it back. Times in nanoseconds.
#[derive(Default)]
struct Account {
    debt: Debt,
    /// How often it was raised and what it had borrowed, as it was last told.
    raises: u64,
    borrowed_ns: u64,
    /// What it had run and waited when it last asked, with what it had borrowed, and when that was.
    times: Option<(Times, u64)>,
    asked_ns: u64,
    /// When it was last through with a poll, and the CPU time that it had had, if it is needed.
    went_on_ns: u64,
    had_ns: Option<u64>,
    /// It is asleep to give back, or would be if its timer had not been due.
    napping: bool,
    /// It was raised when it had published last.
    left_raised: bool,
    /// The CPU time that it had had when the kernel gave it the CPU, unless it was raised since.
    given_ns: Option<u64>,
    napped_ns: u64,
}

impl Account {
    /// It asks for what it had no more often than this: it is a read of a file.
    const ASKS_NS: u64 = 20_000_000;
    /// Who was kept from its CPU for so long has just been given it.
    const KEPT_NS: u64 = 300_000;
    /// It runs for so long first: who sleeps at once keeps a claim to its turn, of which the kernel
    /// honours but a part.
    const TURN_NS: u64 = 1_000_000;
    /// Who owes so much does not wait for that: with many timers it is raised before, each time.
    const PRESSING_NS: u64 = 5_000_000;
    /// It begins to sleep for no less than this.
    const SHORTEST_NS: u64 = 200_000;
    /// And for no more.
    const LONGEST_NS: u64 = 20_000_000;

    fn new((raises, borrowed_ns): (u64, u64)) -> Self {
        Self { raises, borrowed_ns, ..Self::default() }
    }

    /// Takes note of what it has borrowed; says whether it was kept from the CPU since it was last
    /// through with a poll, and not raised: so the kernel has just given it the CPU.
    fn settle(&mut self, (raises, borrowed_ns): (u64, u64)) -> bool {
        let (now_ns, raised) = (now(), raises != self.raises);
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

    /// Until when it is to sleep now, if it is; `given`: the kernel has just given it the CPU, by
    /// its share.
    fn nap(&mut self, now_ns: u64, given: bool) -> Option<u64> {
        let nap_ns = self.debt.nap_ns();
        if nap_ns == 0 {
            self.napping = false;
            return None;
        }
        // DEBT-3.
        if !self.napping && nap_ns >= Self::SHORTEST_NS {
            let had_ns = schedule::own_cpu_ns();
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

    /// For how long it did not run since it was last through with a poll, though it wanted to.
    fn kept_ns(&self, now_ns: u64) -> u64 {
        let Some(had_ns) = self.had_ns else { return 0 };
        let ran_ns = schedule::own_cpu_ns().saturating_sub(had_ns);
        now_ns.saturating_sub(self.went_on_ns).saturating_sub(ran_ns)
    }

    /// How long it ran and waited while it shared time.
    fn ask(&mut self, now_ns: u64) {
        self.asked_ns = now_ns;
        let Some(times) = schedule::times() else { return };
        let last = self.times.replace((times, self.borrowed_ns));
        let Some((last, borrowed_ns)) = last else { return };
        let ran_ns = times.ran_ns.saturating_sub(last.ran_ns);
        let lent_ns = self.borrowed_ns.saturating_sub(borrowed_ns);
        let waited_ns = times.waited_ns.saturating_sub(last.waited_ns);
        self.debt.shared(ran_ns.saturating_sub(lent_ns), waited_ns);
    }

    /// It is through with a poll that began then.
    fn polled(&mut self, began_ns: u64, asked: Ask, napped: bool) {
        self.had_ns = None;
        if self.debt.owed_ns() == 0 {
            return;
        }
        self.went_on_ns = now();
        self.had_ns = Some(schedule::own_cpu_ns());
        if asked.importance.is_none() {
            // What is beyond the time that it asked for it has waited, ready.
            let until_ns = asked.release_ns.unwrap_or(u64::MAX).min(self.went_on_ns);
            let slept_ns = until_ns.saturating_sub(began_ns);
            self.debt.slept(slept_ns);
            self.napped_ns += if napped { slept_ns } else { 0 };
        }
    }
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}
