//! In which order a worker runs its tasks.
//!
//! | order | which task is next | starvation-free |
//! |---|---|---|
//! | [`Fifo`] | the first that became ready | yes |
//! | [`Lifo`] | the last, whose data is in the cache still | no |
//! | [`Stochastic`] | the first, in so many of 256 cases, else the last | almost surely |
//! | [`Switch`] | the first ones for a while, then the last ones | yes |
//! | [`Reverse`] | the last; each `every`th time the first | yes |
//!
//! Starvation-free: a task that is ready is run some time, though each task makes others ready for
//! ever.

/// Which end of its queue a worker takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first that was put in.
    Front,
    /// The last that was put in.
    Back,
}

/// An order of tasks.
pub trait Order: Send + Sync {
    /// What a worker remembers from one task to the next.
    type State: Default + Send;

    /// Which end is next.
    fn next(&self, state: &mut Self::State, random: impl FnOnce() -> u32) -> End;
}

/// First in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Order for Fifo {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), _: impl FnOnce() -> u32) -> End {
        End::Front
    }
}

/// Last in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lifo;

impl Order for Lifo {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), _: impl FnOnce() -> u32) -> End {
        End::Back
    }
}

/// First in, first out by lot; last in, first out otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Stochastic {
    /// In how many of 256 cases the first.
    pub first: u8,
}

impl Order for Stochastic {
    type State = ();

    #[inline]
    fn next(&self, (): &mut (), random: impl FnOnce() -> u32) -> End {
        end(random() % 256 < u32::from(self.first))
    }
}

/// The other end after each `every` tasks.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// How many tasks of one end; 0 is as 1.
    pub every: u32,
}

impl Order for Switch {
    /// How many tasks there were.
    type State = u32;

    #[inline]
    fn next(&self, taken: &mut u32, _: impl FnOnce() -> u32) -> End {
        let turn = *taken / self.every.max(1);
        *taken = taken.wrapping_add(1);
        end(turn.is_multiple_of(2))
    }
}

/// Last in, first out, but for each `every`th task.
#[derive(Clone, Copy, Debug)]
pub struct Reverse {
    /// After how many tasks the first is next; 0 is as 1.
    pub every: u32,
}

impl Order for Reverse {
    /// How many tasks there were.
    type State = u32;

    #[inline]
    fn next(&self, taken: &mut u32, _: impl FnOnce() -> u32) -> End {
        *taken = taken.wrapping_add(1);
        end(taken.is_multiple_of(self.every.max(1)))
    }
}

const fn end(first: bool) -> End {
    if first { End::Front } else { End::Back }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends<O: Order>(order: O, count: usize) -> alloc::string::String {
        let (mut state, mut random) = (O::State::default(), 0);
        let mut draw = || {
            random += 64;
            random
        };
        let ends = (0..count).map(|_| order.next(&mut state, &mut draw));
        ends.map(|end| if end == End::Front { 'f' } else { 'b' }).collect()
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
}
