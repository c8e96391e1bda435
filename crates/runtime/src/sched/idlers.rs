//! Workers without tasks: which of them search, which rest, and which one is woken.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `counts`, bits 0–20 | all | searching workers, including those being woken |
//! | | bits 21–41 | all | resting workers |
//! | | bits 42–62 | all | those of them that wait for an event: they have a task, or fibers |
//! | each 2 | `sets` | resting workers | a bit for each worker: it rests, or has just ended |
//! | each 2 | `seats` | its worker; its waker | whether it rests, and its bell |
//!
//! ```text
//!             search                    rest
//!   ┌──────┐ ───────► ┌───────────┐ ───────────────► ┌────────┐
//!   │ runs │          │ searches  │                  │ rests  │
//!   └──────┘ ◄─────── └───────────┘ ◄─────────────── └────────┘
//!             found                  told, or sees work
//! ```
//!
//! A producer wakes a worker if no worker searches. A searching worker takes the tasks that it
//! finds, from any producer. The last searcher that finds a task, and so stops searching, checks
//! whether there are more, and then wakes the next worker. So workers wake one after the other
//! while there are tasks, and none is woken if there is no task. The schedulers of Go and Tokio do
//! the same, except that there the last searcher wakes the next one even if there is no task.
//!
//! - IDLE-1 (no lost wake-up): a producer publishes a task, then checks for searching or resting
//!   workers. A worker that stops searching, or is about to rest, announces that, then checks for
//!   tasks. At least one of the two sees the other.
//! - IDLE-2 (one wake-up): only the thread that moves the count of searchers from zero wakes
//!   workers, as many as it moves the count to. A worker that was woken counts as one of these
//!   searchers until it stops searching. The count becomes one, or the number of tasks that were
//!   submitted together: no more workers are being woken than tasks were seen.
//! - IDLE-3: a worker that ends its rest by itself is first counted as a searcher, and then no
//!   longer as resting. So if no worker searches and one rests, a producer that wants to wake that
//!   worker finds it.
//! - IDLE-4: a thread that has counted a searcher and finds no worker to wake takes the count back,
//!   and checks for tasks again: a producer that has published meanwhile, or a worker that has
//!   stopped searching, has relied on the count.
//! - IDLE-5: a worker that begins to rest while another searches need not check for tasks: the
//!   other one stops later, checks then, and finds the resting worker.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Deadline, Notify, Parked, Platform};

use crate::lines::Lines;
use crate::sleep::{Bell, Park};
use crate::task::Awaited;

/// Workers, by their numbers from 0 on, and whether they run, search or rest.
pub struct Idlers<P: Platform> {
    counts: Lines<P::U64>,
    sets: Box<[Lines<P::U64>]>,
    seats: Box<[Lines<Seat<P>>]>,
    notify: Park<P>,
}

struct Seat<P: Platform> {
    /// [`RUNS`], [`RESTS`] or [`TOLD`].
    state: P::U32,
    bell: Bell<P>,
}

/// How long an awaited event may go unnoticed while a worker spins for tasks, in nanoseconds.
const SLICE_NS: u32 = 500;

const RUNS: u32 = 0;
const RESTS: u32 = 1;
const TOLD: u32 = 2;

/// The limit of the number of workers, exclusive.
pub(super) const MOST: usize = 1 << 21;

const SEARCHER: u64 = 1;
const RESTER: u64 = MOST as u64;
/// A worker that waits for an event is counted as resting, too.
const WAITER: u64 = RESTER * RESTER;

const fn searchers(counts: u64) -> u64 {
    counts % RESTER
}

const fn resters(counts: u64) -> u64 {
    counts / RESTER % RESTER
}

const fn waiters(counts: u64) -> u64 {
    counts / WAITER
}

/// Returns whether a worker should be woken: none searches, and at least one rests.
const fn is_wanted(counts: u64) -> bool {
    searchers(counts) == 0 && counts >= RESTER
}

