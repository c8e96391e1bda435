//! Reader indicators: where a readers-writer lock counts its readers by socket.

use crate::{Atomic, Platform};

/// How many lines an [`Indicator`] has; on a machine with more sockets, some share one.
pub const LINES: usize = 16;

/// The reader indicator of one lock at a time: never-freed memory of a line for each socket, and
/// five for all. Named in the lock by its place in [`Platform::indicators`], plus 1.
///
/// | line | written by | read by |
/// |---|---|---|
/// | `claimed`, `joined` | its lock's taker; the first reader of each socket | all |
/// | `gate` | a thread that lets readers in | readers that wait for that |
/// | `owner` | writers that own the lock | the same |
/// | `writers`, which are two | writers that wait for each other | the same |
/// | each of `lines` | readers of a socket | writers |
///
/// The lock defines the meaning of the words. All are zero in an indicator that was never used. In
/// the child of a fork they are as they were in the parent, as the locks are.
#[repr(C, align(64))]
pub struct Indicator<P: Platform> {
    /// Whether a lock has it.
    pub claimed: P::U32,
    /// The lines that are in use, a bit each, and whether readers sleep.
    pub joined: P::U32,
    /// How often readers were let in.
    pub gate: IndicatorGate<P>,
    /// The owner's words.
    pub owner: IndicatorOwner<P>,
    /// Where writers wait for each other.
    pub writers: IndicatorWriters<P>,
    /// The lines.
    pub lines: [IndicatorLine<P>; LINES],
}

/// How often readers were let in, for those that wait for the next time.
#[repr(C, align(64))]
pub struct IndicatorGate<P: Platform>(pub P::U32);

/// The notes of writers in an [`Indicator`], one at a time.
#[repr(C, align(64))]
pub struct IndicatorOwner<P: Platform> {
    /// When the first of the writers that follow one another had the lock.
    pub since_ns: P::U64,
    /// Until when readers are let in, even if a writer waits.
    pub until_ns: P::U64,
    /// How often in a row few readers had come after the last writer.
    pub idle: P::U32,
    /// How many readers had entered when a writer came last.
    pub entered: P::U64,
    /// Which of the writers that hand the lock to each other has it.
    pub turn: P::U32,
}

/// Where the writers of a lock wait for each other.
#[repr(C, align(64))]
pub struct IndicatorWriters<P: Platform> {
    /// The mutex that they wait for.
    pub mutex: IndicatorMutex<P>,
    /// How many of them there are.
    pub comers: IndicatorComers<P>,
}

/// How many writers wait, on a line of its own: each that comes writes it, and the mutex is on the
/// way of a hand-over.
#[repr(C, align(64))]
pub struct IndicatorComers<P: Platform>(pub P::U64);

/// The eight bytes of a mutex, in the words of its primitive.
#[repr(C, align(8))]
pub struct IndicatorMutex<P: Platform> {
    /// Its byte 0.
    pub locked: P::U8,
    /// Its byte 1.
    pub policy: P::U8,
    /// Its bytes 2 and 3.
    pub head: P::U16,
    /// Its bytes 4 to 7.
    pub tail: P::U32,
}

/// The readers of one socket.
#[repr(C, align(64))]
pub struct IndicatorLine<P: Platform> {
    /// How many have entered.
    pub entered: P::U64,
    /// How many have left, and the waiter to wake for it.
    pub left: P::U64,
    /// The last reader that has gone to sleep, by its node's name.
    pub asleep: P::U32,
}

impl<P: Platform> Indicator<P> {
    /// An indicator that was never used.
    pub const NEW: Self = Self {
        claimed: P::U32::ZERO,
        joined: P::U32::ZERO,
        gate: IndicatorGate(P::U32::ZERO),
        owner: IndicatorOwner {
            since_ns: P::U64::ZERO,
            until_ns: P::U64::ZERO,
            idle: P::U32::ZERO,
            entered: P::U64::ZERO,
            turn: P::U32::ZERO,
        },
        writers: IndicatorWriters {
            mutex: IndicatorMutex {
                locked: P::U8::ZERO,
                policy: P::U8::ZERO,
                head: P::U16::ZERO,
                tail: P::U32::ZERO,
            },
            comers: IndicatorComers(P::U64::ZERO),
        },
        lines: [const {
            IndicatorLine { entered: P::U64::ZERO, left: P::U64::ZERO, asleep: P::U32::ZERO }
        }; LINES],
    };
}
