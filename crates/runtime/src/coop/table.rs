//! The storage of a scheduler's members: a process's own memory, or lines that processes share.

use alloc::vec::Vec;

use super::member::{Demotion, Member};
use super::virtual_time::VirtualTime;

/// The state of a scheduler apart from its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The least virtual time of the threads that want the CPU; it never decreases (COOP-3).
    pub least: VirtualTime,
    /// The number of turns.
    pub turns: u64,
    /// The thread that has the CPU, and until when.
    pub running: Option<Running>,
}

/// The thread that has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The place of the thread in the table.
    pub id: usize,
    /// When the slice of the thread ends.
    pub slice_end_ns: u64,
    /// When the thread is preempted.
    pub until_ns: u64,
}

/// The storage of a scheduler. One scheduler uses it at a time; its owner must ensure that.
pub trait Table {
    /// Returns the number of places.
    fn places(&self) -> usize;
    /// Returns the member in a place; `None` if the place is free.
    fn get(&self, id: usize) -> Option<Member>;
    /// Sets the member in a place.
    fn set(&mut self, id: usize, member: Option<Member>);
    /// Returns the state apart from the members.
    fn head(&self) -> Head;
    /// Sets the state apart from the members.
    fn set_head(&mut self, head: Head);
    /// Counts a demotion of the member in place `id`, for a report.
    fn count(&mut self, id: usize, demotion: Demotion);
}

/// A table in a process's own memory.
#[derive(Clone, Debug, Default)]
pub struct Members {
    places: Vec<Option<Member>>,
    demotions: Vec<[u64; Demotion::ALL.len()]>,
    head: Head,
}

impl Members {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        let head = Head { least: VirtualTime(0), turns: 0, running: None };
        Self { places: Vec::new(), demotions: Vec::new(), head }
    }

    /// Returns how often the member in a place was demoted for the reason `demotion`, including
    /// earlier members in that place.
    #[must_use]
    pub fn demotions(&self, id: usize, demotion: Demotion) -> u64 {
        self.demotions.get(id).map_or(0, |counts| counts[demotion as usize])
    }
}

impl Table for Members {
    fn places(&self) -> usize {
        // One more than are used, so that a thread that joins finds a place.
        self.places.len() + 1
    }

    fn get(&self, id: usize) -> Option<Member> {
        self.places.get(id).copied().flatten()
    }

    fn set(&mut self, id: usize, member: Option<Member>) {
        if id >= self.places.len() {
            self.places.resize(id + 1, None);
            self.demotions.resize(id + 1, [0; Demotion::ALL.len()]);
        }
        self.places[id] = member;
    }

    fn head(&self) -> Head {
        self.head
    }

    fn set_head(&mut self, head: Head) {
        self.head = head;
    }

    fn count(&mut self, id: usize, demotion: Demotion) {
        self.demotions[id][demotion as usize] += 1;
    }
}
