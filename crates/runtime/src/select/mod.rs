//! Waiting for the first of several events, and taking that one alone.
//!
//! ```text
//!            one is ready
//!   try all ──────────────────────────────────────────────────────────────► chosen
//!      │ none                                                                  ▲
//!      ▼                        one is ready, or was handed over               │
//!   stand with all, try all ───────────────────────────────────────────────────┤
//!      │ none             ▲                                                    │
//!      ▼                  │ none                                               │
//!    sleep ──► try all ───┴── one is ready: leave all, pass on what they told ─┘
//! ```
//!
//! - SELECT-1: at most one source is taken; the others are unchanged, because they are not tried.
//! - SELECT-2 (no lost wake): a waiter that is notified of a source and does not try it passes the
//!   notification on (SEVERAL-2). A notification from before it tries is used up by the attempt,
//!   whether it succeeds or not: as for a waiter for that source alone.
//! - SELECT-3 (fair): the order in which all sources are tried is random, and drawn anew each time.

mod polled;
mod sources;

use core::cell::Cell;

use antiphon_platform::{Deadline, Platform};
use antiphon_sync::lock::Standard;
use antiphon_sync::nap;
use antiphon_sync::wait::{CrowdForm, Place, Several};

use crate::task::Awaited;

pub use polled::{Alarm, select_polled};
pub use sources::{Awaits, Holds, Receives, Sends};

/// An event that may be waited for together with others. It keeps what was taken, for its maker.
pub trait Source<P: Platform> {
    /// Takes the event if it is there; returns whether it was. Does not block.
    fn try_take(&self) -> bool;

    /// Begins a wait. `None`: the event was there, and is taken.
    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>>;

    /// Returns the time from which on the event is there, even if no thread notifies the waiter.
    fn deadline(&self) -> Option<Deadline> {
        None
    }
}

/// A wait for one of several events, which ends when this is dropped.
#[must_use = "a pending wait takes notifications away from others: end it"]
pub struct Stand<'a, P: Platform>(Told<'a, P>);

