//! Select: waits for the first of several sources, such as a value, room for a value, an event, or
//! a task.
//!
//! ```
//! use antiphon::{Event, channel, select::Select};
//!
//! static STOP: Event = Event::new();
//!
//! let (numbers, odd) = channel::bounded(8);
//! let (words, said) = channel::bounded(8);
//! numbers.send(17).unwrap();
//! words.send("seventeen").unwrap();
//! let mut seen = Vec::new();
//! loop {
//!     let goes_on = Select::new()
//!         .recv(&odd, |number| number.map(|number: u64| seen.push(number.to_string())).is_ok())
//!         .recv(&said, |word| word.is_ok())
//!         .event(&STOP, || false)
//!         .wait();
//!     if !goes_on {
//!         break;
//!     }
//!     STOP.set();
//! }
//! ```
//!
//! Each case has a closure. The closure of the case that is chosen runs; all closures return the
//! same type, and the wait returns the result. The closure runs after the wait has ended for all
//! cases, so it may wait itself. The closures of one select may not borrow the same variable
//! mutably; they may return a description of the action instead of performing it.
//!
//! | case | is ready when | argument of its closure |
//! |---|---|---|
//! | [`recv`](Select::recv) | there is a value, or no sender any more | the value, or an error |
//! | [`recv_each`](Select::recv_each) | any of the channels is | its number, and the same |
//! | [`send`](Select::send) | there is room, or no receiver any more | whether it was sent |
//! | [`event`](Select::event), [`latch`](Select::latch) | it is set, or open | |
//! | [`when`](Select::when) | its condition is true | |
//! | [`join`](Select::join) | the task is done | its result, or its panic |
//! | [`promise`](Select::promise) | it is fulfilled, or dropped | the value, or an error |
//! | [`cancelled`](Select::cancelled) | the token is cancelled | |
//! | [`timer`](Select::timer) | its time has come | |
//!
//! - **One case is taken, and the others are left unchanged**: a value that was not sent stays
//!   where it was, an event that was not taken stays set.
//! - **If several are ready, one is chosen at random**, each with the same probability, so that no
//!   case starves. [`Select::seeded`] makes the same choice each time.
//! - **It blocks** as each case would alone: a thread sleeps, a [fiber](crate::fiber) is suspended.
//!   A fiber whose waits are always ready at once (for example, on a closed channel) lets others
//!   run after a while. A worker of a pool without fibers does not run other tasks meanwhile.
//! - **It costs** an entry in the queue of each case while it waits; if a case is ready, it checks
//!   only some of the cases. Up to eight cases need no allocation.
//!
//! While a select waits, it may be handed an event that it does not take, because another case
//! became ready at the same time. Then the event is set again; in between,
//! [`Event::try_wait`](crate::Event::try_wait) in other threads returns `false`.

mod cases;
mod future;

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Deadline, Platform as _};
use antiphon_runtime::select::{self, Source, Sources};

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;
use crate::debug::by_name;

pub use antiphon_runtime::select::Lot;
use cases::sealed;
pub use cases::{And, Cases, Each};
pub(crate) use cases::{Then, ThenOf, as_inner};
pub(crate) use future::polled;

/// The cases to wait for; [`wait`](Self::wait) starts the wait.
#[must_use = "a select does nothing until one of its `wait` methods is called"]
pub struct Select<'a, R, C = ()> {
    cases: C,
    lot: Option<&'a Lot>,
    returns: PhantomData<fn() -> R>,
}

impl<R> Select<'_, R> {
    /// Creates a select without cases.
    pub const fn new() -> Self {
        Self { cases: (), lot: None, returns: PhantomData }
    }
}

