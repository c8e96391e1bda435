//! What is recorded, and the words that it takes.
//!
//! | word | has |
//! |---|---|
//! | 0 | bits 0–7: which kind; 8–31: `of`; 32–63: `tasks`, who was found, who made it ready |
//! | 1, 2 | when it began, when it ended |
//! | 3 | when the task was made ready |

/// Something that a worker did, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// What it was.
    pub what: What,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It began to run so many tasks, and was never away from its queue for long.
    Ran {
        /// How many.
        tasks: u32,
    },
    /// It began to run so many tasks, and was away from its queue for all that time, which is long
    /// ([`LONG_NS`]): one of them took it, or each took a part.
    Kept {
        /// How many.
        tasks: u32,
    },
    /// It looked for tasks, and rested where it found none.
    Searched {
        /// What ended that.
        found: Found,
    },
    /// It had nothing to do, until it was woken or something else ended that.
    Rested,
    /// It ran a task of which more is known.
    Task(Sample),
}

/// What ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was over: the crew is closed, or what the worker waited for has come.
    Nothing,
    /// A task in a queue that all share: it came from outside, or had no room elsewhere.
    Shared,
    /// A task of a worker, of this seat; of others that the policy looked at the last.
    Of(u32),
}

/// A task that was recorded for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was made ready, in nanoseconds of the monotonic clock.
    pub ready_ns: u64,
    /// The seat of the worker that made it ready; `None`: from outside.
    pub maker: Option<u32>,
    /// How many tasks it stands for.
    pub of: u32,
}

/// A worker that is away from its queue for longer than so many nanoseconds is so in an event of
/// its own.
pub const LONG_NS: u64 = 250_000;

const RAN: u64 = 1;
const KEPT: u64 = 2;
const SEARCHED: u64 = 3;
const RESTED: u64 = 4;
const TASK: u64 = 5;

const OF_BITS: u32 = 24;
const NOBODY: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

impl Event {
    /// As words of a record.
    #[must_use]
    pub fn words(&self) -> [u64; 4] {
        let (kind, of, who, ready_ns) = match self.what {
            What::Ran { tasks } => (RAN, 0, tasks, 0),
            What::Kept { tasks } => (KEPT, 0, tasks, 0),
            What::Searched { found } => (SEARCHED, 0, found.number(), 0),
            What::Rested => (RESTED, 0, 0, 0),
            What::Task(Sample { ready_ns, maker, of }) => {
                (TASK, of.min((1 << OF_BITS) - 1), maker.unwrap_or(NOBODY), ready_ns)
            }
        };
        let first = kind | u64::from(of) << 8 | u64::from(who) << 32;
        [first, self.began_ns, self.ended_ns, ready_ns]
    }

    /// The event of these words; `None` if they are of none.
    #[must_use]
    pub fn of_words([first, began_ns, ended_ns, ready_ns]: [u64; 4]) -> Option<Self> {
        let (of, who) = ((first as u32) >> 8, (first >> 32) as u32);
        let what = match first & 0xff {
            RAN => What::Ran { tasks: who },
            KEPT => What::Kept { tasks: who },
            SEARCHED => What::Searched { found: Found::of_number(who) },
            RESTED => What::Rested,
            TASK => What::Task(Sample { ready_ns, maker: (who != NOBODY).then_some(who), of }),
            _ => return None,
        };
        Some(Self { began_ns, ended_ns, what })
    }
}

impl Found {
    /// Seats are below 2³¹.
    fn number(self) -> u32 {
        match self {
            Self::Nothing => NOTHING,
            Self::Shared => NOBODY,
            Self::Of(seat) => seat,
        }
    }

    fn of_number(number: u32) -> Self {
        match number {
            NOTHING => Self::Nothing,
            NOBODY => Self::Shared,
            seat => Self::Of(seat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_of_one_event() {
        let sample = |maker, of| What::Task(Sample { ready_ns: 7, maker, of });
        let all = [
            What::Ran { tasks: 0 },
            What::Kept { tasks: u32::MAX },
            What::Searched { found: Found::Nothing },
            What::Searched { found: Found::Shared },
            What::Searched { found: Found::Of((1 << 31) - 2) },
            What::Rested,
            sample(None, 1),
            sample(Some(0), 1024),
            sample(Some((1 << 31) - 2), (1 << OF_BITS) - 1),
        ];
        for what in all {
            let event = Event { began_ns: 1 << 40, ended_ns: u64::MAX, what };
            assert_eq!(Event::of_words(event.words()), Some(event));
        }
        assert_eq!(Event::of_words([0; 4]), None);
        assert_eq!(Event::of_words([99, 1, 2, 3]), None);
    }
}
