//! The helper: it checks each loop's release, raises late loops, and lowers those that are no
//! longer late.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Clock, SharedWait, ThreadId};

use super::seats::{self, Boosts, Seat};
use super::vigil::NEVER;
use crate::coop::{Demotion, Options};
use crate::lines::Lines;

/// The means to put threads into a real-time class, and back: the system, or a model of it.
pub trait Raise {
    /// The class of a thread before it was raised.
    type Before: Copy;

    /// Makes the thread run before all that share time, and after the helper; with `behind`, also
    /// after others that are raised. Returns its former class, and its CPU time in nanoseconds;
    /// `None` if the system refuses, the thread has ended, or is in such a class already.
    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<(Self::Before, u64)>;

    /// Makes the thread share time again, as before. Returns its CPU time; `None` if it has ended.
    fn lower(&mut self, thread: ThreadId, before: Self::Before) -> Option<u64>;

    /// Returns the CPU time of the thread, in nanoseconds; `None` if it has ended.
    fn ran_ns(&mut self, thread: ThreadId) -> Option<u64>;
}

/// A thread that is raised.
#[derive(Clone, Copy)]
struct Raised<B> {
    thread: ThreadId,
    before: B,
    /// CPU time of the thread when it was raised, or at its last poll after that.
    ran_ns: u64,
    /// Number of polls of the thread at that moment.
    polls: u64,
    /// The time of that moment, moved later by the time for which the helper itself could not run
    /// after it.
    since_ns: u64,
    /// When to check whether the thread has dispatched its timers.
    look_ns: u64,
    /// Whether the thread runs after others that are raised.
    behind: bool,
}

/// A bar on a loop, which is not raised for a while.
#[derive(Clone, Copy)]
struct Barred {
    /// The bar holds until the loop has polled more often than this.
    polls: u64,
    /// How long the loop ran while it was raised after its last poll, in nanoseconds: not yet part
    /// of its debt.
    lent_ns: u64,
    /// The length of the pause, in nanoseconds.
    pause_ns: u64,
    /// When the pause ends; [`NEVER`]: no end.
    until_ns: u64,
}

/// The helper's record of a seat.
#[derive(Clone, Copy)]
struct Known<B> {
    raised: Option<Raised<B>>,
    /// The last bar, which may have ended.
    barred: Option<Barred>,
    /// Whether the loop owes more than the threshold, and this was counted.
    over: bool,
}

/// The one thread that raises and lowers others. It lowers all raised threads when it is dropped.
pub struct Helper<'a, P: SharedWait, R: Raise> {
    boosts: &'a Boosts<P>,
    options: Options,
    system: R,
    known: Vec<Known<R::Before>>,
}

impl<'a, P: SharedWait, R: Raise> Helper<'a, P, R> {
    /// A loop that is raised for `options.slack_ns` of its CPU time without polling is lowered, and
    /// so is a loop that slept for `PATIENCE` times that. A loop that owes more than
    /// `options.threshold_ns` is not raised.
    pub const PATIENCE: u64 = 10;
    /// A loop that has overrun or slept is not raised for one `PAUSE`th of the slack, then for
    /// twice as long each time, until it polls.
    pub const PAUSE: u64 = 4;

    /// Creates a helper for the loops of `boosts`, which may have one at a time.
    pub fn new(boosts: &'a Boosts<P>, options: Options, system: R) -> Self {
        let nothing = Known { raised: None, barred: None, over: false };
        let known = alloc::vec![nothing; boosts.seats.len()];
        Self { boosts, options, system, known }
    }

    /// Serves the loops until the helper is [stopped](Boosts::stop). Blocks.
    pub fn run(mut self) {
        let boosts = self.boosts;
        // Relaxed: a thread that stops the helper rings, and that was heard.
        while boosts.stopped.load(Relaxed) == 0 {
            boosts.vigil.sleep_by(|| self.look(P::now(Clock::Monotonic)));
        }
    }

