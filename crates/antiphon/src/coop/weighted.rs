//! A thread's part in a domain whose members the kernel runs, by weights.

use antiphon_linux::Linux;
use antiphon_linux::schedule::{self, Refused};
use antiphon_platform::ThreadId;
use antiphon_runtime::coop::{self as generic, Answer, Ask, Cooperate, Group, Options, Weigh};

use super::error::JoinError;
use super::memory::Memory;
use super::system::System;

/// A thread's part in a [`Domain`](super::Domain) by weights: see
/// [`Domain::weigh`](super::Domain::weigh). It leaves, and weighs what it did, when this is
/// dropped. In another thread, as in the child of a fork, it is [`Alone`](super::Alone).
#[derive(Debug)]
pub struct Weighted {
    seat: generic::Weighted<Linux, Memory, System, Nice>,
}

impl Weighted {
    pub(super) fn join(memory: Memory, group: Group, weight: u32) -> Result<Self, JoinError> {
        let nice = Nice::read().map_err(JoinError::Weight)?;
        // Who is a group of its own weighs what it does.
        if matches!(group, Group::Number(_)) {
            nice.probe().map_err(JoinError::Weight)?;
        }
        let seat = generic::Weighted::join(memory, System, nice, group, weight);
        Ok(Self { seat: seat.map_err(|_| JoinError::Full)? })
    }

    /// How the domain is scheduled, for those that have the baton.
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

/// The nice value of a thread, as its weight.
#[derive(Debug)]
struct Nice {
    before: i32,
    now: i32,
}

impl Nice {
    /// That of the calling thread.
    fn read() -> Result<Self, Refused> {
        let before = schedule::nice(ThreadId(0))?;
        Ok(Self { before, now: before })
    }

    /// Whether it may weigh more.
    fn probe(&self) -> Result<(), Refused> {
        schedule::set_nice(ThreadId(0), self.before - 1)?;
        schedule::set_nice(ThreadId(0), self.before)
    }
}

impl Weigh for Nice {
    fn step(&mut self, steps: i32) {
        let nice = self.before + steps;
        // Where a right was taken away since, it stays as it is.
        if nice != self.now && schedule::set_nice(ThreadId(0), nice).is_ok() {
            self.now = nice;
        }
    }
}