impl<P: Platform> Idlers<P> {
    /// Creates the state for `workers` workers, all running.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let seat = || Seat { state: P::U32::ZERO, bell: Bell::NEW };
        let sets = workers.div_ceil(u64::BITS as usize);
        Self {
            counts: Lines(P::U64::ZERO),
            sets: (0..sets).map(|_| Lines(P::U64::ZERO)).collect(),
            seats: (0..workers).map(|_| Lines(seat())).collect(),
            notify: Park::NEW,
        }
    }

    /// Wakes one resting worker for a task that was published: the one nearest to worker `near` by
    /// number. Wakes none if a worker searches already or all run.
    #[inline]
    pub fn notify(&self, near: usize) {
        self.notify_many(near, 1);
    }

    /// Like [`notify`](Self::notify), but for `tasks` tasks (at least 1): wakes up to `tasks`
    /// workers.
    #[inline]
    pub fn notify_many(&self, near: usize, tasks: u32) {
        // IDLE-1; pairs with the fences in `rest_until` and `found`.
        P::fence(SeqCst);
        // Relaxed: `wake` acquires.
        if is_wanted(self.counts.0.load(Relaxed)) {
            self.wake(near, tasks);
        }
    }

    /// Returns whether a worker searches or rests; may be stale at once.
    #[must_use]
    pub fn are_any(&self) -> bool {
        // Relaxed: a hint.
        self.counts.0.load(Relaxed) != 0
    }

    /// Returns whether all workers rest; may be stale at once.
    pub(super) fn all_rest(&self) -> bool {
        // Relaxed: a hint.
        resters(self.counts.0.load(Relaxed)) == self.seats.len() as u64
    }

    /// Returns whether worker `worker` rests; may be stale at once.
    pub(super) fn rests(&self, worker: usize) -> bool {
        // Relaxed: a hint.
        self.seats[worker].0.state.load(Relaxed) == RESTS
    }

    /// Returns how many workers rest and wait for tasks only; may be stale at once.
    pub(super) fn resting(&self) -> usize {
        // Acquire: the tasks that the resting workers have made ready before; pairs with the
        // release in `rest_until`.
        // mutant: the fence of the caller, which begins to rest itself, orders it in models.
        let counts = self.counts.0.load(Acquire);
        (resters(counts) - waiters(counts)) as usize
    }

    /// Counts a worker without tasks as a searcher. Returns `false` if enough workers search
    /// already.
    #[must_use]
    pub fn search(&self) -> bool {
        // Relaxed, both: the bound may be exceeded by a few, and IDLE-1 is about the end of a
        // search.
        let counts = self.counts.0.load(Relaxed);
        let awake = (self.seats.len() as u64).saturating_sub(resters(counts));
        if searchers(counts) >= awake.div_ceil(2) {
            return false;
        }
        self.counts.0.fetch_add(SEARCHER, Relaxed);
        true
    }

    /// Called when worker `me` has searched, and found a task. Wakes the next worker if `me` was
    /// the last searcher and `seen` returns that there are more tasks.
    pub fn found(&self, me: usize, seen: impl FnOnce() -> bool) {
        // Release: the tasks that it has moved to its own queue, for a worker that begins to rest
        // and sees that this one no longer searches; pairs with the fence there.
        if searchers(self.counts.0.fetch_sub(SEARCHER, Release)) == 1 {
            // IDLE-1; pairs with the fence in `notify_many`.
            P::fence(SeqCst);
            if seen() {
                self.wake(me, 1);
            }
        }
    }

    /// Puts worker `me`, which may be a searcher and has nothing to do, to rest until it is
    /// notified, or not at all if `seen` returns true. The argument of `seen` says whether no other
    /// worker searches. If another does, `seen` need not check for tasks, but only for the event
    /// that [`notify_all`](Self::notify_all) announces. The worker is a searcher when this returns.
    ///
    /// First spins for up to `spin`, then sleeps.
    pub fn rest(&self, me: usize, searcher: bool, spin: Budget, seen: impl FnOnce(bool) -> bool) {
        self.rest_until(me, searcher, Until { spin, awaited: None, deadline: None }, seen);
    }

    /// Like [`rest`](Self::rest), but an awaited event or a deadline ends it, too.
    pub(super) fn rest_until(
        &self,
        me: usize,
        searcher: bool,
        until: Until<'_, P>,
        seen: impl FnOnce(bool) -> bool,
    ) {
        let (seat, (set, bit)) = (&self.seats[me].0, self.bit(me));
        // Relaxed: published with the count.
        seat.state.store(RESTS, Relaxed);
        set.fetch_or(bit, Relaxed);
        let rester = if until.awaited.is_some() { WAITER + RESTER } else { RESTER };
        // Release: the seat and the bit; pairs with the acquire in `wake`.
        let before = self.counts.0.fetch_add(rester - u64::from(searcher), Release);
        // Ends the rest when it is dropped: `seen` may panic.
        let _rest = Rest { idlers: self, me, rester };
        // IDLE-1; pairs with the fence in `notify_many`.
        P::fence(SeqCst);
        // IDLE-5.
        if !seen(searchers(before) == u64::from(searcher)) {
            self.sleep(seat, &until);
        }
    }

    /// Wakes all resting workers.
    pub fn notify_all(&self) {
        // IDLE-1; pairs with the fence in `rest_until`.
        P::fence(SeqCst);
        let mut missed = false;
        for (group, set) in self.sets.iter().enumerate() {
            // Relaxed: a worker that is not there yet sees what this call announces.
            for at in ones(set.0.load(Relaxed)) {
                // IDLE-2, and Acquire: as in `wake`.
                // mutant: the fence above orders it where the worker's bit was seen late.
                self.counts.0.fetch_add(SEARCHER, Acquire);
                if !self.tell(&self.seats[group * u64::BITS as usize + at].0) {
                    self.counts.0.fetch_sub(SEARCHER, Relaxed);
                    missed = true;
                }
            }
        }
        if missed {
            // IDLE-4: checks again.
            self.notify(0);
        }
    }

    /// Waits until the seat's worker is notified, or another end of its rest has come.
    fn sleep(&self, seat: &Seat<P>, until: &Until<'_, P>) {
        let Until { spin, awaited, deadline } = *until;
        let over = || awaited.is_some_and(Awaited::is_over);
        let mut left = spin.ns;
        loop {
            let slice = if awaited.is_some() { left.min(SLICE_NS) } else { left };
            // Relaxed, here and below: a worker that is notified looks into queues, which acquire.
            let told = seat.state.spin_while(Relaxed, Budget::ns(slice), |state| state == RESTS);
            if told.is_ok() || over() {
                return;
            }
            left -= slice;
            if left == 0 {
                break;
            }
        }
        let lasts = || seat.state.load(Relaxed) == RESTS && !over();
        let ticket = self.notify.begin();
        loop {
            // In each round: a thread that was late to wake this worker from an earlier rest may
            // have taken the ticket.
            seat.bell.arm(ticket);
            if let Some(awaited) = awaited {
                awaited.arm(ticket);
            }
            if !lasts() {
                break;
            }
            // SAFETY: the ticket is the caller's, until `end` below.
            if unsafe { self.notify.sleep(ticket, deadline) } == Parked::TimedOut {
                break;
            }
        }
        seat.bell.disarm();
        if let Some(awaited) = awaited {
            awaited.disarm();
        }
        // SAFETY: the ticket is the caller's, and is not used after this.
        unsafe { self.notify.end(ticket) };
    }

    /// Wakes up to `most` resting workers, if none searches.
    #[cold]
    fn wake(&self, near: usize, most: u32) {
        let mut counts = self.counts.0.load(Relaxed);
        while is_wanted(counts) {
            let wanted = resters(counts).min(most.into());
            let more = counts + wanted * SEARCHER;
            // Acquire: seats and bits of resting workers; pairs with the releases in `rest_until`.
            // mutant: a worker that is missed without it is found in the next round, after the
            // fence below; the models don't count rounds.
            if let Err(now) = self.counts.0.compare_exchange(counts, more, Acquire, Relaxed) {
                counts = now;
                continue;
            }
            let missed = wanted - self.tell_some(near, wanted);
            if missed == 0 {
                return;
            }
            // IDLE-4. Relaxed: ordered by the fence.
            self.counts.0.fetch_sub(missed * SEARCHER, Relaxed);
            // Pairs with the fence in `notify_many`.
            // mutant: it takes a producer that counts on this searcher between the two, and two
            // workers that change places meanwhile: more threads than the models have.
            P::fence(SeqCst);
            counts = self.counts.0.load(Relaxed);
        }
    }

    /// Wakes the first resting workers from `near` on, at most `wanted`. Returns their number.
    fn tell_some(&self, near: usize, wanted: u64) -> u64 {
        let (groups, bits) = (self.sets.len(), u64::BITS as usize);
        let (home, from) = (near / bits % groups, near % bits);
        let workers = (0..groups).map(|step| (home + step) % groups).flat_map(|group| {
            // Relaxed: acquired with the count.
            let turned = self.sets[group].0.load(Relaxed).rotate_right(from as u32);
            ones(turned).map(move |at| group * bits + (at + from) % bits)
        });
        let told = workers.filter(|&worker| self.tell(&self.seats[worker].0));
        told.take(wanted as usize).count() as u64
    }

    /// Makes the worker of the seat search, if it still rests; returns whether it did.
    fn tell(&self, seat: &Seat<P>) -> bool {
        // Relaxed, both: only the count is handed over.
        let told = seat.state.compare_exchange(RESTS, TOLD, Relaxed, Relaxed).is_ok();
        if told {
            seat.bell.ring(&self.notify);
        }
        told
    }

    fn bit(&self, worker: usize) -> (&P::U64, u64) {
        let bits = u64::BITS as usize;
        (&self.sets[worker / bits].0, 1 << (worker % bits))
    }
}

