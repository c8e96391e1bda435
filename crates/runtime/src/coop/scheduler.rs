//! What happens to threads, and what that does to their shares and their standing.

use super::choice::Pick;
use super::member::{Demotion, Group, Member, Standing, State};
use super::options::Options;
use super::table::{Members, Table};

/// The scheduler of one CPU: who is to run, until when, and who is believed.
///
/// It has no clock and no threads. Its driver has, and tells it what they do; each call is linear
/// in the number of members, of which a CPU has few. `now_ns` is any clock that does not go back,
/// the same in all calls; `ran_ns` is the CPU time that the running thread had since the last call
/// that said so.
#[derive(Clone, Debug, Default)]
pub struct Scheduler<T: Table = Members> {
    pub(super) table: T,
    pub(super) options: Options,
}

impl<T: Table> Scheduler<T> {
    /// Over a table that is all its own.
    pub const fn new(table: T, options: Options) -> Self {
        Self { table, options }
    }

    /// What it was told.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// What it knows.
    pub const fn table(&self) -> &T {
        &self.table
    }

    /// A thread comes, and is ready: with the virtual time of its group, or the least there is.
    /// Returns its place; `None` if there is none left.
    pub fn join(&mut self, mut member: Member) -> Option<usize> {
        let id = (0..self.table.places()).find(|&id| self.table.get(id).is_none())?;
        let of_group = self.members().find(|(_, other)| same(&member, other));
        member.virtual_time = of_group.map_or(self.table.head().least, |(_, m)| m.virtual_time);
        member.state = State::Asleep;
        self.table.set(id, Some(member));
        self.admit(id);
        Some(id)
    }

    /// A thread has gone. Its place is free.
    pub fn leave(&mut self, id: usize, ran_ns: u64) {
        self.stop(id, ran_ns, State::Asleep);
        self.table.set(id, None);
    }

    /// `coop_poll` (§3.1): a thread gives the CPU away, and says when its earliest timer is due and
    /// how important its best-effort work is, if it has either. From now on it is cooperative,
    /// unless it has had too much; says which.
    pub fn poll(
        &mut self,
        id: usize,
        ran_ns: u64,
        release_ns: Option<u64>,
        importance: Option<u64>,
    ) -> Standing {
        let state = match (importance, release_ns) {
            (Some(_), _) => State::Ready,
            (None, Some(_)) => State::Waiting,
            (None, None) => State::Asleep,
        };
        let Some(before) = self.table.get(id) else { return Standing::Plain };
        self.stop(id, ran_ns, state);
        if state == State::Ready && !before.wants_cpu() {
            self.admit(id);
        }
        let Some(mut member) = self.table.get(id) else { return Standing::Plain };
        member.state = state;
        (member.release_ns, member.importance) = (release_ns, importance);
        member.standing = Standing::Cooperative;
        self.table.set(id, Some(member));
        self.police(id);
        self.table.get(id).map_or(Standing::Plain, |member| member.standing)
    }

    /// The running thread has gone to sleep otherwise than by [`poll`](Self::poll): it has no
    /// release now.
    pub fn block(&mut self, id: usize, ran_ns: u64) {
        self.stop(id, ran_ns, State::Asleep);
        self.demote(id, Demotion::Slept);
    }

    /// A thread that was asleep, or waits for its release, is ready.
    pub fn wake(&mut self, id: usize) {
        if let Some(Member { state: State::Asleep | State::Waiting, .. }) = self.table.get(id) {
            self.admit(id);
        }
    }

    /// The running thread is preempted, for a reason that is not its own.
    pub fn preempt(&mut self, id: usize, ran_ns: u64) {
        self.stop(id, ran_ns, State::Ready);
    }

    /// Charges the running thread, which goes on.
    pub fn charge(&mut self, id: usize, ran_ns: u64) {
        let Some(member) = self.table.get(id) else { return };
        let weight: u64 = self
            .members()
            .filter(|(other, m)| *other == id || same(&member, m) && m.wants_cpu())
            .map(|(_, m)| u64::from(m.weight))
            .sum();
        self.set_time(&member, id, |time| time.after(ran_ns, weight));
        self.advance();
    }

    /// It is [`until_ns`](super::Running::until_ns): the running thread is preempted. Who was
    /// cooperative is demoted, if others would have run. Says so; does nothing if it is earlier.
    pub fn expire(&mut self, now_ns: u64, ran_ns: u64) -> Option<Demotion> {
        let running = self.table.head().running?;
        if now_ns < running.until_ns {
            return None;
        }
        let id = running.id;
        self.stop(id, ran_ns, State::Ready);
        let kept_waiting = self.members().any(|(other, m)| {
            other != id && (m.wants_cpu() || m.timely_at().is_some_and(|at| at <= now_ns))
        });
        let cooperative = self.table.get(id).map(|m| m.standing) == Some(Standing::Cooperative);
        if !(kept_waiting && cooperative) {
            return None;
        }
        self.demote(id, Demotion::Overrun);
        Some(Demotion::Overrun)
    }

