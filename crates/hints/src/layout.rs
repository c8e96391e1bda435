//! The layout of the page. This file is the only one that defines it: the BPF program is compiled
//! with the header that [`c_header`] returns.
//!
//! A page is 4096 bytes: a [`Header`] of 128 bytes, then 31 [slots](Slot) of 128 bytes. A slot has
//! two cache lines: the first is written by its thread, the second by the scheduler. Each field is
//! written with one plain store and read with one plain load: fields are independent of each
//! other, and a reader that sees one new and one old value takes a decision that is merely late.
//!
//! A change of a field's meaning or place increments [`VERSION`].

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The first word of a page.
pub const MAGIC: u32 = 0x416e_7469;
/// The version of the layout.
pub const VERSION: u32 = 2;
/// The bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// The places of a page: that of the header, and those of slots. Slots are counted from 1.
pub const SLOTS: usize = PAGE_BYTES / size_of::<Slot>();

/// The scheduler writes to the slot of a running thread at each tick of the kernel's clock, which
/// is every 10 ms at most. A thread that runs and sees an older answer is not served.
pub const FRESH_NS: u64 = 50_000_000;

/// The head of a page. The process that maps the page checks it; the scheduler decides nothing by
/// it.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU32,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// 1: the scheduler runs all threads; 0: those that ask for it.
    pub whole: AtomicU32,
    /// How many threads of the process have lost the CPU in a critical section and wait for it.
    pub stalled: AtomicU32,
}

/// What one thread says, and what it is told. All zero: nothing. A slot is that when a thread gets
/// it, whatever the thread has left that had it before.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Slot {
    /// When the thread's earliest timer is due, in nanoseconds of `CLOCK_MONOTONIC`; 0: never.
    pub release_ns: AtomicU64,
    /// How many critical sections the thread is in.
    pub section: AtomicU32,
    /// How often the thread has polled. It is cooperative from a poll on, until it is demoted.
    pub polls: AtomicU32,
    /// The least user virtual time of the thread's best-effort work; 0: none told. Members of a
    /// group are served by it.
    pub importance: AtomicU64,
    /// The group of threads of this user with which the thread shares a part of the CPU; 0: none.
    pub group: AtomicU32,
    /// 0.
    pub unused: AtomicU32,
    /// Room for more hints, up to the end of the cache line. 0.
    pub room: [AtomicU64; 4],
    /// When the scheduler last wrote here, in nanoseconds of `CLOCK_MONOTONIC`.
    pub seen_ns: AtomicU64,
    /// When the thread should poll again.
    pub until_ns: AtomicU64,
    /// The earliest release of other cooperative threads; 0: there is none.
    pub next_release_ns: AtomicU64,
    /// A [`Standing`].
    pub standing: AtomicU32,
    /// Not 0: a more urgent thread waits for the end of the critical section.
    pub wanted: AtomicU32,
    /// How often the thread was preempted.
    pub preempted: AtomicU32,
    /// How often the thread was preempted within a critical section.
    pub preempted_inside: AtomicU32,
    /// How often the thread was demoted for having had more than its share.
    pub policed: AtomicU32,
    /// How often a preemption was put off for a critical section.
    pub graces: AtomicU32,
    /// The least [importance](Self::importance) of the other members of the group that are ready;
    /// 0: there is none.
    pub others_importance: AtomicU64,
    /// How many threads waited for a CPU when the turn began, at the last tick of the clock, or
    /// when one began to wait for this CPU, whichever was last.
    pub waiting: AtomicU32,
}

/// A page.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Page {
    /// The head.
    pub header: Header,
    /// The slots; number `n` is at `n - 1`.
    pub slots: [Slot; SLOTS - 1],
}

const _: () = assert!(size_of::<Page>() == PAGE_BYTES && size_of::<Slot>() == 128);

/// How the scheduler treats a thread: as `antiphon_runtime::coop::Standing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The thread has never polled: it gets its fair share, at no particular time.
    Plain,
    /// The thread runs when it is due.
    Cooperative,
    /// Demoted until it polls: it ran beyond its slice and the slack while others waited.
    Overrun,
    /// Demoted until it polls: it slept otherwise than by polling.
    Slept,
    /// Demoted until its share is no longer exceeded.
    Share,
}

impl Standing {
    /// All of them; each at its number in a slot.
    pub const ALL: [Self; 5] =
        [Self::Plain, Self::Cooperative, Self::Overrun, Self::Slept, Self::Share];

    /// Returns the standing of a number in a slot; `None` for a number of no standing.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Returns the name that reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cooperative => "cooperative",
            Self::Overrun => "overrun",
            Self::Slept => "slept",
            Self::Share => "share",
        }
    }
}

/// What the scheduler told a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the thread should poll again.
    pub until_ns: u64,
    /// The earliest release of other cooperative threads.
    pub next_release_ns: Option<u64>,
    /// How the thread is treated.
    pub standing: Standing,
    /// How often the thread was preempted.
    pub preempted: u32,
    /// How often the thread was preempted within a critical section.
    pub preempted_inside: u32,
    /// How often the thread was demoted for its share.
    pub policed: u32,
    /// How often a preemption was put off for a critical section.
    pub graces: u32,
    /// The least importance of the other members of the group that are ready.
    pub importance: Option<u64>,
}

