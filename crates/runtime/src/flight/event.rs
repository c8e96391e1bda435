//! The recorded events, and their encoding as words.
//!
//! | word | has |
//! |---|---|
//! | 0 | bits 0–7: which kind; 8–31: `of`; 32–63: `tasks`, the seat found, or the maker's |
//! | 1, 2 | when it began, when it ended |
//! | 3 | when the task was made ready |

/// An activity of a worker; times in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When the event began.
    pub began_ns: u64,
    /// When the event ended.
    pub ended_ns: u64,
    /// The kind of event.
    pub what: What,
}

/// The kinds of event of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The worker began to run `tasks` tasks, and was never away from its queue for long.
    Ran {
        /// The number of tasks.
        tasks: u32,
    },
    /// The worker began to run `tasks` tasks, and was away from its queue for all that time, which
    /// is long ([`LONG_NS`]): one task took it, or each took a part.
    Kept {
        /// The number of tasks.
        tasks: u32,
    },
    /// The worker searched for tasks, and rested if it found none.
    Searched {
        /// The result that ended the search.
        found: Found,
    },
    /// The worker had nothing to do, until it was woken or its rest ended otherwise.
    Rested,
    /// The worker ran a task about which more is known.
    Task(Sample),
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The search was over: the crew is closed, or the awaited event has come.
    Nothing,
    /// A task in a shared queue: it came from outside, or had no room elsewhere.
    Shared,
    /// A task of the worker of this seat. If the policy accessed several queues, this is the seat
    /// of the last.
    Of(u32),
}

/// A recorded task that represents several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the task was made ready, in nanoseconds of the monotonic clock.
    pub ready_ns: u64,
    /// The seat of the worker that made the task ready; `None`: from outside.
    pub maker: Option<u32>,
    /// The number of tasks that the record represents.
    pub of: u32,
}

/// A worker that is away from its queue for longer than this, in nanoseconds, gets a separate event
/// for that.
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
    /// Returns the event as the words of a record.
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

    /// Returns the event of these words; `None` if they are not an event.
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
