//! Where the scheduler's members are: in a process's own memory, or in lines that processes share.

use alloc::vec::Vec;

use super::member::{Demotion, Member};
use super::virtual_time::VirtualTime;

/// What a scheduler knows beside its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The least virtual time of who wants the CPU; it never goes back (COOP-3).
    pub least: VirtualTime,
    /// How many turns there were.
    pub turns: u64,
    /// Who has the CPU, since when and until when.
    pub running: Option<Running>,
}

/// Who has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its place in the table.
    pub id: usize,
    /// When its slice ends.
    pub slice_end_ns: u64,
    /// When it is preempted.
    pub until_ns: u64,
}

/// The memory of a scheduler. It is one scheduler's at a time: what keeps others out is its
/// owner's affair.
pub trait Table {
    /// How many places there are.
    fn places(&self) -> usize;
    /// Who is in a place; nobody where there is none.
    fn get(&self, id: usize) -> Option<Member>;
    /// Says who is.
    fn set(&mut self, id: usize, member: Option<Member>);
    /// What is known beside that.
    fn head(&self) -> Head;
    /// Says it.
    fn set_head(&mut self, head: Head);
    /// One more demotion of that member, for a report.
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
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        let head = Head { least: VirtualTime(0), turns: 0, running: None };
        Self { places: Vec::new(), demotions: Vec::new(), head }
    }

    /// How often the member in a place was demoted for that reason; those who had the place before
    /// count too.
    #[must_use]
    pub fn demotions(&self, id: usize, demotion: Demotion) -> u64 {
        self.demotions.get(id).map_or(0, |counts| counts[demotion as usize])
    }
}

impl Table for Members {
    fn places(&self) -> usize {
        // One more than there are: who joins has a place.
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
