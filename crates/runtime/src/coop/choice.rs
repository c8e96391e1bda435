//! The choice of the next thread, and the length of its slice.

use core::cmp::Ordering;

use super::ask::Answer;
use super::member::{Group, Member, Standing, State};
use super::scheduler::{Scheduler, same};
use super::table::{Running, Table};

/// The scheduler's decision for the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pick {
    /// Run the thread at place `id`.
    Run {
        /// The place of the thread in the table.
        id: usize,
        /// Whether it was picked because its release time has passed, and not by virtual time.
        due: bool,
        /// When the slice of the thread ends, at which it must poll. The CPU is not taken away
        /// before that.
        slice_end_ns: u64,
        /// When the driver must report to the scheduler that the thread is late
        /// ([`expire`](super::Scheduler::expire)).
        until_ns: u64,
    },
    /// Run nothing, until `until_ns`, or until a thread wakes.
    Idle {
        /// The earliest release of the threads that wait for one.
        until_ns: Option<u64>,
    },
}

impl<T: Table> Scheduler<T> {
    /// Returns the answer for the thread at place `id`, when it continues.
    pub fn answer(&self, id: usize) -> Answer {
        let Some(member) = self.table.get(id) else { return Answer::default() };
        let running = self.table.head().running;
        let others = || self.members().filter(|(other, _)| *other != id);
        Answer {
            release_ns: others().filter_map(|(_, m)| m.timely_at()).min(),
            importance: others()
                .filter(|(_, m)| same(&member, m) && m.state == State::Ready)
                .filter_map(|(_, m)| m.importance)
                .min(),
            poll_at_ns: running.filter(|r| r.id == id).map(|r| r.slice_end_ns),
        }
    }

    /// Picks the thread with the earliest release that has passed; otherwise the one with the least
    /// virtual time, or the most important thread of its group.
    pub(super) fn choose(&mut self, now_ns: u64) -> Pick {
        let due = self
            .ready()
            .filter(|(_, m)| m.timely_at().is_some_and(|at| at <= now_ns))
            .min_by_key(|(_, m)| (m.release_ns, m.turn));
        let is_due = due.is_some();
        let Some((id, member)) = due.or_else(|| self.fairest()) else {
            let waiting = self.members().filter(|(_, m)| m.state == State::Waiting);
            return Pick::Idle { until_ns: waiting.filter_map(|(_, m)| m.release_ns).min() };
        };
        self.run(id, member, is_due, now_ns)
    }

    /// Begins a turn of member `id`.
    pub(super) fn run(&mut self, id: usize, member: Member, is_due: bool, now_ns: u64) -> Pick {
        let slice_ns = if is_due { 0 } else { self.slice_ns(id, now_ns) };
        let grace_ns = match member.standing {
            Standing::Cooperative => self.options.slack_ns,
            Standing::Plain | Standing::Demoted(_) => 0,
        };
        let whole_ns = slice_ns.saturating_add(grace_ns).max(self.options.min_slice_ns);
        let slice_end_ns = now_ns.saturating_add(slice_ns);
        let until_ns = now_ns.saturating_add(whole_ns);
        let mut head = self.table.head();
        head.turns += 1;
        head.running = Some(Running { id, slice_end_ns, until_ns });
        self.table.set_head(head);
        self.table.set(id, Some(Member { state: State::Running, turn: head.turns, ..member }));
        Pick::Run { id, due: is_due, slice_end_ns, until_ns }
    }

    /// `min(release - now, period / N)` (§3.2), where the release is that of another thread: the
    /// running thread dispatches its own timers.
    fn slice_ns(&self, id: usize, now_ns: u64) -> u64 {
        let ready = self.ready().count().max(1) as u64;
        let turn_ns = self.options.period_ns / ready;
        let next = self.answer(id).release_ns;
        next.map_or(turn_ns, |at| at.saturating_sub(now_ns).min(turn_ns))
    }

    /// Returns the member with the least virtual time, and of several the one whose last turn was
    /// first. If that is in a group, returns the most important member of the group.
    fn fairest(&self) -> Option<(usize, Member)> {
        let order = |a: &Member, b: &Member| match a.virtual_time.order(b.virtual_time) {
            Ordering::Equal => a.turn.cmp(&b.turn),
            other => other,
        };
        let first = self.ready().min_by(|(_, a), (_, b)| order(a, b))?;
        match first.1.group {
            Group::Own => Some(first),
            Group::Number(_) => self.most_important(&first.1),
        }
    }

    /// Returns the member of a group with the least user virtual time. Members that have told none
    /// take turns with those that have.
    fn most_important(&self, of: &Member) -> Option<(usize, Member)> {
        let group = || self.ready().filter(|(_, m)| same(of, m));
        let told = group()
            .filter_map(|(id, m)| Some((m.importance?, m.turn, id, m)))
            .min_by_key(|(importance, turn, ..)| (*importance, *turn))
            .map(|(.., id, m)| (id, m));
        let silent = group().filter(|(_, m)| m.importance.is_none());
        silent.chain(told).min_by_key(|(_, m)| m.turn)
    }

    fn ready(&self) -> impl Iterator<Item = (usize, Member)> {
        self.members().filter(|(_, m)| m.state == State::Ready)
    }
}