impl Slot {
    /// Reads the second line. Relaxed everywhere: no field says anything about another's memory.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let release_ns = self.next_release_ns.load(Ordering::Relaxed);
        let importance = self.others_importance.load(Ordering::Relaxed);
        Answer {
            until_ns: self.until_ns.load(Ordering::Relaxed),
            next_release_ns: (release_ns != 0).then_some(release_ns),
            standing: Standing::of(self.standing.load(Ordering::Relaxed))
                .unwrap_or(Standing::Plain),
            preempted: self.preempted.load(Ordering::Relaxed),
            preempted_inside: self.preempted_inside.load(Ordering::Relaxed),
            policed: self.policed.load(Ordering::Relaxed),
            graces: self.graces.load(Ordering::Relaxed),
            importance: (importance != 0).then_some(importance),
        }
    }
}

/// The fields of a slot: name, type in C, offset.
const FIELDS: [(&str, &str, usize); 16] = [
    ("release_ns", "__u64", offset_of!(Slot, release_ns)),
    ("section", "__u32", offset_of!(Slot, section)),
    ("polls", "__u32", offset_of!(Slot, polls)),
    ("importance", "__u64", offset_of!(Slot, importance)),
    ("group", "__u32", offset_of!(Slot, group)),
    ("seen_ns", "__u64", offset_of!(Slot, seen_ns)),
    ("until_ns", "__u64", offset_of!(Slot, until_ns)),
    ("next_release_ns", "__u64", offset_of!(Slot, next_release_ns)),
    ("standing", "__u32", offset_of!(Slot, standing)),
    ("wanted", "__u32", offset_of!(Slot, wanted)),
    ("preempted", "__u32", offset_of!(Slot, preempted)),
    ("preempted_inside", "__u32", offset_of!(Slot, preempted_inside)),
    ("policed", "__u32", offset_of!(Slot, policed)),
    ("graces", "__u32", offset_of!(Slot, graces)),
    ("others_importance", "__u64", offset_of!(Slot, others_importance)),
    ("waiting", "__u32", offset_of!(Slot, waiting)),
];

/// The fields of the head: name, offset. All are `__u32`.
const HEAD: [(&str, usize); 4] = [
    ("magic", offset_of!(Header, magic)),
    ("version", offset_of!(Header, version)),
    ("whole", offset_of!(Header, whole)),
    ("stalled", offset_of!(Header, stalled)),
];

/// Returns the layout as a header for C, with assertions on each offset.
#[must_use]
pub fn c_header() -> String {
    let mut text = String::from("/* Generated from crates/hints/src/layout.rs. */\n#pragma once\n");
    text += &format!("#define HINTS_VERSION {VERSION}\n#define HINTS_SLOTS {SLOTS}\n");
    for (number, standing) in Standing::ALL.iter().enumerate() {
        text += &format!("#define STANDING_{} {number}\n", standing.name().to_uppercase());
    }
    text += "struct hints_header {\n";
    for (name, _) in HEAD {
        text += &format!("\t__u32 {name};\n");
    }
    text += "} __attribute__((aligned(128)));\n";
    text += "struct hints_slot {\n";
    for (name, kind, _) in FIELDS {
        let line = if name == "seen_ns" { " __attribute__((aligned(64)))" } else { "" };
        text += &format!("\t{kind} {name}{line};\n");
    }
    text += "} __attribute__((aligned(128)));\n";
    text += "struct hints_page {\n\tstruct hints_header header;\n";
    text += "\tstruct hints_slot slots[HINTS_SLOTS - 1];\n};\n";
    let fields = FIELDS.iter().map(|&(name, _, offset)| ("slot", name, offset));
    let head = HEAD.iter().map(|&(name, offset)| ("header", name, offset));
    for (of, name, offset) in head.chain(fields) {
        text += &format!(
            "_Static_assert(__builtin_offsetof(struct hints_{of}, {name}) == {offset}, \"\");\n"
        );
    }
    text + &format!("_Static_assert(sizeof(struct hints_page) == {PAGE_BYTES}, \"\");\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_writes_to_a_line_of_its_own() {
        let line = |offset: usize| offset / 64;
        let first_answer = FIELDS.iter().position(|(name, ..)| *name == "seen_ns").unwrap();
        for (at, (name, kind, offset)) in FIELDS.iter().enumerate() {
            assert_eq!(line(*offset), usize::from(at >= first_answer), "{name}");
            let bytes = if *kind == "__u64" { 8 } else { 4 };
            assert_eq!(offset % bytes, 0, "{name} is not aligned");
        }
    }

    #[test]
    fn the_header_has_every_field_and_its_offset() {
        let header = c_header();
        for (name, _, offset) in FIELDS {
            assert!(header.contains(&format!("slot, {name}) == {offset},")), "{header}");
        }
        for (name, offset) in HEAD {
            assert!(header.contains(&format!("header, {name}) == {offset},")), "{header}");
        }
        assert!(header.contains("STANDING_COOPERATIVE 1"), "{header}");
    }

    #[test]
    fn an_unknown_standing_is_plain() {
        let slot = Slot::default();
        slot.standing.store(77, Ordering::Relaxed);
        assert_eq!(slot.answer().standing, Standing::Plain);
        slot.standing.store(4, Ordering::Relaxed);
        assert_eq!(slot.answer().standing, Standing::Share);
    }
}
