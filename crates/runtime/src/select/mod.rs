//! Waiting for the first of several things, and taking that one alone.
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
//! - SELECT-1: one is taken, or none; what the others have stays theirs: they are not tried.
//! - SELECT-2 (no lost wake): a waiter that is notified of something and does not try it passes
//!   that on (SEVERAL-2). A notification from before it tries is used up by the attempt, whatever
//!   it finds: so it is for a waiter for that thing alone.
//! - SELECT-3 (fair): the order in which all are tried is drawn by lot, anew each time.

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

/// Something that may be waited for beside others. It keeps what is taken, for its maker.
pub trait Source<P: Platform> {
    /// Takes what there is; says whether there was something. Does not block.
    fn try_take(&self) -> bool;

    /// Begins a wait. `None`: there was something, and it is taken.
    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>>;

    /// The time from which on there is something, whichever thread notifies the waiter.
    fn deadline(&self) -> Option<Deadline> {
        None
    }
}

/// A wait for one of several things; ended when it is dropped.
#[must_use = "a pending wait takes notifications away from others: end it"]
pub struct Stand<'a, P: Platform>(Told<'a, P>);

enum Told<'a, P: Platform> {
    /// To look when told.
    Looks(Place<'a, P>),
    /// A waiter that is notified has it already.
    Had(Place<'a, P>),
    Rung(Awaited<'a, P>),
    /// No thread notifies it: it has a deadline.
    Timed,
}

impl<'a, P: Platform> Stand<'a, P> {
    /// For a place in which a waiter that is notified tries to take it.
    pub fn looks(place: Place<'a, P>) -> Self {
        Self(Told::Looks(place))
    }

    /// For a place in which a waiter that is notified has taken it.
    pub fn had(place: Place<'a, P>) -> Self {
        Self(Told::Had(place))
    }

    /// For something that rings a bell, and that no other waiter waits for.
    pub fn rung(awaited: Awaited<'a, P>, several: &Several<P>) -> Self {
        if let Some(ticket) = several.ticket() {
            awaited.arm(ticket);
        }
        Self(Told::Rung(awaited))
    }

    /// For something that comes by its [deadline](Source::deadline) alone.
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

    /// SELECT-2: uses up a notification from before the source is tried now. Returns whether that
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
    /// How many there are.
    fn count(&self) -> usize;

    /// The source of a number below the count.
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

/// The order in which sources are tried, drawn by lot from a number.
#[derive(Debug)]
pub struct Lot(Cell<u64>);

impl Lot {
    /// Creates a lot; the same seed draws the same.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The number to go on from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.get()
    }

    /// Another lot, which draws by itself.
    #[must_use]
    pub fn split(&self) -> Self {
        Self::new(self.next())
    }

    /// A number below `count`, which is not 0 and below 2³².
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

/// How many sources need no allocation.
const FEW: usize = 8;

/// Takes what is there of one of the sources, if there is something, and returns its number; waits
/// for that until the deadline, if there is one. Blocks as [`Several::wait`] does.
pub fn select<P: Platform>(
    sources: &(impl Sources<P> + ?Sized),
    deadline: Option<Deadline>,
    lot: &Lot,
) -> Option<usize> {
    select_as::<P, Standard>(sources, deadline, lot)
}

/// Like [`select`], with the numbers of the form `F`.
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

/// Calls `f` with `count` of these, or of others in an allocation.
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

/// SELECT-3: the first of all numbers, in an order that is drawn, for which `f` is true.
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
                // The wait is begun with all sources before one is tried: what comes meanwhile
                // causes a notification.
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

/// The deadline that passes first.
pub(crate) fn sooner<P: Platform>(one: Option<Deadline>, other: Deadline) -> Option<Deadline> {
    let left_ns = |it: Deadline| it.ns.saturating_sub(P::now(it.clock));
    one.filter(|&one| left_ns(one) <= left_ns(other)).or(Some(other))
}
