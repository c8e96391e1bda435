//! The loop itself.
//!
//! ```text
//!            ┌──────────────────────────────────────────────────────────┐
//!            ▼                                                          │
//!   posts of others ──► a timer is due ──yes──────────────► call it ────┤
//!                         │ no                                          │
//!                         ▼                                             │
//!                       to poll? ──yes──► poll: others run ─┐           │
//!                         │ no  ▲                           │ once      │
//!                         ▼     └───────────────────────────┘           │
//!                       there is work ──yes───────────────► call it ────┘
//!                         │ no
//!                         ▼
//!                       poll: sleep
//! ```
//!
//! - ROUND-1 (progress): between two polls an event is called, unless there is none to call.
//! - ROUND-2 (timers first): work is called only if no timer was due when it was chosen.
//! - ROUND-3: if timers follow each other without a break, only those that were there and due at
//!   the end of the last poll are called before the next poll: so neither those that become due
//!   meanwhile, however many, nor a timer that becomes later and later, keeps others waiting for
//!   longer.
//! - ROUND-4: a loop that always has events to call polls a tier that has told nothing yet, or
//!   knows of no others: there may be others that must learn of the loop.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::context::Current;
use super::{EventLoop, Wait};
use crate::coop::{Alone, Answer, Ask};

/// The reason why a loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum End {
    /// The loop was stopped.
    Stopped,
    /// There is nothing to do, and nothing that could add an event: no event, and no handle.
    Done,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Turn {
    /// How many callbacks were called.
    pub called: usize,
    /// The latest time at which there is something to do: 0 if there is something now, `None` if
    /// there is nothing until a source or another thread reports something.
    pub next_ns: Option<u64>,
    /// Whether the loop has ended.
    pub end: Option<End>,
}

/// A turn of a loop inside another: the outer loop, which waits for it, is notified when there is
/// something to do, however the turn ends.
struct Inside<'a, W: Wait> {
    events: &'a mut EventLoop<W>,
    unwinds: bool,
}

impl<W: Wait> Drop for Inside<'_, W> {
    fn drop(&mut self) {
        self.events.nested = true;
        if self.unwinds {
            // The next turn, which should follow at once, finds what there is to do.
            self.events.shared.doze();
            self.events.wait.arm(Some(0));
        } else {
            self.events.arm();
        }
    }
}

/// The result of a step.
enum Did {
    Called,
    Polled,
    Nothing,
    Ended(End),
}

impl<W: Wait> EventLoop<W> {
    /// Calls events and waits for more, until the loop is stopped, or no event is left, and no
    /// handle that could submit one.
    ///
    /// If a callback panics, its event ends, the panic propagates to the caller, and the loop can
    /// be run again.
    pub fn run(&mut self) -> End {
        self.nested = false;
        // Events that became due meanwhile waited for the caller.
        self.kinds.caught_up();
        self.begin();
        self.has_polled();
        loop {
            if let Did::Ended(end) = self.go_on(true) {
                return end;
            }
        }
    }

    /// Calls up to `most` callbacks that are ready now, and does not wait: for a loop inside
    /// another one, which waits for both. If a tier lets loops that share the CPU take turns, the
    /// others may have theirs meanwhile.
    pub fn turn(&mut self, most: usize) -> Turn {
        let mut inside = Inside { events: self, unwinds: true };
        let events = &mut *inside.events;
        events.shared.awake();
        events.begin();
        events.look();
        let (mut called, mut end) = (0, None);
        while called < most {
            match events.go_on(false) {
                Did::Called => called += 1,
                Did::Polled => {}
                Did::Nothing => break,
                Did::Ended(ended) => {
                    end = Some(ended);
                    break;
                }
            }
        }
        inside.unwinds = false;
        drop(inside);
        Turn { called, next_ns: self.next_ns(), end }
    }

    /// Cancels all events, including those whose callbacks must be called before they may be
    /// dropped.
    #[cold]
    pub(super) fn run_off(&mut self) {
        self.nested = false;
        self.begin();
        loop {
            // The drop of a callback may let others proceed; and a callback may submit more.
            let ids: Vec<_> = self.agenda.ids().collect();
            ids.into_iter().for_each(|id| _ = self.forget(id));
            if self.agenda.is_empty() {
                return;
            }
            self.go_on(true);
        }
    }

    /// Begins to run: no callback is in progress, even if a panic left one.
    fn begin(&mut self) {
        if let Some(Current { id, has_source: true, .. }) = self.current.take() {
            self.end_source(id);
        }
        self.shared.sight.end();
        self.now_ns = W::now_ns();
        if !self.has_come(self.agenda.release_ns()) {
            self.kinds.caught_up();
        }
    }

    /// Returns when there is something to do, as far as is known.
    fn next_ns(&self) -> Option<u64> {
        let now = self.agenda.importance().is_some() || self.shared.any() || self.stopped;
        if now { Some(0) } else { self.agenda.release_ns() }
    }

    /// Makes sure that the outer loop of a loop inside another is notified when there is something
    /// to do.
    pub(super) fn arm(&mut self) {
        if self.nested && self.current.is_none() {
            // The loop looks for posts only after this: POST-1.
            self.shared.doze();
            self.wait.arm(self.next_ns());
        }
    }

