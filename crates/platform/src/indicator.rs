//! Reader indicators: cache lines on which a readers-writer lock counts its readers by socket.

use crate::{Atomic, Platform};

/// Number of readers' lines in an [`Indicator`]; on a machine with more sockets, some share a line.
pub const LINES: usize = 16;

/// A reader indicator, which belongs to at most one lock at a time: a cache line for each socket,
/// and five for all of them, in memory that is never freed. The lock names it by its index in
/// [`Platform::indicators`] plus 1.
///
/// | line | written by | read by |
/// |---|---|---|
/// | `claimed`, `joined` | its lock's taker; the first reader of each socket | all |
/// | `gate` | a thread that lets readers in | readers that wait for that |
/// | `owner` | writers that own the lock | the same |
/// | `writers` (two lines) | writers that wait for each other | the same |
/// | each of `lines` | readers of a socket | writers |
///
/// The lock defines the meaning of the words. All are zero in an indicator that was never used. The
/// child of a fork inherits their values, as it inherits the locks.
#[repr(C, align(64))]
pub struct Indicator<P: Platform> {
    /// Whether the indicator belongs to a lock.
    pub claimed: P::U32,
    /// One bit for each line that is in use, and one if readers sleep.
    pub joined: P::U32,
    /// How often readers were let in.
    pub gate: IndicatorGate<P>,
    /// The words of the writer that owns the lock.
    pub owner: IndicatorOwner<P>,
    /// The words by which writers wait for each other.
    pub writers: IndicatorWriters<P>,
    /// The lines.
    pub lines: [IndicatorLine<P>; LINES],
}

/// Number of times that readers were let in, for readers that wait for the next one.
#[repr(C, align(64))]
pub struct IndicatorGate<P: Platform>(pub P::U32);

/// The words of the writer that owns the lock of an [`Indicator`].
#[repr(C, align(64))]
pub struct IndicatorOwner<P: Platform> {
    /// The time at which the first writer of the present run of writers got the lock.
    pub since_ns: P::U64,
    /// The time until which readers are let in, even if a writer waits.
    pub until_ns: P::U64,
    /// Number of consecutive writers that found few new readers since the writer before them.
    pub idle: P::U32,
    /// Number of readers that had entered when the last writer came.
    pub entered: P::U64,
    /// The position of the owner in its turn, a run of writers that hand the lock to each other.
    pub turn: P::U32,
}

/// The words by which the writers of a lock wait for each other.
#[repr(C, align(64))]
pub struct IndicatorWriters<P: Platform> {
    /// The mutex that they wait for.
    pub mutex: IndicatorMutex<P>,
    /// Number of writers that wait.
    pub comers: IndicatorComers<P>,
}

/// Number of writers that wait, on its own cache line: each arriving writer writes it, and a
/// hand-off needs the line of the mutex.
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
    /// Number of readers that have entered.
    pub entered: P::U64,
    /// Number of readers that have left, and the waiter to wake when they leave.
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