    /// Raises and lowers loops as needed at `now_ns`; returns when to call this again.
    pub fn look(&mut self, now_ns: u64) -> u64 {
        let boosts = self.boosts;
        // Relaxed: as in `run`.
        if boosts.stopped.load(Relaxed) != 0 {
            return 0;
        }
        // Relaxed: a seat that is not counted yet has published no release yet, or is about to.
        let used = boosts.used.load(Relaxed) as usize;
        let each = boosts.seats[..used].iter().enumerate();
        each.map(|(at, Lines(seat))| self.look_at(at, seat, now_ns)).min().unwrap_or(NEVER)
    }

    fn look_at(&mut self, at: usize, seat: &Seat<P>, now_ns: u64) -> u64 {
        // Acquire: what the loop said with it; pairs with the release in `Boosts::set_release`.
        // mutant: how long a loop stays barred and what it owes depend on it, and a model asserts
        // neither: they are a matter of when, not of whether.
        let release_ns = seat.release.load(Acquire);
        let Some(raised) = self.known[at].raised else {
            return match release_ns {
                0 | NEVER.. => NEVER,
                _ if release_ns > now_ns => release_ns,
                _ => self.raise(at, seat, now_ns),
            };
        };
        if release_ns > now_ns {
            // The loop has dispatched the timer that it was raised for.
            self.lower(at, seat, raised, None);
            return release_ns.min(NEVER);
        }
        // BOOST-6. Relaxed: the release that was acquired carries it.
        if raised.behind && seat.polls.load(Relaxed) != raised.polls {
            self.lower(at, seat, raised, None);
            return self.raise(at, seat, now_ns);
        }
        if now_ns < raised.look_ns {
            return raised.look_ns;
        }
        self.late(at, seat, raised, now_ns)
    }

    /// Raises a loop with an overdue timer.
    fn raise(&mut self, at: usize, seat: &Seat<P>, now_ns: u64) -> u64 {
        // Relaxed, both: the release that was acquired carries them.
        let (polls, owed_ns) = (seat.polls.load(Relaxed), seat.owed.load(Relaxed));
        let known = &mut self.known[at];
        known.barred = known.barred.filter(|barred| barred.polls == polls);
        if let Some(Barred { until_ns, .. }) = known.barred
            && now_ns < until_ns
        {
            return until_ns;
        }
        // BOOST-4.
        let (behind, lent_ns) = known.barred.map_or((false, 0), |last| (true, last.lent_ns));
        if owed_ns.saturating_add(lent_ns) > self.options.threshold_ns {
            if !known.over {
                count::<P>(&seat.demotions[Demotion::Share as usize]);
            }
            known.over = true;
            return self.bar(at, polls, now_ns, (NEVER, lent_ns));
        }
        known.over = false;
        if !seats::announce(seat, now_ns) {
            seats::lowered(seat);
            // The loop may have published another release meanwhile, and it will have rung.
            return self.look_at(at, seat, now_ns);
        }
        // Relaxed: carried by the release that was acquired there; the seat can't be given up now.
        let thread = ThreadId(seat.thread.load(Relaxed));
        let Some((before, ran_ns)) = self.system.raise(thread, behind) else {
            count::<P>(&seat.refusals);
            seats::lowered(seat);
            return self.bar(at, polls, now_ns, (NEVER, lent_ns));
        };
        count::<P>(&seat.raises);
        let look_ns = now_ns.saturating_add(self.options.slack_ns).min(NEVER);
        let raised = Raised { thread, before, ran_ns, polls, since_ns: now_ns, look_ns, behind };
        self.known[at].raised = Some(raised);
        look_ns
    }