enum Told<'a, P: Platform> {
    /// A notified waiter must try the source.
    Looks(Place<'a, P>),
    /// A notified waiter has taken the source already.
    Had(Place<'a, P>),
    Rung(Awaited<'a, P>),
    /// No thread notifies the waiter: the source has a deadline.
    Timed,
}

impl<'a, P: Platform> Stand<'a, P> {
    /// Creates a wait for a source that a notified waiter must try to take.
    pub fn looks(place: Place<'a, P>) -> Self {
        Self(Told::Looks(place))
    }

    /// Creates a wait for a source that a notified waiter has taken already.
    pub fn had(place: Place<'a, P>) -> Self {
        Self(Told::Had(place))
    }

    /// Creates a wait for a source that rings a bell, and that no other waiter waits for.
    pub fn rung(awaited: Awaited<'a, P>, several: &Several<P>) -> Self {
        if let Some(ticket) = several.ticket() {
            awaited.arm(ticket);
        }
        Self(Told::Rung(awaited))
    }

    /// Creates a wait for a source that has only a [deadline](Source::deadline).
    pub fn timed() -> Self {
        Self(Told::Timed)
    }

    fn look(&mut self) -> bool {
        match &mut self.0 {
            Told::Looks(place) | Told::Had(place) => place.look(),
            Told::Rung(awaited) => awaited.is_over(),
            Told::Timed => false,
        }
    }

    /// SELECT-2: uses up a notification from before the present attempt. Returns whether that
    /// notification has already taken the source.
    fn use_up(&mut self) -> bool {
        match &mut self.0 {
            Told::Looks(place) => {
                place.use_up();
                false
            }
            Told::Had(place) => place.use_up(),
            Told::Rung(_) | Told::Timed => false,
        }
    }
}

impl<P: Platform> Drop for Stand<'_, P> {
    fn drop(&mut self) {
        if let Told::Rung(awaited) = &self.0 {
            awaited.disarm();
        }
    }
}

/// Sources, by number.
pub trait Sources<P: Platform> {
    /// Returns the number of sources.
    fn count(&self) -> usize;

    /// Returns the source of a number below the count.
    fn source(&self, number: usize) -> &dyn Source<P>;
}

impl<P: Platform> Sources<P> for [&dyn Source<P>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn source(&self, number: usize) -> &dyn Source<P> {
        self[number]
    }
}

/// A generator of random orders in which sources are tried.
#[derive(Debug)]
pub struct Lot(Cell<u64>);

impl Lot {
    /// Creates a generator; the same seed gives the same orders.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// Returns the seed from which it continues.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.get()
    }

    /// Returns another, independent generator.
    #[must_use]
    pub fn split(&self) -> Self {
        Self::new(self.next())
    }

    /// Returns a number below `count`, which is not 0 and below 2³².
    fn draw(&self, count: usize) -> usize {
        (((self.next() >> 33) * count as u64) >> 31) as usize
    }

    fn next(&self) -> u64 {
        // SplitMix64: Steele, Lea, Flood, OOPSLA 2014.
        let seed = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(seed);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}

/// The number of sources up to which no allocation is needed.
const FEW: usize = 8;

/// Takes one of the sources that is ready, and returns its number; waits for one until the
/// deadline, if there is one. Blocks as [`Several::wait`] does.
pub fn select<P: Platform>(
    sources: &(impl Sources<P> + ?Sized),
    deadline: Option<Deadline>,
    lot: &Lot,
) -> Option<usize> {
    select_as::<P, Standard>(sources, deadline, lot)
}

/// Like [`select`], with the parameters of the form `F`.
pub fn select_as<P: Platform, F: CrowdForm>(
    sources: &(impl Sources<P> + ?Sized),
    deadline: Option<Deadline>,
    lot: &Lot,
) -> Option<usize> {
    with_order(sources.count(), |order| {
        let found = first(order, lot, |number| sources.source(number).try_take());
        found.or_else(|| wait::<P, F>(sources, deadline, lot, order))
    })
}

/// Like [`select`], but does not wait.
pub fn try_select<P: Platform>(sources: &(impl Sources<P> + ?Sized), lot: &Lot) -> Option<usize> {
    with_order(sources.count(), |order| {
        first(order, lot, |number| sources.source(number).try_take())
    })
}

/// Calls `f` with an order of `count` numbers.
fn with_order<R>(count: usize, f: impl FnOnce(&mut [usize]) -> R) -> R {
    with_few(
        [0; FEW],
        || 0,
        count,
        |order| {
            order.iter_mut().enumerate().for_each(|(number, at)| *at = number);
            f(order)
        },
    )
}

/// Calls `f` with `count` of these, or with an allocation of `count` others.
fn with_few<T, R>(
    mut few: [T; FEW],
    other: impl Fn() -> T,
    count: usize,
    f: impl FnOnce(&mut [T]) -> R,
) -> R {
    match few.get_mut(..count) {
        Some(few) => f(few),
        None => f(&mut (0..count).map(|_| other()).collect::<alloc::vec::Vec<_>>()),
    }
}

/// SELECT-3: returns the first number, in a random order, for which `f` is true.
fn first(order: &mut [usize], lot: &Lot, mut f: impl FnMut(usize) -> bool) -> Option<usize> {
    (0..order.len()).find_map(|at| {
        let left = order.len() - at;
        let drawn = if left > 1 { at + lot.draw(left) } else { at };
        order.swap(at, drawn);
        f(order[at]).then_some(order[at])
    })
}

#[cold]
fn wait<P: Platform, F: CrowdForm>(
    sources: &(impl Sources<P> + ?Sized),
    deadline: Option<Deadline>,
    lot: &Lot,
    order: &mut [usize],
) -> Option<usize> {
    let count = sources.count();
    let deadlines = (0..count).filter_map(|number| sources.source(number).deadline());
    let until = deadlines.fold(deadline, sooner::<P>);
    loop {
        let several = Several::<P>::new();
        let found = with_few(
            [const { None }; FEW],
            || None,
            count,
            |stands| {
                // The wait is begun with all sources before one is tried: later events cause a
                // notification.
                let had = first(order, lot, |number| {
                    stands[number] = sources.source(number).stand(&several);
                    stands[number].is_none()
                });
                // SELECT-2.
                let mut take = |stands: &mut [Option<Stand<'_, P>>]| {
                    first(order, lot, |number| {
                        let had = stands[number].as_mut().is_some_and(Stand::use_up);
                        had || sources.source(number).try_take()
                    })
                };
                let had = had.or_else(|| take(stands));
                if had.is_some() || nap::passed::<P>(deadline) {
                    return Some(had);
                }
                several.wait_as::<F>(until, || stands.iter_mut().flatten().any(Stand::look));
                take(stands).map(Some)
            },
        );
        if let Some(found) = found {
            return found;
        }
    }
}

/// Returns the deadline that passes first.
pub(crate) fn sooner<P: Platform>(one: Option<Deadline>, other: Deadline) -> Option<Deadline> {
    let left_ns = |it: Deadline| it.ns.saturating_sub(P::now(it.clock));
    one.filter(|&one| left_ns(one) <= left_ns(other)).or(Some(other))
}
