//! The memory that the threads of a CPU share, across processes: a page of lines.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 64 | [`Header`]: the kind of page and its options; written by the thread that makes it |
//! | 64 | 64 | [`Now`]: the thread that has the CPU, and the clock of the fair queue |
//! | 128 | 64 × [`PLACES`] | [`Line`]: a thread, each on a cache line |
//! | 4224 | 32 × [`PLACES`] | [`Tally`]: per thread, what is not read at each turn |
//!
//! `docs/coop-line.md` describes it byte by byte, with the writers of each field. All zero is an
//! empty page. A time or an importance that may be absent is stored plus one, and 0 is none.
//!
//! - PAGE-1: whatever the bytes are, they are read as a valid table: no place is out of bounds, no
//!   sum overflows, no thread is [`FAR_NS`] apart from the others.

use antiphon_platform::{Atomic, SharedWait, ThreadId};
use core::sync::atomic::Ordering::Relaxed;

use super::bits::Bits;
use super::member::{Demotion, Group, Member};
use super::options::Options;
use super::relay::{MOST_THREAD, Relay};
use super::virtual_time::{VirtualTime, WEIGHT};

/// The number of threads that a page has room for.
pub const PLACES: usize = 64;
/// The version of this layout.
pub const VERSION: u32 = 1;
/// The size of a file of this layout, in bytes; all bytes after the tallies are zero.
pub const PAGE_BYTES: usize = 8192;
/// The first word of a page that is ready for use: `coopline`, as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"coopline");
/// A virtual time that is further than this from the least is invalid, and is read as the least. No
/// such time is written: that of a thread that would be further ahead is limited to just below.
pub const FAR_NS: i64 = 4_000_000_000;

/// The page of a CPU.
#[repr(C, align(64))]
pub struct Page<P: SharedWait> {
    /// The kind of page and its options.
    pub header: Header<P>,
    /// The present state.
    pub now: Now<P>,
    /// The threads.
    pub lines: [Line<P>; PLACES],
    /// Further facts about the threads.
    pub tallies: [Tally<P>; PLACES],
}

/// The kind of page, and how it is scheduled. Constant while a thread uses it, except for `used`.
#[repr(C, align(64))]
pub struct Header<P: SharedWait> {
    /// [`MAGIC`], written last.
    pub magic: P::U64,
    /// [`VERSION`].
    pub version: P::U32,
    /// No line from this index on has a thread.
    pub(super) used: P::U32,
    pub(super) options: [P::U64; 4],
    /// A number that distinguishes the threads of one namespace from those of another; 0: unknown.
    pub namespace: P::U64,
    reserved: P::U64,
}

/// The present state of the CPU.
#[repr(C, align(64))]
pub struct Now<P: SharedWait> {
    /// The thread that has the CPU, and the thread at the table.
    pub relay: Relay<P>,
    pub(super) since_ns: P::U64,
    pub(super) slice_end_ns: P::U64,
    pub(super) until_ns: P::U64,
    pub(super) least: P::U64,
    pub(super) turns: P::U64,
    /// Number of threads that were found dead.
    pub(super) died: P::U64,
}

/// A thread.
#[repr(C, align(64))]
pub struct Line<P: SharedWait> {
    /// The kernel's number of the thread; 0: the line is free.
    pub(super) thread: P::U32,
    /// Number of wake-ups of the thread, which sleeps on this word.
    pub(super) turn: P::U32,
    pub(super) release: P::U64,
    pub(super) importance: P::U64,
    pub(super) virtual_time: P::U64,
    /// The CPU time that the thread was charged, of its total from its start.
    pub(super) charged_ns: P::U64,
    pub(super) others_release: P::U64,
    pub(super) others_importance: P::U64,
    pub(super) group: P::U32,
    pub(super) bits: P::U32,
}

/// The part of a thread's record that is not read at each turn.
#[repr(C, align(32))]
pub struct Tally<P: SharedWait> {
    pub(super) last_turn: P::U64,
    pub(super) demotions: [P::U32; 3],
    /// By how many steps the thread's weight is below the weight that it has joined with, as a
    /// signed number.
    pub(super) steps: P::U32,
    /// The value of `charged_ns` when the thread's last turn began.
    pub(super) began_ns: P::U64,
}