impl<'a, R> Select<'a, R> {
    /// Creates a select without cases, in which `lot` decides which of several ready cases is
    /// chosen. Two lots with the same seed make the same choices.
    ///
    /// ```
    /// use antiphon::{channel, select::{Lot, Select}};
    ///
    /// let chosen = || {
    ///     let (lot, all) = (Lot::new(42), [0, 1].map(|_| channel::bounded(64)));
    ///     all.iter().for_each(|ends| (0..64).for_each(|_| ends.0.send(()).unwrap()));
    ///     let each = || Select::seeded(&lot).recv(&all[0].1, |_| 0).recv(&all[1].1, |_| 1);
    ///     (0..64).map(|_| each().wait()).collect::<Vec<_>>()
    /// };
    /// assert_eq!(chosen(), chosen());
    /// ```
    pub const fn seeded(lot: &'a Lot) -> Self {
        Self { cases: (), lot: Some(lot), returns: PhantomData }
    }
}

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case. The public method for each kind of case is in the module of its source.
    pub(crate) fn and<S, F>(self, source: S, then: F) -> Select<'a, R, And<C, S, F>> {
        let Self { cases, lot, returns } = self;
        Select { cases: And { before: cases, source, then }, lot, returns }
    }

    /// Adds several cases with the same closure.
    pub(crate) fn and_each<S, F>(self, sources: Vec<S>, then: F) -> Select<'a, R, Each<C, S, F>> {
        let Self { cases, lot, returns } = self;
        Select { cases: Each { before: cases, sources, then }, lot, returns }
    }

    /// Adds a case for a point in time. If the time has come and other cases are ready, the choice
    /// among them is random; with [`wait_until`](Self::wait_until), in contrast, ready cases take
    /// precedence over the time.
    ///
    /// ```
    /// use antiphon::{channel, select::Select};
    /// use std::time::{Duration, Instant};
    ///
    /// # let (_sender, work) = channel::bounded::<u32>(1);
    /// let period = Duration::from_millis(1);
    /// let (mut next, mut ticks) = (Instant::now() + period, 0);
    /// while ticks < 3 {
    ///     let select = Select::new().recv(&work, |_| false).timer(next, || true);
    ///     if select.wait() {
    ///         (next, ticks) = (next + period, ticks + 1);
    ///     }
    /// }
    /// ```
    pub fn timer<F>(self, at: Instant, then: F) -> Select<'a, R, And<C, Deadline, F>>
    where
        F: FnOnce() -> R,
    {
        self.and(deadline_after(at.saturating_duration_since(Instant::now())), then)
    }

    /// Blocks until a case is ready, and runs its closure.
    ///
    /// # Panics
    ///
    /// If there is nothing to wait for.
    pub fn wait(self) -> R
    where
        C: Cases<R>,
    {
        assert!(self.cases.count() > 0, "a select of nothing waits for ever");
        may_be_ready();
        loop {
            if let Some(number) = self.choose(None) {
                return self.cases.end(number);
            }
        }
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout` and returns `None`.
    pub fn wait_for(self, timeout: Duration) -> Option<R>
    where
        C: Cases<R>,
    {
        may_be_ready();
        let number = self.choose(Some(deadline_after(timeout)))?;
        Some(self.cases.end(number))
    }

    /// Waits like [`wait`](Self::wait), but gives up at `deadline` and returns `None`.
    pub fn wait_until(self, deadline: Instant) -> Option<R>
    where
        C: Cases<R>,
    {
        self.wait_for(deadline.saturating_duration_since(Instant::now()))
    }

    /// Runs the closure of a case that is ready; returns `None` if no case is. Does not block.
    pub fn try_wait(self) -> Option<R>
    where
        C: Cases<R>,
    {
        let number = self.with_lot(|lot| select::try_select(&self.sources(), lot))?;
        Some(self.cases.end(number))
    }

    fn choose(&self, deadline: Option<Deadline>) -> Option<usize>
    where
        C: Cases<R>,
    {
        self.with_lot(|lot| select::select(&self.sources(), deadline, lot))
    }

    fn sources(&self) -> Of<'_, R, C> {
        Of(&self.cases, PhantomData)
    }

    fn with_lot<T>(&self, f: impl FnOnce(&Lot) -> T) -> T {
        match self.lot {
            Some(lot) => f(lot),
            None => f(&Lot::new(Linux::random().into())),
        }
    }
}

/// The cases of a blocking select, by number.
struct Of<'a, R, C>(&'a C, PhantomData<fn() -> R>);

impl<R, C: sealed::Cases<R>> Sources<Linux> for Of<'_, R, C> {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn source(&self, number: usize) -> &dyn Source<Linux> {
        self.0.source(number)
    }
}

impl<R> Default for Select<'_, R> {
    fn default() -> Self {
        Self::new()
    }
}

by_name!([R, C] Select<'_, R, C>, "Select");
