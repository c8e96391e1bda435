//! A model thread: its status, its knowledge, and its use of the bounds.

use crate::clock::Clock;

/// The reason why a thread does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Not known yet.
    Unknown,
    /// Before a visible operation that is always possible.
    Ready,
    /// Before a wait for the word at `address`, which may be `timed`. `seen` is its location and
    /// the number of accesses that the thread has seen.
    Waiting { address: usize, timed: bool, parked: bool, seen: Option<(u16, usize)> },
    /// In a wait that has checked its condition, at the event with that stamp, and goes on waiting.
    Blocked { stamp: usize, timed: bool },
    /// The thread has ended.
    Finished,
}

/// A model thread; number 0 runs the setup and the final check.
#[derive(Clone)]
pub(crate) struct Thread {
    pub(crate) status: Status,
    /// Number of events of the thread so far.
    pub(crate) count: u16,
    /// The events that happen before its first event.
    pub(crate) start: Clock,
    /// The events that happen before its next event.
    pub(crate) before: Clock,
    /// The events from which program order and reads-from lead to the next event.
    pub(crate) causes: Clock,
    /// The events that an acquire fence would add to `before`.
    pub(crate) acquirable: Clock,
    /// Writes with smaller stamps have become visible, because time has passed.
    pub(crate) settled: usize,
    /// The events that happened before the last release fence.
    pub(crate) released: Clock,
    /// Logical time.
    pub(crate) time: u64,
    /// Between the halves of a read-modify-write or section: the value read.
    pub(crate) half: Option<u64>,
    /// The used part of its bounds: expired spins, spurious wakes, timeouts, crowded answers,
    /// moves.
    pub(crate) expired: u32,
    pub(crate) spurious: u32,
    pub(crate) timeouts: u32,
    pub(crate) crowded: u32,
    pub(crate) moves: u32,
    /// Number of waits that ended because nothing else could happen.
    pub(crate) forced: u32,
    pub(crate) socket: u32,
    /// The lead of its CPU's counter over time, once it was read.
    pub(crate) ahead: Option<u64>,
    pub(crate) random: u32,
    /// Its priority, as the platform's `urgency` returns it.
    pub(crate) urgency: u8,
}

impl Thread {
    pub(crate) fn new(start: Clock, causes: Clock, time: u64, socket: u32, number: u32) -> Self {
        Self {
            status: Status::Unknown,
            count: 0,
            start,
            before: start,
            causes,
            acquirable: Clock::default(),
            settled: 0,
            released: Clock::default(),
            time,
            half: None,
            expired: 0,
            spurious: 0,
            timeouts: 0,
            crowded: 0,
            moves: 0,
            forced: 0,
            socket,
            ahead: None,
            random: (number + 1).wrapping_mul(0x9E37_79B9) | 1,
            urgency: 0,
        }
    }
}