/// Packs a value plus one, with 0 for none. The last two numbers are packed alike.
pub(super) fn pack(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

pub(super) fn unpack(word: u64) -> Option<u64> {
    word.checked_sub(1)
}

/// Writes `value` if the word differs, so that the word stays in the caches of its readers.
/// Relaxed: the table's guard, or the baton, orders the contents of a table; a thread that reads
/// them without these knows that they may be stale.
pub(super) fn put<P: SharedWait>(word: &P::U64, value: u64) {
    if word.load(Relaxed) != value {
        word.store(value, Relaxed);
    }
}

impl<P: SharedWait> Page<P> {
    /// An empty page.
    pub const NEW: Self = Self {
        header: Header {
            magic: P::U64::ZERO,
            version: P::U32::ZERO,
            used: P::U32::ZERO,
            options: [const { P::U64::ZERO }; 4],
            namespace: P::U64::ZERO,
            reserved: P::U64::ZERO,
        },
        now: Now {
            relay: Relay::NEW,
            since_ns: P::U64::ZERO,
            slice_end_ns: P::U64::ZERO,
            until_ns: P::U64::ZERO,
            least: P::U64::ZERO,
            turns: P::U64::ZERO,
            died: P::U64::ZERO,
        },
        lines: [const { Line::NEW }; PLACES],
        tallies: [const { Tally::NEW }; PLACES],
    };

    /// Returns the end of the lines that have a thread; a guess for a thread that is not at the
    /// table.
    pub(super) fn used(&self) -> usize {
        // Relaxed: written at the table.
        (self.header.used.load(Relaxed) as usize).min(PLACES)
    }

    /// Returns the thread in a place.
    pub fn thread(&self, place: usize) -> Option<ThreadId> {
        // Relaxed: a guess if the caller is not at the table.
        let thread = self.lines.get(place)?.thread.load(Relaxed);
        (1..=MOST_THREAD).contains(&thread).then_some(ThreadId(thread))
    }

    /// Returns how often the thread in a place was demoted for the reason `demotion`.
    pub fn demotions(&self, place: usize, demotion: Demotion) -> u32 {
        let tally = self.tallies.get(place);
        // Relaxed: a count.
        tally.map_or(0, |tally| tally.demotions[demotion as usize].load(Relaxed))
    }

    /// Returns the number of threads that were found dead.
    pub fn died(&self) -> u64 {
        // Relaxed: a count.
        self.now.died.load(Relaxed)
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> u64 {
        // Relaxed: a count.
        self.now.turns.load(Relaxed)
    }

    /// Returns the member in a place. May be stale at once.
    pub fn member(&self, place: usize) -> Option<Member> {
        self.thread(place)?;
        // Relaxed, all: a guess.
        let least = VirtualTime(self.now.least.load(Relaxed));
        Some(self.lines[place].member(least, self.tallies[place].last_turn.load(Relaxed)))
    }
}

impl<P: SharedWait> Header<P> {
    /// Writes the options by which the page is scheduled.
    pub fn set_options(&self, options: &Options) {
        let Options { period_ns, min_slice_ns, slack_ns, threshold_ns } = *options;
        for (word, ns) in self.options.iter().zip([period_ns, min_slice_ns, slack_ns, threshold_ns])
        {
            // Relaxed: no thread uses the page before the magic is written.
            word.store(ns, Relaxed);
        }
    }

    /// Returns the options by which the page is scheduled, limited to sensible ranges (PAGE-1).
    pub fn options(&self) -> Options {
        // Relaxed: constant after the magic was written.
        let [period, min_slice, slack, threshold] = [0, 1, 2, 3].map(|i| {
            let word: &P::U64 = &self.options[i];
            word.load(Relaxed)
        });
        let (second, least) = (1_000_000_000, 1_000);
        Options {
            period_ns: period.clamp(least, second),
            min_slice_ns: min_slice.clamp(least, second / 10),
            slack_ns: slack.clamp(least, second / 10),
            threshold_ns: threshold.clamp(least, 10 * second),
        }
    }
}

impl<P: SharedWait> Line<P> {
    const NEW: Self = Self {
        thread: P::U32::ZERO,
        turn: P::U32::ZERO,
        release: P::U64::ZERO,
        importance: P::U64::ZERO,
        virtual_time: P::U64::ZERO,
        charged_ns: P::U64::ZERO,
        others_release: P::U64::ZERO,
        others_importance: P::U64::ZERO,
        group: P::U32::ZERO,
        bits: P::U32::ZERO,
    };

    /// Returns the member on this line, with a virtual time that is comparable with `least`
    /// (PAGE-1). Relaxed, all: see [`put`].
    pub(super) fn member(&self, least: VirtualTime, turn: u64) -> Member {
        let bits = Bits::from_word(self.bits.load(Relaxed));
        let told = VirtualTime(self.virtual_time.load(Relaxed));
        let near = (-FAR_NS..FAR_NS).contains(&told.ahead_ns(least));
        let (group, weight) = self.part_of();
        Member {
            group,
            weight,
            virtual_time: if near { told } else { least },
            state: bits.state(),
            standing: bits.standing(),
            release_ns: unpack(self.release.load(Relaxed)),
            importance: unpack(self.importance.load(Relaxed)),
            turn,
        }
    }

    /// Returns the thread's group, and its weight in that, at least 1. Relaxed, both: see [`put`].
    pub(super) fn part_of(&self) -> (Group, u32) {
        let bits = Bits::from_word(self.bits.load(Relaxed));
        let number = || Group::Number(self.group.load(Relaxed));
        (if bits.is_grouped() { number() } else { Group::Own }, bits.weight())
    }

    /// Writes the scheduler's record of the thread; `least` is the least virtual time. Relaxed,
    /// all: see [`put`].
    pub(super) fn set_member(&self, member: &Member, least: VirtualTime) {
        put::<P>(&self.release, pack(member.release_ns));
        put::<P>(&self.importance, pack(member.importance));
        let is_far = member.virtual_time.ahead_ns(least) >= FAR_NS;
        let furthest = || least.after(FAR_NS as u64 - 1, u64::from(WEIGHT));
        let virtual_time = if is_far { furthest() } else { member.virtual_time };
        put::<P>(&self.virtual_time, virtual_time.0);
        if let Group::Number(number) = member.group {
            self.group.store(number, Relaxed);
        }
        self.bits.store(Bits::of(member).word(), Relaxed);
    }
}

impl<P: SharedWait> Tally<P> {
    const NEW: Self = Self {
        last_turn: P::U64::ZERO,
        demotions: [const { P::U32::ZERO }; 3],
        steps: P::U32::ZERO,
        began_ns: P::U64::ZERO,
    };

    pub(super) fn clear(&self) {
        // Relaxed: see `put`.
        self.last_turn.store(0, Relaxed);
        self.demotions.iter().for_each(|count| count.store(0, Relaxed));
        self.steps.store(0, Relaxed);
        self.began_ns.store(0, Relaxed);
    }

    pub(super) fn count(&self, demotion: Demotion) {
        let count = &self.demotions[demotion as usize];
        // Relaxed: a count, written by the thread at the table.
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}
