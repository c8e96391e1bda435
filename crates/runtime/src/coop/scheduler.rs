//! The calls that change the state of threads, and their effects on shares and standing.

use super::choice::Pick;
use super::member::{Demotion, Group, Member, Standing, State};
use super::options::Options;
use super::table::{Members, Table};

/// The scheduler of one CPU: which thread runs, until when, and which threads are believed.
///
/// It has no clock and no threads. Its driver has them, and reports their actions; each call is
/// linear in the number of members, which is small for one CPU. `now_ns` is any clock that does not
/// go back, the same in all calls; `ran_ns` is the CPU time of the running thread since the last
/// call that reported it.
#[derive(Clone, Debug, Default)]
pub struct Scheduler<T: Table = Members> {
    pub(super) table: T,
    pub(super) options: Options,
}

impl<T: Table> Scheduler<T> {
    /// Creates a scheduler over a table that no other scheduler uses.
    pub const fn new(table: T, options: Options) -> Self {
        Self { table, options }
    }

    /// Returns the options.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the table.
    pub const fn table(&self) -> &T {
        &self.table
    }

    /// Adds a thread, which is ready: with the virtual time of its group, or the least that there
    /// is. Returns its place; `None` if all are taken.
    pub fn join(&mut self, mut member: Member) -> Option<usize> {
        let id = (0..self.table.places()).find(|&id| self.table.get(id).is_none())?;
        let of_group = self.members().find(|(_, other)| same(&member, other));
        member.virtual_time = of_group.map_or(self.table.head().least, |(_, m)| m.virtual_time);
        member.state = State::Asleep;
        self.table.set(id, Some(member));
        self.admit(id);
        Some(id)
    }

    /// Removes a thread, and frees its place.
    pub fn leave(&mut self, id: usize, ran_ns: u64) {
        self.stop(id, ran_ns, State::Asleep);
        self.table.set(id, None);
    }

    /// `coop_poll` (§3.1): a thread gives the CPU away, and tells when its earliest timer is due
    /// and how important its best-effort work is, if it has either. From then on the thread is
    /// cooperative, unless it has had too much CPU time. Returns its standing.
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

    /// Reports that the running thread went to sleep otherwise than by [`poll`](Self::poll). It has
    /// no release now.
    pub fn block(&mut self, id: usize, ran_ns: u64) {
        self.stop(id, ran_ns, State::Asleep);
        self.demote(id, Demotion::Slept);
    }

    /// Reports that a thread is ready that was asleep, or waited for its release.
    pub fn wake(&mut self, id: usize) {
        if let Some(Member { state: State::Asleep | State::Waiting, .. }) = self.table.get(id) {
            self.admit(id);
        }
    }

    /// Reports that the running thread was preempted for a reason outside of it.
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

    /// Preempts the running thread at [`until_ns`](super::Running::until_ns); does nothing earlier.
    /// If the thread was cooperative and others were ready to run, it is demoted. Returns the
    /// demotion.
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

    /// Decides which thread runs next (see [`Pick`]), and records that it has the CPU.
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

    /// Makes thread `id` run now, if it is ready and its release time has passed, even if another's
    /// has passed earlier. Like [`pick`](Self::pick), but only if no thread runs.
    pub(super) fn pick_due(&mut self, id: usize, now_ns: u64) -> Option<Pick> {
        self.police(id);
        let member = self.table.get(id).filter(|member| member.state == State::Ready)?;
        let is_due = member.timely_at().is_some_and(|at| at <= now_ns);
        is_due.then(|| self.run(id, member, true, now_ns))
    }

    /// Returns the members, with their places.
    pub fn members(&self) -> impl Iterator<Item = (usize, Member)> {
        (0..self.table.places()).filter_map(|id| Some((id, self.table.get(id)?)))
    }

    /// Demotes a cooperative thread that has had more than its share by more than the threshold. A
    /// thread that no longer exceeds it is cooperative again, even without a poll (COOP-5).
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

    /// Stops a thread, if it runs.
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

    /// A thread that did not want the CPU wants it. It keeps none of the CPU time that it has
    /// missed meanwhile (COOP-4), unless it is in a group with others that wanted the CPU.
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

    /// Advances the least virtual time of the threads that want the CPU, which never decreases
    /// (COOP-3).
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

/// Returns whether two members share one virtual time.
pub(super) fn same(one: &Member, other: &Member) -> bool {
    matches!((one.group, other.group), (Group::Number(a), Group::Number(b)) if a == b)
}
