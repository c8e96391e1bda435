//! The actions of a thread at the table: this code reports facts to the scheduler, which decides.

use core::iter;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, SharedWait, ThreadId};

use super::accounts::{Accounts, Doing};
use super::choice::Pick;
use super::line::{PLACES, Page};
use super::lines::Lines;
use super::member::{Demotion, Member, Standing, State};
use super::relay::Relay;
use super::scheduler::Scheduler;
use super::table::{Running, Table};

/// Period of audits, in turns: a thread then checks another's account.
const TURNS_AN_AUDIT: u64 = 32;
/// How far a thread may be ahead of the system's account of it, which is brought up to date when
/// the thread sleeps, and at ticks.
const AUDIT_SLACK_NS: u64 = 20_000_000;

/// One stay at the table.
pub(super) struct Section<'a, P: SharedWait, A> {
    pub(super) scheduler: Scheduler<Lines<'a, P>>,
    pub(super) page: &'a Page<P>,
    pub(super) accounts: &'a mut A,
    pub(super) thread: ThreadId,
    pub(super) now_ns: u64,
}

impl<P: SharedWait, A: Accounts> Section<'_, P, A> {
    /// Returns whether the line of place `place` is the caller's.
    pub(super) fn is_seated(&self, place: usize) -> bool {
        self.page.thread(place) == Some(self.thread)
    }

    /// Makes the caller visible to others, with the group and weight that it has joined with, even
    /// if they were overwritten (BATON-7).
    pub(super) fn restore(&mut self, place: usize, joined: &Member) {
        self.scheduler.table.cover(place);
        if let Some(member) = self.scheduler.table.get(place)
            && (member.group, member.weight) != (joined.group, joined.weight)
        {
            let Member { group, weight, .. } = *joined;
            self.scheduler.table.set(place, Some(Member { group, weight, ..member }));
        }
    }

    /// Takes a place, after freeing those of dead threads. For the others, the thread is asleep
    /// until it polls.
    pub(super) fn join(&mut self, member: Member, charged_ns: u64) -> Option<usize> {
        for place in 0..PLACES {
            if let Some(thread) = self.page.thread(place)
                && (thread == self.thread || P::ended(thread))
            {
                self.bury(place);
            }
        }
        let place = self.scheduler.join(member)?;
        let line = &self.page.lines[place];
        // Relaxed: see `put`.
        line.charged_ns.store(charged_ns, Relaxed);
        self.set_state(place, State::Asleep);
        Some(place)
    }

    /// Charges the caller, whose CPU time is `own_ns` in all. It has charged itself `charged_ns` of
    /// that, and others may have charged it more meanwhile. The caller need not have the baton.
    pub(super) fn charge(&mut self, place: usize, own_ns: u64, charged_ns: u64) {
        let charged = &self.page.lines[place].charged_ns;
        // Relaxed: see `put`. An impossible charge was not made by others.
        let by_others = charged.load(Relaxed);
        let before = if by_others > own_ns { charged_ns } else { by_others.max(charged_ns) };
        self.scheduler.charge(place, own_ns.saturating_sub(before));
        charged.store(own_ns, Relaxed);
    }

    /// Makes a thread ready if its state says that it runs although another has the baton, and it
    /// is not late.
    pub(super) fn heal(&mut self, place: usize) {
        let running = self.scheduler.table.head().running;
        let member = self.scheduler.table.get(place);
        if running.is_none_or(|running| running.id != place)
            && member.is_some_and(|member| member.state == State::Running)
        {
            self.set_state(place, State::Asleep);
        }
        self.scheduler.wake(place);
    }

    /// On return, a thread has the baton if any thread wants it: the present holder if it is in
    /// time; otherwise another thread, and the late holder does not ask for the baton again at
    /// once. The caller is at place `place`.
    pub(super) fn settle(&mut self, place: usize) {
        for _ in 0..=PLACES {
            let mut kept_from_running = false;
            if let Some(running) = self.scheduler.table.head().running {
                if running.id == place || self.now_ns < running.until_ns {
                    return self.hasten(place, running);
                }
                if self.page.now.relay.watcher() != Some(place) {
                    // The watcher should have been here first.
                    self.scheduler.table.watch_by(None);
                }
                kept_from_running = self.take_away(running);
            }
            // The caller runs, so it has a CPU, which the late holder has waited for, as others
            // would.
            let own = kept_from_running.then(|| self.scheduler.pick_due(place, self.now_ns));
            match own.flatten().unwrap_or_else(|| self.scheduler.pick(self.now_ns)) {
                Pick::Idle { .. } => return,
                // A thread that is gone for good is found here, so that no thread waits for it.
                Pick::Run { id, .. } if id != place && self.is_gone(id) => self.bury(id),
                Pick::Run { id, .. } => {
                    self.scheduler.table.begin(id);
                    let answer = self.scheduler.answer(id);
                    return self.scheduler.table.tell(id, answer.release_ns, answer.importance);
                }
            }
        }
    }

    /// Occasionally checks whether another thread has had more CPU time than it was charged. A
    /// thread that reports too little is charged the rest. If that puts it above the threshold, its
    /// releases are no longer believed (COOP-5).
    pub(super) fn audit(&mut self, place: usize) {
        let turns = self.scheduler.table.head().turns;
        let places = self.scheduler.table.places() as u64;
        let id = (turns / TURNS_AN_AUDIT % places.max(1)) as usize;
        if turns.is_multiple_of(TURNS_AN_AUDIT) && id != place {
            self.check(id);
        }
    }

    /// Checks the account of the holder of the baton, for a thread that waits for it. A holder that
    /// always reports no CPU time has the least virtual time, is never late, and does not audit
    /// itself.
    pub(super) fn audit_running(&mut self, place: usize) {
        let running = self.scheduler.table.head().running;
        if let Some(running) = running.filter(|running| running.id != place) {
            self.check(running.id);
        }
    }

    fn check(&mut self, id: usize) {
        let Some(thread) = self.page.thread(id) else { return };
        if P::ended(thread) {
            return self.bury(id);
        }
        let seen = self.accounts.of(thread).ran_ns;
        self.charge_other(id, seen);
    }

    /// Ends the stay. Returns whether the changes are valid. Wakes the thread that was given the
    /// baton, and the new watcher.
    pub(super) fn finish(mut self, place: usize) -> bool {
        let before = self.page.now.relay.held();
        let done = self.scheduler.table.commit();
        let page = self.page;
        let held = page.now.relay.held();
        let to = held.place().filter(|&to| held != before && to != place);
        let watcher = self.appoint(place, before.place(), held.place());
        drop(self);
        for id in [to, watcher].into_iter().flatten() {
            if let Some(line) = page.lines.get(id) {
                Relay::<P>::call(&line.turn);
            }
        }
        done
    }

    /// BATON-4: the present watcher remains, as long as it waits for its turn. Otherwise the caller
    /// becomes the watcher, or another thread, which must be woken and is returned. The thread that
    /// has just lost the baton may still run: it becomes the watcher only if there is no other.
    fn appoint(&self, place: usize, before: Option<usize>, holder: Option<usize>) -> Option<usize> {
        let table = &self.scheduler.table;
        let waits =
            |id| Some(id) != holder && table.get(id).is_some_and(|m| m.state == State::Ready);
        if holder.is_none() || self.page.now.relay.watcher().is_some_and(waits) {
            return None;
        }
        let others = (0..table.places()).filter(|&id| Some(id) != before);
        let next = iter::once(place).chain(others).chain(before).find(|&id| waits(id));
        table.watch_by(next);
        next.filter(|&id| id != place)
    }

    /// Shortens the slice of the running thread to the slice that it would have been given if the
    /// caller's demand, and its release, had been known then.
    fn hasten(&mut self, place: usize, running: Running) {
        let Some(member) = self.scheduler.table.get(place).filter(|_| running.id != place) else {
            return;
        };
        let options = *self.scheduler.options();
        let since_ns = self.scheduler.table.since_ns;
        let ready = self.scheduler.members().filter(|(_, m)| m.wants_cpu()).count().max(1) as u64;
        let mut end_ns = since_ns.saturating_add(options.period_ns / ready);
        end_ns = member.timely_at().map_or(end_ns, |at| at.min(end_ns)).max(self.now_ns);
        let least_ns = since_ns.saturating_add(options.min_slice_ns);
        let until_ns = end_ns.saturating_add(options.slack_ns).max(least_ns);
        if until_ns < running.until_ns {
            // The watcher does not know about the earlier time; the caller does.
            self.scheduler.table.watch_by(None);
        }
        self.scheduler.table.hasten(end_ns, until_ns);
    }

    /// Takes the baton from a late holder, which is dead, has slept, has run for too long, or was
    /// kept from running by threads outside of the table. Returns whether it was the last of these.
    fn take_away(&mut self, late: Running) -> bool {
        let Some(thread) = self.page.thread(late.id) else { return false };
        if P::ended(thread) {
            self.bury(late.id);
            return false;
        }
        let seen = self.accounts.of(thread);
        self.charge_other(late.id, seen.ran_ns);
        let ran_ns = seen.ran_ns.map(|_| self.ran_ns(late.id));
        let slice_ns = late.slice_end_ns.saturating_sub(self.scheduler.table.since_ns);
        let too_much_ns = slice_ns.saturating_add(self.scheduler.options().slack_ns / 2);
        let ran_too_long = ran_ns.is_none_or(|ran_ns| ran_ns >= too_much_ns);
        match seen.doing {
            Doing::Sleeps => {
                self.scheduler.block(late.id, 0);
                false
            }
            Doing::Runs if !ran_too_long => {
                self.scheduler.preempt(late.id, 0);
                true
            }
            Doing::Runs | Doing::Unknown => {
                self.scheduler.preempt(late.id, 0);
                self.overrun(late.id);
                false
            }
        }
    }

    /// Makes a thread that has run for too long asleep, so that it is not waited for until it
    /// polls.
    fn overrun(&mut self, id: usize) {
        let Some(member) = self.scheduler.table.get(id) else { return };
        let mut member = Member { state: State::Asleep, ..member };
        if member.standing == Standing::Cooperative {
            member.standing = Standing::Demoted(Demotion::Overrun);
            member.release_ns = None;
            self.scheduler.table.count(id, Demotion::Overrun);
        }
        self.scheduler.table.set(id, Some(member));
    }

    /// Returns how much a thread has been charged since its turn began, by any thread.
    fn ran_ns(&self, id: usize) -> u64 {
        // Relaxed, both: see `put`.
        let began_ns = self.page.tallies[id].began_ns.load(Relaxed);
        self.page.lines[id].charged_ns.load(Relaxed).saturating_sub(began_ns)
    }

    /// Charges a thread the CPU time that the system reports for it beyond what it was charged.
    fn charge_other(&mut self, id: usize, seen_ns: Option<u64>) {
        let Some(seen_ns) = seen_ns else { return };
        let charged = &self.page.lines[id].charged_ns;
        // Relaxed: see `put`.
        let before = charged.load(Relaxed);
        let ran_ns = seen_ns.saturating_sub(before);
        if ran_ns > 0 || before > seen_ns.saturating_add(AUDIT_SLACK_NS) {
            self.scheduler.charge(id, ran_ns);
            charged.store(seen_ns, Relaxed);
        }
    }

    fn is_gone(&self, place: usize) -> bool {
        !self.page.thread(place).is_some_and(P::alive)
    }

    fn bury(&mut self, place: usize) {
        self.scheduler.leave(place, 0);
        self.scheduler.table.count_dead();
    }

    fn set_state(&mut self, place: usize, state: State) {
        if let Some(member) = self.scheduler.table.get(place) {
            self.scheduler.table.set(place, Some(Member { state, ..member }));
        }
    }
}
