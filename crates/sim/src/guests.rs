//! Virtual machines that share the CPUs, and the hints between them and their host.
//!
//! Two schedulers, one above the other. Each guest has a virtual CPU for each CPU of the machine,
//! and schedules its threads on these as a machine without guests does ([`os`](crate::os)). The
//! [host](crate::host) schedules the virtual CPUs. One that has lost its CPU makes no progress,
//! and its guest does not notice: the thread keeps its virtual CPU, its slice goes on, others of
//! its guest wait for a lock that it owns.
//!
//! ```text
//!   guest 0:   thread ─ queue of virtual CPU 0.j ─┐
//!                                                 ├─ host's queue of CPU j ─► CPU j
//!   guest 1:   thread ─ queue of virtual CPU 1.j ─┘
//! ```
//!
//! # State
//!
//! `World::cores` has, for each CPU, the virtual CPU that is on it; `Hosting` keeps the others
//! as they were when they lost it. So all that the model says of a core holds for a virtual CPU
//! while it runs, and nothing happens to it while it does not.
//!
//! # Invariants
//!
//! - GUEST-1: a virtual CPU is on its CPU, or kept by `Hosting`, and never both.
//! - GUEST-2: the host's queue of a CPU has each kept virtual CPU that has a thread, once, and no
//!   other. The CPU is idle only if that queue is empty.
//! - GUEST-3: a virtual CPU does not lose its CPU between the begin of an access and its effect,
//!   as no thread loses its core there.
//! - GUEST-4: a preemption is put off once, for [`Guests::grace_ns`] at most; what a virtual CPU
//!   had beyond its slice is taken from its next.
//! - GUEST-5: a release that was told takes the CPU only from a virtual CPU that has had as much of
//!   it. So no guest gains by what it tells.
//!
//! A simulation without guests has no `Hosting`: no event, no random number and no comparison of
//! times comes from here, so it is the same run as before, step by step.
//!
//! # Hints
//!
//! From guest to host ([`sections`](Guests::sections)): locks tell their sections as on Linux
//! ([`Hint::SectionBegin`](antiphon_platform::Hint::SectionBegin)), for the price of a store. The
//! host puts a preemption off while the thread that runs is in one, and takes the CPU when the
//! thread has released. They also tell when a thread that sleeps wants to run again
//! ([`releases`](Guests::releases)): its virtual CPU then gets the CPU at once, as programs that
//! poll cooperatively give it to each other.
//!
//! From host to guest ([`preempted`](Guests::preempted)): the guest sees when its virtual CPU will
//! lose the CPU, and which of its virtual CPUs have none. So a waiter that would spin sleeps where
//! another virtual CPU wants the CPU, as it does where another thread wants it; a lock is then not
//! handed to it, because it is asleep. A spinner that can't sleep gives the virtual CPU away, once
//! it has spun for [`Budget::PATIENCE`] without any thread in a section of its guest being on a
//! CPU.

use std::collections::VecDeque;

use antiphon_platform::Budget;

use crate::outcome::Steals;
use crate::random::Random;

/// Virtual machines, each with a virtual CPU for each CPU of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guests {
    /// The number of virtual machines.
    pub count: u32,
    /// The time that a virtual CPU keeps its CPU while another wants it.
    pub slice_ns: u64,
    /// The cost of a switch from one virtual CPU to another.
    pub switch_ns: u64,
    /// The longest time for which a preemption is put off.
    pub grace_ns: u64,
    /// Whether guests tell the host their critical sections.
    pub sections: bool,
    /// Whether guests tell the host when their sleeping threads want to run again.
    pub releases: bool,
    /// Whether the host tells guests of preemptions, those to come and those that have been.
    pub preempted: bool,
}

/// The host, and what it knows; `V` is a virtual CPU.
pub(crate) struct Hosting<V> {
    pub(crate) guests: Guests,
    pub(crate) cpus: Vec<Cpu<V>>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) counts: Steals,
}

/// A CPU, as the host sees it.
pub(crate) struct Cpu<V> {
    /// The guest whose virtual CPU is on it.
    pub(crate) guest: u32,
    /// The virtual CPUs of the guests, except of the one that is on it.
    pub(crate) off: Vec<V>,
    /// The guests whose virtual CPUs wait for it.
    pub(crate) queue: VecDeque<u32>,
    /// Counts switches; voids the ends of earlier slices.
    pub(crate) slice: u32,
    pub(crate) ends_ns: u64,
    pub(crate) foreseen: bool,
    /// Whether the slice is over, but the current thread has a step in flight.
    pub(crate) due: bool,
    /// Whether the end of the slice was put off.
    pub(crate) put_off: bool,
    /// The time that each guest has had beyond its slices.
    pub(crate) debts_ns: Vec<u64>,
    /// The time that each guest has had, without the present turn.
    pub(crate) had_ns: Vec<u64>,
}

/// The progress of a guest.
#[derive(Default)]
pub(crate) struct Seen {
    /// The time of the last beginning or end of a section.
    pub(crate) moved_ns: u64,
    /// The time of the last release of a lock.
    pub(crate) released_ns: u64,
}

impl<V: Default> Hosting<V> {
    pub(crate) fn new(guests: Guests, cpus: u32, seed: u64) -> Self {
        // A stream that no thread has. The slices of CPUs must not end together.
        let mut random = Random::new(seed, u64::MAX);
        let cpu = |_| Cpu {
            guest: 0,
            off: (0..guests.count).map(|_| V::default()).collect(),
            queue: VecDeque::new(),
            slice: 0,
            ends_ns: random.up_to(guests.slice_ns),
            foreseen: false,
            due: false,
            put_off: false,
            debts_ns: vec![0; guests.count as usize],
            had_ns: vec![0; guests.count as usize],
        };
        Self {
            guests,
            cpus: (0..cpus).map(cpu).collect(),
            seen: (0..guests.count).map(|_| Seen::default()).collect(),
            counts: Steals::default(),
        }
    }
}

impl Seen {
    /// Notes that a thread of the guest, which runs, begins or ends a section, or `releases` a
    /// lock.
    pub(crate) fn moves(&mut self, releases: bool, now_ns: u64) {
        self.moved_ns = now_ns;
        if releases {
            self.released_ns = now_ns;
        }
    }

    /// Returns whether no section has begun or ended for as long as a spinner is patient.
    pub(crate) fn stalls(&self, now_ns: u64) -> bool {
        now_ns >= self.moved_ns + u64::from(Budget::PATIENCE.ns)
    }
}
