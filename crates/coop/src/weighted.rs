//! Membership by weight: the kernel schedules the members.

use std::cell::Cell;

use antiphon_linux::Linux;
use antiphon_linux::schedule::{self, Refused};
use antiphon_platform::ThreadId;
use antiphon_runtime::coop::{
    self as generic, Answer, Ask, Cooperate, Group, MOST_STEPS, Options, Weigh,
};

use super::error::JoinError;
use super::memory::Memory;
use super::system::System;

/// The membership of a thread in a [`Domain`](super::Domain) by weight: see
/// [`Domain::weigh`](super::Domain::weigh). When this is dropped, the thread leaves, and has its
/// earlier weight again. In another thread, and in the child of a fork, it acts as
/// [`Alone`](super::Alone).
#[derive(Debug)]
pub struct Weighted {
    seat: generic::Weighted<Linux, Memory, System, Nice>,
}

impl Weighted {
    pub(super) fn join(memory: Memory, group: Group, weight: u32) -> Result<Self, JoinError> {
        let nice = Nice::read().map_err(JoinError::Weight)?;
        // A thread that is its own group keeps its weight.
        if matches!(group, Group::Number(_)) {
            nice.probe().map_err(JoinError::Weight)?;
        }
        let seat = generic::Weighted::join(memory, System, nice, group, weight);
        Ok(Self { seat: seat? })
    }

    /// Returns the schedule of the domain, for the members that have the baton.
    #[must_use]
    pub fn options(&self) -> Options {
        self.seat.page().header.options()
    }
}

impl Cooperate for Weighted {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.seat.poll(ask, wait)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        self.seat.tell(release_ns);
    }
}

/// The nice value of a thread, as its weight. All weights of a thread step from the nice value that
/// it had before the first.
#[derive(Debug)]
struct Nice {
    before: i32,
}

thread_local! {
    /// The number of weights that the thread has, the nice value that it had before, and the nice
    /// value that they have set.
    static STEPPED: Cell<(u32, i32, i32)> = const { Cell::new((0, 0, 0)) };
}

impl Nice {
    /// Reads the nice value that the calling thread had before its weights.
    fn read() -> Result<Self, Refused> {
        let (count, mut before, mut now) = STEPPED.get();
        if count == 0 {
            before = schedule::nice(ThreadId(0))?;
            now = before;
        }
        STEPPED.set((count + 1, before, now));
        Ok(Self { before })
    }

    /// Checks whether the thread may raise its weight as far as needed.
    fn probe(&self) -> Result<(), Refused> {
        let (_, _, now) = STEPPED.get();
        schedule::set_nice(ThreadId(0), self.before - MOST_STEPS)?;
        schedule::set_nice(ThreadId(0), now)
    }
}

impl Weigh for Nice {
    fn step(&mut self, steps: i32) {
        let nice = self.before + steps;
        // When the thread is ending, its thread-locals are gone, and each step is a system call.
        let stepped = STEPPED.try_with(Cell::get).ok();
        // If the right was revoked meanwhile, the nice value stays as it is.
        if stepped.is_none_or(|(_, _, now)| now != nice)
            && schedule::set_nice(ThreadId(0), nice).is_ok()
            && let Some((count, before, _)) = stepped
        {
            STEPPED.set((count, before, nice));
        }
    }
}

impl Drop for Nice {
    fn drop(&mut self) {
        // If the thread-local is gone, the thread is ending, and steps no more.
        let _ = STEPPED.try_with(|stepped| {
            let (count, before, now) = stepped.get();
            stepped.set((count.saturating_sub(1), before, now));
        });
    }
}
