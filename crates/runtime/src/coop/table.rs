//! The memory of a scheduler's members: a process's own memory, or lines that processes share.

use alloc::vec::Vec;

use super::member::{Demotion, Member};
use super::virtual_time::VirtualTime;

/// The state of a scheduler beside its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The least virtual time of the threads that want the CPU; it never goes back (COOP-3).
    pub least: VirtualTime,
    /// How many turns there were.
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

/// The memory of a scheduler. It belongs to one scheduler at a time: to keep others out is its
/// owner's affair.
pub trait Table {
    /// How many places there are.
    fn places(&self) -> usize;
    /// The member in a place; `None` where the place is free.
    fn get(&self, id: usize) -> Option<Member>;
    /// Sets the member in a place.
    fn set(&mut self, id: usize, member: Option<Member>);
    /// The state beside the members.
    fn head(&self) -> Head;
    /// Sets the state beside the members.
    fn set_head(&mut self, head: Head);
    /// Counts a demotion of that member, for a report.
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

    /// How often the member in a place was demoted for the reason `demotion`; members that had the
    /// place before count too.
    #[must_use]
    pub fn demotions(&self, id: usize, demotion: Demotion) -> u64 {
        self.demotions.get(id).map_or(0, |counts| counts[demotion as usize])
    }
}

impl Table for Members {
    fn places(&self) -> usize {
        // One more than are used: a thread that joins has a place.
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
