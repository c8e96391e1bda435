//! A loop whose tier can be changed while it runs.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_linux::schedule::Refused;

use super::boosted::Seat;
use super::{Answer, Ask, BoostOptions, Booster, Cooperate, Counts};

/// A loop whose [`Switch`] turns boosting on and off, from its next poll on.
#[derive(Debug)]
pub struct Switched<C> {
    inner: C,
    seat: Option<Seat>,
    seen: u32,
    wish: Arc<Wish>,
}

/// Turns boosting on and off for the loop of a [`Switched`]. A clone is the same switch.
#[derive(Clone)]
pub struct Switch(Arc<Wish>);

#[derive(Default)]
struct Wish {
    /// The number of changes so far.
    changes: AtomicU32,
    booster: Mutex<Option<Booster>>,
}

impl<C: Cooperate> Switched<C> {
    /// Creates a loop that yields its CPU by `inner`, not boosted at first; and its switch.
    pub fn new(inner: C) -> (Self, Switch) {
        let wish = Arc::<Wish>::default();
        let switch = Switch(Arc::clone(&wish));
        (Self { inner, seat: None, seen: 0, wish }, switch)
    }

    /// Returns whether the loop was boosted at its last poll.
    #[must_use]
    pub fn boosted(&self) -> bool {
        self.seat.is_some()
    }

    /// Returns the counts since boosting was last turned on.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.seat.as_ref().map_or_else(Counts::default, Seat::counts)
    }
}

impl<C: Cooperate> Cooperate for Switched<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        // Acquire: the booster that was set before; pairs with the release in `Switch::set`. The
        // lock is taken only for a change.
        let changes = self.wish.changes.load(Acquire);
        if changes != self.seen {
            self.seen = changes;
            let booster = self.wish.booster.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.seat = booster.map(Seat::new);
        }
        match &mut self.seat {
            Some(seat) => seat.poll(&mut self.inner, ask, wait),
            None => self.inner.poll(ask, wait),
        }
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        if let Some(seat) = &mut self.seat {
            seat.tell(release_ns);
        }
        self.inner.tell(release_ns);
    }

    fn rest(&mut self) {
        if let Some(seat) = &mut self.seat {
            seat.leave();
        }
        self.inner.rest();
    }

    fn reports_to(&mut self, flag: &Arc<AtomicBool>) -> bool {
        self.inner.reports_to(flag)
    }
}

impl Switch {
    /// Boosts the loop with its own [`Booster`].
    ///
    /// # Errors
    ///
    /// The same as for [`Booster::start`]; the loop then goes on as before.
    pub fn boost(&self, options: BoostOptions) -> Result<(), Refused> {
        self.boost_by(&Booster::start(options)?);
        Ok(())
    }

    /// Boosts the loop with a booster that other loops may share.
    pub fn boost_by(&self, booster: &Booster) {
        self.set(Some(booster.clone()));
    }

    /// Stops boosting the loop.
    pub fn plain(&self) {
        self.set(None);
    }

    fn set(&self, booster: Option<Booster>) {
        let mut wish = self.0.booster.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *wish, booster);
        // Relaxed: changed only under the lock. Release: the booster; pairs with the acquire in
        // `poll`.
        let changes = self.0.changes.load(Relaxed);
        self.0.changes.store(changes.wrapping_add(1), Release);
        drop(wish);
        // The drop may wait until the booster's helper has ended.
        drop(before);
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").finish_non_exhaustive()
    }
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wish").finish_non_exhaustive()
    }
}