    fn go_on(&mut self, sleeps: bool) -> Did {
        // Before posts are taken in: POST-3.
        let forsaken = self.shared.is_forsaken();
        self.take_in();
        if core::mem::take(&mut self.stopped) {
            self.goes_on_with(None);
            return Did::Ended(End::Stopped);
        }
        if self.agenda.is_empty() && forsaken {
            return Did::Ended(End::Done);
        }
        let since_look_ns = self.now_ns.saturating_sub(self.looked_ns);
        if self.sources > 0 && since_look_ns >= self.options.look_ns {
            self.look();
        }
        let must = self.is_to_poll();
        // ROUND-3.
        let by = if must { (self.polled_ns, self.polled_turn) } else { (self.now_ns, u64::MAX) };
        if let Some(taken) = self.agenda.take_due(by.0, by.1) {
            self.call(taken);
            return Did::Called;
        }
        if !self.has_come(self.agenda.release_ns()) {
            self.kinds.caught_up();
        }
        // A loop that has nothing to do, and may not sleep, keeps no other loop waiting.
        let has_work =
            self.agenda.importance().is_some() || self.has_come(self.agenda.release_ns());
        if must && (sleeps || has_work) {
            self.poll();
            // ROUND-1.
            return self.call_any();
        }
        if let Some(taken) = self.agenda.take_work() {
            self.call(taken);
            return Did::Called;
        }
        if !sleeps {
            return Did::Nothing;
        }
        self.poll();
        Did::Polled
    }

    /// ROUND-1: calls the first event, after a poll.
    fn call_any(&mut self) -> Did {
        self.take_in();
        if self.stopped {
            return Did::Polled;
        }
        let due = self.agenda.take_due(self.now_ns, u64::MAX);
        let taken = due.or_else(|| self.agenda.take_work());
        taken.map_or(Did::Polled, |taken| {
            self.call(taken);
            Did::Called
        })
    }

    fn has_come(&self, at_ns: Option<u64>) -> bool {
        at_ns.is_some_and(|at| at <= self.now_ns)
    }

    /// Returns what the tier tells of others. A loop that was preempted may have a new turn, which
    /// ends later than the one in which it has polled; it polls at the end of that one, too.
    fn told(&self) -> Answer {
        let Some(present) = self.cooperate.present() else { return self.answer };
        let ends = [self.answer.poll_at_ns, present.poll_at_ns];
        Answer { poll_at_ns: ends.into_iter().flatten().min(), ..present }
    }

    /// Returns whether others should run before this loop goes on.
    fn is_to_poll(&self) -> bool {
        let Answer { release_ns, importance, poll_at_ns } = self.told();
        if self.has_come(poll_at_ns) {
            return true;
        }
        let is_patient = self.now_ns.saturating_sub(self.polled_ns) < self.options.poll_ns;
        // ROUND-4: after timers, which are why some tiers run the loop, unless timers are due all
        // the time.
        let since_ns = self.now_ns.saturating_sub(self.polled_ns);
        let is_timely = self.has_come(self.agenda.release_ns()) && since_ns < self.options.long_ns;
        if self.cooperates && self.answer == Answer::default() && !is_patient && !is_timely {
            return true;
        }
        // Others that were already due at the last poll were passed over, for a reason.
        let is_news = release_ns.is_some_and(|at| at > self.polled_ns);
        if self.has_come(release_ns) && (is_news || !is_patient) {
            return true;
        }
        let is_less_important = match (importance, self.agenda.importance()) {
            (Some(theirs), Some(own)) => theirs < own,
            _ => false,
        };
        is_less_important && !is_patient && !self.has_come(self.agenda.release_ns())
    }

    /// The shortest budget of a callback if no timer is due, in nanoseconds.
    const LEAST_NS: u64 = 1_000;

    /// Returns until when the present callback may go on.
    pub(super) fn until_ns(&self) -> u64 {
        let Answer { release_ns, poll_at_ns, .. } = self.told();
        let others = release_ns.filter(|at| *at > self.polled_ns);
        // Events that are called again and again leave some time between, whatever the options are.
        let least_ns = self.now_ns.saturating_add(Self::LEAST_NS);
        let look_ns = self.looked_ns.saturating_add(self.options.look_ns).max(least_ns);
        let look_ns = (self.sources > 0).then_some(look_ns);
        let most_ns = self.now_ns.saturating_add(self.options.long_ns / 2).max(least_ns);
        let all = [self.agenda.release_ns(), poll_at_ns, others, look_ns];
        all.into_iter().flatten().fold(most_ns, u64::min)
    }

    /// Checks the sources without waiting.
    fn look(&mut self) {
        self.wait_until(Some(0));
    }

    fn wait_until(&mut self, until_ns: Option<u64>) {
        let agenda = &mut self.agenda;
        self.wait.wait(until_ns, &mut |id, ready| agenda.tell(id, ready));
        self.now_ns = W::now_ns();
        self.looked_ns = self.now_ns;
    }

    /// Events that are present now are called before the next poll (ROUND-3).
    fn has_polled(&mut self) {
        self.now_ns = W::now_ns();
        (self.polled_ns, self.polled_turn) = (self.now_ns, self.agenda.turn());
    }

    /// Lets others run, or sleeps.
    fn poll(&mut self) {
        if self.answer != Answer::default() {
            // Otherwise no other is known that would run.
            self.goes_on_with(None);
        }
        let (release_ns, importance) = (self.agenda.release_ns(), self.agenda.importance());
        let mut tier = core::mem::replace(&mut self.cooperate, Box::new(Alone));
        let answer = tier.poll(Ask { release_ns, importance }, &mut |until_ns| {
            self.shared.doze();
            // Only after `doze`: POST-1.
            let is_over = self.agenda.is_empty() && self.shared.is_forsaken();
            let may_sleep = !self.shared.any() && !is_over;
            self.wait_until(if may_sleep { until_ns } else { Some(0) });
            self.shared.awake();
        });
        self.cooperate = tier;
        self.answer = answer;
        self.has_polled();
    }
}
