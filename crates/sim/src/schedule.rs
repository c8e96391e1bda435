//! Schedulers as programs: a schedule replaces a core's queue and decides which thread has the
//! core.
//!
//! ```text
//!   a thread begins, or is awake ──► arrives ─┐
//!   it sleeps, ends, its time is over ─► stops ├─► picks: thread, until when ───► it has the core
//!   it calls `give` ──► the caller's closure ─┘          ▲                            │
//!                                                        └──────── until then ◄───────┘
//! ```
//!
//! The program is part of the kernel, so it costs nothing except the switches that it causes and,
//! when a thread gives its core away, a system call.

use antiphon_platform::ThreadId;

use crate::events::Event;
use crate::outcome::Account;
use crate::step::call;
use crate::thread::State;
use crate::world::{World, suspend, with};

/// Decides which thread has a core. Threads are numbered in the order in which they were added to
/// the simulation. A schedule must not call functions for simulated threads.
pub trait Schedule: 'static {
    /// A thread becomes runnable: it begins, or has slept.
    fn arrives(&mut self, thread: usize, now_ns: u64);

    /// The thread that has had the core no longer has it, after `ran_ns`.
    fn stops(&mut self, thread: usize, why: Stop, ran_ns: u64, now_ns: u64);

    /// Called when no thread has the core; returns the thread that gets it. That thread must have
    /// arrived, and not have slept or ended since.
    fn picks(&mut self, now_ns: u64) -> Turn;
}

/// The reason why a thread no longer has its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its turn is over; the thread would go on.
    Over,
    /// The thread sleeps, until it arrives again.
    Sleeps,
    /// The thread has ended.
    Ended,
}

/// A turn: a thread that has the core until a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread that has the core, if one has.
    pub thread: Option<usize>,
    /// The time of the next pick, if the core is not given away before. At least a nanosecond from
    /// now.
    pub until_ns: Option<u64>,
}

/// Gives the calling thread's core to the thread that the core's schedule picks next, which may be
/// the caller. Before that, calls `tell` with the time for which the caller has had the core, and
/// the present time. Costs a system call.
///
/// # Panics
///
/// If the core has no schedule.
pub fn give(tell: impl FnOnce(u64, u64)) {
    system_call();
    with(|world| {
        let number = world.my_core();
        let core = &mut world.cores[number as usize];
        assert!(core.schedule.is_some(), "core {number} has a schedule");
        core.told = true;
        tell(world.now_ns.saturating_sub(core.slice_began_ns), world.now_ns);
        world.dispatch(number);
    });
    suspend();
}

/// Makes a system call that does nothing, for queries to the kernel whose answer an experiment
/// knows.
pub fn system_call() {
    call(|world| world.machine.call_ns);
}

/// The time that a thread has had a core, in nanoseconds; `None` if there is no such thread, or it
/// has ended. Costs nothing.
#[must_use]
pub fn ran_ns(thread: ThreadId) -> Option<u64> {
    with(|world| {
        let number = (thread.0 as usize).checked_sub(1)?;
        let there = world.threads.get(number)?;
        (there.state != State::Finished).then(|| world.ran_ns(number, world.now_ns))
    })
}

/// The time that a thread had waited for a core when it last had one, in nanoseconds; `None` if
/// there is no such thread, or it has ended. Costs nothing.
#[must_use]
pub fn waited_ns(thread: ThreadId) -> Option<u64> {
    with(|world| {
        let there = world.threads.get((thread.0 as usize).checked_sub(1)?)?;
        (there.state != State::Finished).then_some(there.waited_ns)
    })
}

/// Returns whether a thread sleeps, or has ended. Costs nothing.
#[must_use]
pub fn sleeps(thread: ThreadId) -> bool {
    with(|world| {
        let number = (thread.0 as usize).checked_sub(1);
        let thread = number.and_then(|number| world.threads.get(number));
        !thread.is_some_and(|thread| {
            !matches!(thread.state, State::Asleep(_) | State::Awaiting | State::Finished)
        })
    })
}

/// Moves the calling thread to another core, where it continues when it gets the core. Costs a
/// sleep and a migration.
///
/// # Panics
///
/// If there is no such core, or one of the two cores has a schedule.
pub fn move_to(core: u32) {
    call(|world| world.machine.park_ns);
    with(|world| world.moves_to(core));
    suspend();
}

impl World {
    /// The time that a thread has had a core by `now_ns`; it must not have changed cores up to
    /// then.
    fn ran_ns(&self, number: usize, now_ns: u64) -> u64 {
        let thread = &self.threads[number];
        let core = &self.cores[thread.core as usize];
        let has_it = core.current == Some(number);
        let since_ns = if has_it { core.slice_began_ns.max(core.back_ns) } else { now_ns };
        thread.ran_ns + now_ns.saturating_sub(since_ns)
    }

    /// Records the usage of all threads at `at_ns`, unless all have ended.
    pub(crate) fn write_down(&mut self, at_ns: u64) {
        let threads = 0..self.threads.len();
        if threads.clone().all(|number| self.threads[number].state == State::Finished) {
            return;
        }
        let ran_ns = threads.map(|number| self.ran_ns(number, at_ns)).collect();
        self.accounts.push(Account { at_ns, ran_ns, counts: self.counts.clone() });
    }

    /// Passes a runnable thread to its core's schedule, if there is one. Returns whether there is.
    pub(crate) fn arrives_by_schedule(&mut self, thread: usize) -> bool {
        let (number, now_ns) = (self.threads[thread].core, self.now_ns);
        let core = &mut self.cores[number as usize];
        let Some(schedule) = &mut core.schedule else { return false };
        schedule.arrives(thread, now_ns);
        if core.current.is_none() {
            self.dispatch(number);
        }
        true
    }

    /// The thread that gets a core next, if the core has a schedule. Reports the last holder to the
    /// schedule first.
    pub(crate) fn scheduled(&mut self, number: u32) -> Option<Option<usize>> {
        let now_ns = self.now_ns;
        let core = &mut self.cores[number as usize];
        let schedule = core.schedule.as_mut()?;
        let told = std::mem::take(&mut core.told);
        if let Some(thread) = core.current.filter(|_| !told) {
            let why = match self.threads[thread].state {
                State::Asleep(_) => Stop::Sleeps,
                State::Finished => Stop::Ended,
                _ => Stop::Over,
            };
            let ran_ns = now_ns.saturating_sub(core.slice_began_ns);
            schedule.stops(thread, why, ran_ns, now_ns);
        }
        let Turn { thread, until_ns } = schedule.picks(now_ns);
        if let Some(until_ns) = until_ns {
            // Time passes between two picks.
            let event = Event::Slice { core: number, slice: core.slice() };
            self.events.push(until_ns.max(now_ns + 1), event);
        }
        Some(thread)
    }

    /// Asks the schedule of a core without a thread again, at the time that it requested.
    pub(crate) fn ask_again(&mut self, number: u32) {
        let core = &self.cores[number as usize];
        if core.schedule.is_some() {
            self.dispatch(number);
        }
    }

    fn moves_to(&mut self, to: u32) {
        let (me, from) = (self.me(), self.my_core());
        assert!(to < self.machine.cores(), "no core {to}");
        let has_one = |core: u32| self.cores[core as usize].schedule.is_some();
        assert!(
            !has_one(from) && !has_one(to),
            "a thread that a program schedules stays on its core"
        );
        self.threads[me].state = State::Asleep(None);
        self.dispatch(from);
        self.migrate(me, to);
        self.events.push(self.now_ns, Event::Arrive { thread: me as u32 });
    }
}