/// The ends of a rest, other than a notification.
pub(super) struct Until<'a, P: Platform> {
    /// How long the worker spins before it sleeps.
    pub(super) spin: Budget,
    pub(super) awaited: Option<&'a Awaited<'a, P>>,
    pub(super) deadline: Option<Deadline>,
}

/// A worker's rest, until this is dropped.
struct Rest<'a, P: Platform> {
    idlers: &'a Idlers<P>,
    me: usize,
    /// How the worker is counted: as resting, or as one that waits, too.
    rester: u64,
}

impl<P: Platform> Drop for Rest<'_, P> {
    fn drop(&mut self) {
        let (counts, seat) = (&self.idlers.counts.0, &self.idlers.seats[self.me].0);
        // Relaxed: IDLE-2, a worker that was notified is counted as a searcher.
        if seat.state.load(Relaxed) == TOLD {
            counts.fetch_sub(self.rester, Relaxed);
        } else {
            // IDLE-3. Relaxed: `wake` tells no worker while this one is counted as a searcher, and
            // the end of that count, in `found` or `rest_until`, releases the seat. A thread that
            // sees the exchange below and not this has missed the worker, and checks again.
            counts.fetch_add(SEARCHER.wrapping_sub(self.rester), Relaxed);
            // Relaxed: nothing is handed over.
            if seat.state.compare_exchange(RESTS, RUNS, Relaxed, Relaxed).is_err() {
                // Woken meanwhile: counted twice.
                counts.fetch_sub(SEARCHER, Relaxed);
            }
        }
        let (set, bit) = self.idlers.bit(self.me);
        set.fetch_and(!bit, Relaxed);
    }
}

/// Returns the positions of the one bits of a word.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = word.trailing_zeros();
        (word != 0).then(|| {
            word &= word - 1;
            place as usize
        })
    })
}
