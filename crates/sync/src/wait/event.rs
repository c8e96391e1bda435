//! The event: a thread sets it, and one thread that waits for it goes on.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–7 | `sets` | setters | bit 0, `QUEUED`: the list is not empty; above it, a count of sets |
//! | 128–135 | `taken` | waiters | the count of sets when a set was last taken |
//! | 136–151 | `list` | sleepers, wakers | the waiters that sleep, or are about to |
//!
//! ```text
//!              set: one addition                    a waiter: one exchange of `taken`
//!   unset ───────────────────────► set ───────────────────────────────────────► unset
//!   sets = taken    ▲      │       sets > taken: further sets are the same one
//!                   └──────┘
//!                 `QUEUED`: a setter takes it for the first on the list, and lets that go
//! ```
//!
//! - EVENT-1: a waiter that was let go has taken sets that no other waiter has, and is ordered
//!   after what was done before each of these sets.
//! - EVENT-2: while `QUEUED` is on, sets are taken by setters, for a waiter on the list: no
//!   arriving waiter overtakes the list. `QUEUED` is on while a waiter is on the list, and changes
//!   under the list's lock. A thread that adds to `sets` sees `QUEUED`, or is seen by the thread
//!   that turns it on: both are exchanges of one word.
//! - EVENT-3: a setter touches nothing after its addition, or, if it found `QUEUED`, after it has
//!   unlocked the list; only then does it let its waiter go.
//! - EVENT-4: a waiter that gives up and is the last on the list turns `QUEUED` off while the event
//!   is not set; otherwise it waits on, because the setter is on the way to the list. So the memory
//!   may be freed as soon as all waiters have returned, even if the `set` that let the last of them
//!   go has not.
//! - EVENT-5: a waiter that was let go and does not want the event sets it again, for the next
//!   waiter on the list, or the next to come. In between no thread sees that it is set.
//!
//! `sets` and `taken` are on separate lines, and not on neighbouring lines, which prefetchers treat
//! as one. In a hand-over from one running thread to another, each side then writes to a line that
//! the other only reads. Other layouts that were measured, one way, against a bare store and a spin
//! on it (median of 41 interleaved runs of 10 000 each, on two pinned virtual AMD EPYC CPUs,
//! 2026-11-22):
//!
//! | layout | ratio | sender |
//! |---|---|---|
//! | two counts, two lines apart: this one | 0.70 | 6 ns |
//! | two counts, on neighbouring lines | 1.00 | 6 ns |
//! | a flag, which the waiter clears | 1.26 | 6 ns |
//! | two counts on one line | 1.29 | 6 ns |
//! | a flag, or a spinner that claims the next set ahead | 1.32 to 1.36 | 12 ns |
//!
//! Where both CPUs were threads of one core, no line moves and the bare hand-over took 19 ns; with
//! the two exchanges of this layout it took 41 ns in all.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};

use super::list::{List, Locked, note};
use super::several::{Place, Several, Stands};
use super::spin::spin;
use super::together::{CrowdForm, Listed, Member, let_go, wait_listed};
use crate::lock::Standard;
use crate::nap;
use crate::policy::{Distance, Policy};

/// An auto-reset event, 192 bytes. All zero bytes: not set, and no thread waits.
#[repr(C, align(64))]
pub struct Event<P: Platform, Q: Policy = Distance, F: CrowdForm = Standard> {
    sets: P::U64,
    apart: [u64; 15],
    taken: P::U64,
    list: List<P>,
    marker: PhantomData<(Q, F)>,
}

/// A value of `sets`.
#[derive(Clone, Copy)]
struct Sets(u64);

impl Sets {
    const QUEUED: u64 = 1;
    const ONE: u64 = 2;

    fn queued(self) -> bool {
        self.0 & Self::QUEUED != 0
    }

    /// Returns the value that `taken` has when all of the sets were taken.
    fn count(self) -> u64 {
        self.0 & !Self::QUEUED
    }

    /// Returns whether an arriving waiter may take the event.
    fn is_free(self, taken: u64) -> bool {
        !self.queued() && self.count() != taken
    }
}

/// Length of the sleep between two tries of a waiter without a node, in nanoseconds.
const NAP_NS: u64 = 200_000;

impl<P: Platform, Q: Policy, F: CrowdForm> Event<P, Q, F> {
    /// An event that is not set.
    pub const NEW: Self = Self {
        sets: P::U64::ZERO,
        apart: [0; 15],
        taken: P::U64::ZERO,
        list: List::NEW,
        marker: PhantomData,
    };

    /// Lets one waiter go, or, if no thread waits, leaves the event set for the next waiter; sets
    /// that were not taken count as one. Blocks at most while other threads hold the list, and
    /// makes a system call only for a waiter that sleeps.
    #[inline]
    pub fn set(&self) {
        // Release: EVENT-1; pairs with the acquires of the threads that take it.
        if Sets(self.sets.fetch_add(Sets::ONE, Release)).queued() {
            self.hand_over();
        }
    }

    /// Waits until the event is set, and takes the set.
    #[inline]
    pub fn wait(&self) {
        while !self.wait_until(None) {}
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed; returns
    /// whether the event was set. An event that is set is taken whatever the deadline.
    #[inline]
    pub fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.try_wait() || self.wait_contended(deadline)
    }