    /// Checks whether the slack is used up. It is measured in the CPU time of the loop, because
    /// others may keep it waiting.
    fn late(
        &mut self,
        at: usize,
        seat: &Seat<P>,
        mut raised: Raised<R::Before>,
        now_ns: u64,
    ) -> u64 {
        let slack_ns = self.options.slack_ns;
        // BOOST-7.
        raised.since_ns += now_ns - raised.look_ns;
        // Relaxed, both: at worst the loop's latest poll is not seen, and the slack is shorter by
        // that.
        let (polls, owed_ns) = (seat.polls.load(Relaxed), seat.owed.load(Relaxed));
        let Some(ran_ns) = self.system.ran_ns(raised.thread) else {
            self.lower(at, seat, raised, None);
            return NEVER;
        };
        let since_ns = ran_ns.saturating_sub(raised.ran_ns);
        let polled = polls != raised.polls;
        let why = if since_ns >= slack_ns && !polled {
            Demotion::Overrun
        } else if polled && owed_ns.saturating_add(since_ns) > self.options.threshold_ns {
            Demotion::Share
        } else if now_ns - raised.since_ns >= slack_ns.saturating_mul(Self::PATIENCE)
            && since_ns < slack_ns
            && !polled
        {
            Demotion::Slept
        } else {
            return self.go_on(at, seat, raised, (ran_ns, polls), now_ns);
        };
        let lent_ns = self.lower(at, seat, raised, Some(why));
        let pause = match (why, self.known[at].barred.filter(|last| last.polls == polls)) {
            (Demotion::Share, _) => (NEVER, lent_ns),
            // The loop may have waited behind others.
            (Demotion::Slept, Some(last)) if since_ns == 0 => (last.pause_ns, last.lent_ns),
            (_, Some(last)) => (last.pause_ns.saturating_mul(2), last.lent_ns + lent_ns),
            (_, None) => ((slack_ns / Self::PAUSE).max(1), lent_ns),
        };
        self.bar(at, polls, now_ns, pause)
    }

    /// Bars the loop for the pause, unless it polls. Returns the end of the pause.
    fn bar(&mut self, at: usize, polls: u64, now_ns: u64, (pause_ns, lent_ns): (u64, u64)) -> u64 {
        let until_ns = now_ns.saturating_add(pause_ns).min(NEVER);
        self.known[at].barred = Some(Barred { polls, lent_ns, pause_ns, until_ns });
        until_ns
    }

    /// Keeps a loop raised that has polled and is late again, or has not used its slack yet.
    fn go_on(
        &mut self,
        at: usize,
        seat: &Seat<P>,
        mut raised: Raised<R::Before>,
        (ran_ns, polls): (u64, u64),
        now_ns: u64,
    ) -> u64 {
        let slack_ns = self.options.slack_ns;
        let mut left_ns = slack_ns.saturating_sub(ran_ns.saturating_sub(raised.ran_ns));
        if polls != raised.polls {
            add::<P>(&seat.borrowed, ran_ns.saturating_sub(raised.ran_ns));
            (raised.ran_ns, raised.polls, raised.since_ns) = (ran_ns, polls, now_ns);
            left_ns = slack_ns;
        }
        // A minimum, so that a small remainder does not cause many checks.
        raised.look_ns = now_ns.saturating_add(left_ns.max(slack_ns / 8).max(1)).min(NEVER);
        self.known[at].raised = Some(raised);
        raised.look_ns
    }

    /// BOOST-2: the one place where a thread is lowered. Returns how long it ran after it was
    /// raised, or after it last polled.
    fn lower(
        &mut self,
        at: usize,
        seat: &Seat<P>,
        raised: Raised<R::Before>,
        why: Option<Demotion>,
    ) -> u64 {
        self.known[at].raised = None;
        let ran_ns = self.system.lower(raised.thread, raised.before);
        let lent_ns = ran_ns.map_or(0, |ran_ns| ran_ns.saturating_sub(raised.ran_ns));
        add::<P>(&seat.borrowed, lent_ns);
        if let Some(why) = why {
            count::<P>(&seat.demotions[why as usize]);
        }
        seats::lowered(seat);
        lent_ns
    }
}

impl<P: SharedWait, R: Raise> Drop for Helper<'_, P, R> {
    fn drop(&mut self) {
        for at in 0..self.known.len() {
            if let Some(raised) = self.known[at].raised {
                let boosts = self.boosts;
                self.lower(at, &boosts.seats[at].0, raised, None);
            }
        }
    }
}

fn count<P: SharedWait>(number: &P::U64) {
    add::<P>(number, 1);
}

/// Adds to a number that only the helper writes.
fn add<P: SharedWait>(number: &P::U64, more: u64) {
    // Relaxed, both: one writer, and readers of an account.
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}
