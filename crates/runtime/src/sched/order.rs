//! The order in which a worker runs its tasks.
//!
//! | order | which task is next | starvation-free |
//! |---|---|---|
//! | [`Fifo`] | the first that became ready | yes |
//! | [`Lifo`] | the last, whose data is still in the cache | no |
//! | [`Stochastic`] | the first, in `first` of 256 cases; otherwise the last | almost surely |
//! | [`Switch`] | the first ones for a while, then the last ones | yes |
//! | [`Reverse`] | the last; each `every`th time the first | yes |
//! | [`Adaptive`] | the last, until some have waited for long; then these, in order | yes |
//!
//! Starvation-free: a ready task runs after a finite time, even if each task makes others ready for
//! ever. `tests/sim_starvation.rs` shows this, or its absence, for each order.

/// The end of its queue from which a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first that was put in.
    Front,
    /// The last that was put in.
    Back,
}

/// An order of tasks.
pub trait Order: Send + Sync {
    /// The state that a worker keeps from one task to the next.
    type State: Default + Send;

    /// Returns the end from which the next task is taken.
    fn next(&self, state: &mut Self::State, ask: &impl Ask) -> End;
}

/// Queries that an order may make.
pub trait Ask {
    /// Returns a pseudo-random number.
    fn random(&self) -> u32;
    /// Returns how many tasks the worker has, including the next; thieves may take some at once.
    fn tasks(&self) -> u64;
    /// Returns the time of the monotonic clock, in nanoseconds.
    fn now_ns(&self) -> u64;
}

/// First in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Order for Fifo {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), _: &impl Ask) -> End {
        End::Front
    }
}

/// Last in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lifo;

impl Order for Lifo {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), _: &impl Ask) -> End {
        End::Back
    }
}

/// Takes the first task at random, with a given probability; otherwise the last.
#[derive(Clone, Copy, Debug)]
pub struct Stochastic {
    /// In how many of 256 cases the first task is taken.
    pub first: u8,
}

impl Order for Stochastic {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), ask: &impl Ask) -> End {
        end(ask.random() % 256 < u32::from(self.first))
    }
}

/// Changes to the other end after each `every` tasks.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The number of tasks taken from one end; 0 counts as 1.
    pub every: u32,
}

impl Order for Switch {
    /// Number of tasks taken.
    type State = u32;

    #[inline]
    fn next(&self, taken: &mut u32, _: &impl Ask) -> End {
        let turn = *taken / self.every.max(1);
        *taken = taken.wrapping_add(1);
        end(turn.is_multiple_of(2))
    }
}

/// Last in, first out, except that each `every`th task is the first.
#[derive(Clone, Copy, Debug)]
pub struct Reverse {
    /// The period, in tasks, at which the first is taken; 0 counts as 1.
    pub every: u32,
}

impl Order for Reverse {
    /// Number of tasks taken.
    type State = u32;

    #[inline]
    fn next(&self, taken: &mut u32, _: &impl Ask) -> End {
        *taken = taken.wrapping_add(1);
        end(taken.is_multiple_of(self.every.max(1)))
    }
}

/// Last in, first out, until some tasks have waited for `age_ns` nanoseconds; then these, in order.
///
/// A worker remembers when it last read the clock for this, and how many tasks it had then. So a
/// task waits at most twice that time before its turn comes, and then for the tasks that were there
/// before it. Reads the clock once for each task, unless it is the only one.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    /// For how long the last tasks are preferred, in nanoseconds.
    pub age_ns: u64,
}

/// The state of a worker of an [`Adaptive`] order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The number of tasks left of those at that reading, at most: thieves take from these, unseen.
    old: u64,
    /// The time of that reading.
    since_ns: u64,
    /// Whether these old tasks are next.
    due: bool,
}

impl Order for Adaptive {
    type State = Mark;

    #[inline]
    fn next(&self, mark: &mut Mark, ask: &impl Ask) -> End {
        let tasks = ask.tasks();
        mark.old = mark.old.min(tasks);
        if mark.old == 0 && tasks > 1 {
            *mark = Mark { old: tasks, since_ns: ask.now_ns(), due: false };
        } else if mark.old > 0 && !mark.due {
            mark.due = ask.now_ns().saturating_sub(mark.since_ns) >= self.age_ns;
        }
        if mark.old > 0 && mark.due {
            mark.old -= 1;
            return End::Front;
        }
        End::Back
    }
}

const fn end(first: bool) -> End {
    if first { End::Front } else { End::Back }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::cell::Cell;

    use super::*;

    /// Draws 64, 128 and so on, reports `tasks` tasks, and its time advances by one at each
    /// reading.
    struct Fake {
        random: Cell<u32>,
        tasks: Cell<u64>,
        now_ns: Cell<u64>,
    }

    impl Fake {
        fn of(tasks: u64) -> Self {
            Self { random: Cell::new(0), tasks: Cell::new(tasks), now_ns: Cell::new(0) }
        }
    }

    impl Ask for Fake {
        fn random(&self) -> u32 {
            self.random.update(|random| random + 64);
            self.random.get()
        }
        fn tasks(&self) -> u64 {
            self.tasks.get()
        }
        fn now_ns(&self) -> u64 {
            self.now_ns.update(|now| now + 1);
            self.now_ns.get()
        }
    }

    fn ends<O: Order>(order: O, count: usize) -> String {
        let (mut state, ask) = (O::State::default(), Fake::of(9));
        (0..count).map(|_| letter(order.next(&mut state, &ask))).collect()
    }

    fn letter(end: End) -> char {
        if end == End::Front { 'f' } else { 'b' }
    }

    #[test]
    fn each_takes_the_ends_that_it_says() {
        assert_eq!(ends(Fifo, 4), "ffff");
        assert_eq!(ends(Lifo, 4), "bbbb");
        assert_eq!(ends(Switch { every: 2 }, 7), "ffbbffb");
        assert_eq!(ends(Reverse { every: 3 }, 7), "bbfbbfb");
        assert_eq!(ends(Stochastic { first: 65 }, 8), "fbbffbbf");
        assert_eq!(ends(Stochastic { first: 0 }, 4), "bbbb");
    }

    #[test]
    fn a_period_of_none_is_one() {
        assert_eq!(ends(Switch { every: 0 }, 4), "fbfb");
        assert_eq!(ends(Reverse { every: 0 }, 4), "ffff");
    }

    #[test]
    fn those_that_were_there_come_when_their_time_has() {
        let (mut mark, ask) = (Mark::default(), Fake::of(3));
        let mut next = |tasks| {
            ask.tasks.set(tasks);
            letter(Adaptive { age_ns: 3 }.next(&mut mark, &ask))
        };
        // Looks at 1 to 4; then two are left of the three, and newer ones are behind them.
        assert_eq!([3, 2, 3, 4].map(&mut next), ['b', 'b', 'b', 'f']);
        // One of the two that were left is had, and the next look is that of a new time.
        assert_eq!([9, 9, 9].map(&mut next), ['f', 'b', 'b']);
        // One that is alone is as well the last as the first, and costs no look.
        assert_eq!((next(1), ask.now_ns.get()), ('b', 7));
    }
}