    /// Begins a wait for one of several objects. Returns `None` if the event was set, and the
    /// caller has taken the set. A place that is [told](Place::look) has taken a set; a set that is
    /// not used is set again (EVENT-5).
    pub fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Place<'a, P>> {
        let me = several.member();
        let waits = match &me {
            Some(me) => self.enlist(me),
            None => !self.try_wait(),
        };
        let place = Place::new(self, me);
        if waits { Some(place) } else { place.give() }
    }

    /// Takes the event if it is set and no thread waits for it in the list; never blocks.
    #[inline]
    pub fn try_wait(&self) -> bool {
        loop {
            let (sets, taken) = self.look();
            if !sets.is_free(taken) {
                return false;
            }
            if self.take(sets, taken) {
                return true;
            }
        }
    }

    /// Takes the set back, unless it is on its way to a waiter.
    pub fn reset(&self) {
        self.try_wait();
    }

    /// Returns whether the event is set, and no thread waits for it; may be stale at once.
    pub fn is_set(&self) -> bool {
        let (sets, taken) = self.look();
        sets.is_free(taken)
    }

    /// Returns whether a thread sleeps for the event, or is about to; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        Sets(self.sets.load(Relaxed)).queued()
    }

    fn look(&self) -> (Sets, u64) {
        // Acquire: so `sets` is at least as new as the last taker has seen it, and `taken` never
        // goes back; pairs with the releases in `take` and `hand_over`.
        let taken = self.taken.load(Acquire);
        // Acquire: EVENT-1; pairs with `set`.
        (Sets(self.sets.load(Acquire)), taken)
    }

    /// Takes the sets that were seen, unless another thread has.
    fn take(&self, sets: Sets, taken: u64) -> bool {
        // Release: pairs with the acquire in `look`.
        self.taken.compare_exchange(taken, sets.count(), Release, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, deadline: Option<Deadline>) -> bool {
        let taken = self.taken.load(Acquire);
        let keep = |sets| Sets(sets).count() == taken && !Sets(sets).queued();
        if let Ok(sets) = spin::<P, F, _>(&self.sets, deadline, keep)
            && Sets(sets).is_free(taken)
            && self.take(Sets(sets), taken)
        {
            return true;
        }
        match wait_listed::<P, F>(deadline, |me| self.enlist(me), |me| self.leave(me)) {
            Some(ended) => ended != Listed::GaveUp,
            None => nap::until_true::<P>(deadline, NAP_NS, || self.try_wait()),
        }
    }

    /// Puts the caller on the list. If the event was set meanwhile, takes the set instead, and
    /// returns `false`.
    fn enlist(&self, me: &Member<P>) -> bool {
        note::<P, Q>(me);
        self.list.with(|list| {
            // Acquire: EVENT-1; pairs with `set`. From now on a setter comes for the list.
            let sets = Sets(self.sets.fetch_or(Sets::QUEUED, Acquire));
            if list.first().is_none() {
                // Arriving waiters that have seen the set before us may still take it. Relaxed,
                // both: an exchange of an outdated value fails.
                let mut taken = self.taken.load(Relaxed);
                while sets.count() != taken {
                    if self.take(sets, taken) {
                        self.dequeue(list);
                        return false;
                    }
                    taken = self.taken.load(Relaxed);
                }
            }
            list.push(me.id(), me.node);
            true
        })
    }

    /// Removes a caller that gives up from the list. Returns `false` if the caller must wait on,
    /// because it will be let go.
    fn leave(&self, me: &Member<P>) -> bool {
        self.list.with(|list| {
            if !list.holds(me.id(), me.node) {
                return false;
            }
            // EVENT-4. Relaxed, both: with a waiter on the list, only the holder of its lock writes
            // to `taken`; and no set is taken here.
            let unset = self.taken.load(Relaxed);
            let queued = unset | Sets::QUEUED;
            if list.is_short()
                && self.sets.compare_exchange(queued, unset, Relaxed, Relaxed).is_err()
            {
                return false;
            }
            list.remove(me.id(), me.node);
            true
        })
    }

    /// Notes that the list is empty, if it is.
    fn dequeue(&self, list: &Locked<'_, P>) {
        if list.first().is_none() {
            // Relaxed: EVENT-2 is about one word.
            self.sets.fetch_and(!Sets::QUEUED, Relaxed);
        }
    }

    /// Takes the sets for a waiter on the list, and lets it go.
    #[cold]
    fn hand_over(&self) {
        let next = self.list.with(|list| {
            // Acquire: what was done before sets of other threads, which come to the list behind
            // us; pairs with `set`.
            let sets = Sets(self.sets.load(Acquire));
            // Relaxed: with a waiter on the list, only the holder of its lock writes to it.
            if sets.count() == self.taken.load(Relaxed) {
                return 0;
            }
            let next = list.take::<Q, F>(1);
            if next != 0 {
                // Release: pairs with the acquire in `look`. An exchange: an arriving waiter that
                // then sees `QUEUED` cleared, but an older `taken`, must fail to take the set
                // again.
                self.taken.swap(sets.count(), Release);
            }
            self.dequeue(list);
            next
        });
        // EVENT-3.
        let_go::<P, F>(next, 0);
    }
}

impl<P: Platform, Q: Policy, F: CrowdForm> Stands<P> for Event<P, Q, F> {
    fn withdraw(&self, me: Member<P>) -> bool {
        me.withdraw::<F>(|me| self.leave(me))
    }

    /// EVENT-5.
    fn pass_on(&self) {
        self.set();
    }
}