    /// Who is to run now: see [`Pick`]. It has the CPU from now on.
    pub fn pick(&mut self, now_ns: u64) -> Pick {
        if let Some(running) = self.table.head().running {
            self.stop(running.id, 0, State::Ready);
        }
        for id in 0..self.table.places() {
            if let Some(Member { state: State::Waiting, release_ns: Some(at), .. }) =
                self.table.get(id)
                && at <= now_ns
            {
                self.admit(id);
            }
        }
        self.advance();
        for id in 0..self.table.places() {
            self.police(id);
        }
        self.choose(now_ns)
    }

    /// That thread is to run now, if it is ready and its release has come, though another's may
    /// have come earlier: as [`pick`](Self::pick), where nobody runs.
    pub(super) fn pick_due(&mut self, id: usize, now_ns: u64) -> Option<Pick> {
        self.police(id);
        let member = self.table.get(id).filter(|member| member.state == State::Ready)?;
        let is_due = member.timely_at().is_some_and(|at| at <= now_ns);
        is_due.then(|| self.run(id, member, true, now_ns))
    }

    /// The members, with their places.
    pub fn members(&self) -> impl Iterator<Item = (usize, Member)> {
        (0..self.table.places()).filter_map(|id| Some((id, self.table.get(id)?)))
    }

    /// Who has had more than its share by more than the threshold is not cooperative, and who has
    /// not, is again: it need not poll for that (COOP-5).
    fn police(&mut self, id: usize) {
        let Some(member) = self.table.get(id) else { return };
        let ahead_ns = member.virtual_time.ahead_ns(self.table.head().least);
        let exceeds = i128::from(ahead_ns) > i128::from(self.options.threshold_ns);
        let standing = match member.standing {
            Standing::Cooperative if exceeds => Standing::Demoted(Demotion::Share),
            Standing::Demoted(Demotion::Share) if !exceeds => Standing::Cooperative,
            _ => return,
        };
        if exceeds {
            self.table.count(id, Demotion::Share);
        }
        self.table.set(id, Some(Member { standing, ..member }));
    }

    /// A thread does not run any longer, if it did.
    fn stop(&mut self, id: usize, ran_ns: u64, state: State) {
        let mut head = self.table.head();
        if head.running.is_none_or(|running| running.id != id) {
            return;
        }
        self.charge(id, ran_ns);
        head = self.table.head();
        head.running = None;
        self.table.set_head(head);
        if let Some(member) = self.table.get(id) {
            self.table.set(id, Some(Member { state, ..member }));
        }
        self.advance();
    }

    /// A thread that did not want the CPU wants it. It keeps none of what it has not had since
    /// (COOP-4), unless it has shared with others that did.
    fn admit(&mut self, id: usize) {
        let Some(member) = self.table.get(id) else { return };
        let alone =
            !self.members().any(|(other, m)| other != id && same(&member, &m) && m.wants_cpu());
        if alone {
            let least = self.table.head().least;
            self.set_time(&member, id, |time| time.later(least));
        }
        if let Some(member) = self.table.get(id) {
            self.table.set(id, Some(Member { state: State::Ready, ..member }));
        }
    }

    fn demote(&mut self, id: usize, why: Demotion) {
        let Some(member) = self.table.get(id) else { return };
        if member.standing == Standing::Cooperative {
            let standing = Standing::Demoted(why);
            self.table.set(id, Some(Member { standing, release_ns: None, ..member }));
            self.table.count(id, why);
        }
    }

    /// Sets the virtual time of a member, and of all of its group (COOP-2).
    fn set_time(
        &mut self,
        member: &Member,
        id: usize,
        new: impl Fn(super::VirtualTime) -> super::VirtualTime,
    ) {
        let virtual_time = new(member.virtual_time);
        for other in 0..self.table.places() {
            if let Some(m) = self.table.get(other)
                && (other == id || same(member, &m))
            {
                self.table.set(other, Some(Member { virtual_time, ..m }));
            }
        }
    }

    /// The least virtual time of who wants the CPU has changed, forwards at most (COOP-3).
    fn advance(&mut self) {
        let least = self
            .members()
            .filter(|(_, m)| m.wants_cpu())
            .map(|(_, m)| m.virtual_time)
            .min_by(|one, other| one.order(*other));
        if let Some(least) = least {
            let mut head = self.table.head();
            head.least = head.least.later(least);
            self.table.set_head(head);
        }
    }
}

/// Whether two members have one virtual time.
pub(super) fn same(one: &Member, other: &Member) -> bool {
    matches!((one.group, other.group), (Group::Number(a), Group::Number(b)) if a == b)
}
