//! The lines of a reader indicator: the readers that are in, counted by socket.
//!
//! ```text
//!   entered  how many readers have entered      left  63       24 23    8 7     0
//!                                                    │ have left  │ name  │  WAKE │
//! ```
//!
//! - LINE-1: a reader that has counted itself in on a line, and finds that it may not be in, takes
//!   that back on the same line. So a line's count of readers that have entered is never too small.
//! - LINE-2: a reader leaves by any line that is joined, and the number of readers that are in is
//!   the sum over all lines: all that have entered less all that have left. A thread that reads
//!   first how many have left, on all lines, and then how many have entered, finds at least the
//!   number of readers that are in throughout. So a writer that finds a sum of 0 when no more
//!   readers are let in is alone, and is ordered after all that the readers have done.
//! - LINE-3: a writer that sleeps until the sum is 0 has named itself on each line; a reader that
//!   leaves, or takes back, and finds `WAKE`, looks at the sum behind a fence, as the writer has
//!   done before it sleeps. The last to leave finds 0.
//! - LINE-4: a reader joins a line before it counts itself there, and for good, whichever lock has
//!   the indicator. So a thread that sees the count, or its effects, sees the line in use; and a
//!   writer that does not see it is seen by the reader, behind the fence of each (RW-10).
//! - LINE-5: readers that leave on another line than they came make lines uneven; a writer that is
//!   alone makes them even again, so that others may wait for one line after the other.
//! - LINE-6: a writer that sleeps is named on all lines, in use or not: a line may be joined at any
//!   time, and its reader may be the last to leave, or to take its count back.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Deadline, Hint, Indicator, IndicatorLine, IndicatorWriters,
    LINES, Parked, Platform,
};

use super::super::queue::Place;
use super::RwForm;
use super::wake::wake;
use crate::nap;

const WAKE: u64 = 1;
const NAME_SHIFT: u32 = 8;
const NAME: u64 = 0xFFFF << NAME_SHIFT;
/// The part of a `left` word that counts one reader.
const LEAVE: u64 = 1 << 24;
/// The largest count that each word has room for.
const COUNT: u64 = u64::MAX / LEAVE;
/// The largest balance of a line that is not negative.
const MOST: u64 = COUNT / 2;

/// In `joined`: readers sleep at the gate (`asleep.rs`).
const ASLEEP: u32 = 1 << 31;
const _: () = assert!(LINES < 31);

/// How long a writer spins at one line before it looks at the others.
const PIECE_NS: u32 = 200;
/// Factor for the budget of a writer's spin: a look is charged `PIECE_NS`, and most looks take
/// less.
const LOOKS: u32 = 8;
/// How long a writer waits before it looks at a line again: each look takes the cache line away
/// from the readers.
const IN_PEACE_NS: u32 = 200;

/// The indicator of a lock.
pub(super) struct Lines<P: Platform>(&'static Indicator<P>);

/// One line of an indicator.
pub(super) struct Line<P: Platform>(&'static IndicatorLine<P>);

impl<P: Platform> Clone for Lines<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Lines<P> {}

fn all<P: Platform>() -> &'static [Indicator<P>] {
    // SAFETY: written only by this file, `spread.rs`, `crowd.rs`, `writers.rs` and `asleep.rs`,
    // which together implement the protocol that the contract requires.
    unsafe { P::indicators() }
}

impl<P: Platform> Lines<P> {
    /// Claims an indicator that no lock has for the caller's lock; returns it and its name, which
    /// is not 0.
    pub(super) fn claim() -> Option<(Self, u16)> {
        (1..).zip(all::<P>()).find_map(|(name, indicator)| {
            // Relaxed: the fence in `is_fresh` acquires what its last owner has done; pairs with
            // the release in `give`.
            let free = indicator.claimed.load(Relaxed) == 0
                && indicator.claimed.compare_exchange(0, 1, Relaxed, Relaxed).is_ok();
            (free && Self(indicator).is_fresh()).then(|| {
                Self(indicator).admit_writers();
                (Self(indicator), name)
            })
        })
    }

    /// RW-10: returns whether no late reader is counted here. A reader that counts itself from now
    /// on finds behind its fence what the caller has found before this. If a late reader is
    /// counted, gives the indicator back: in the child of a fork it may stay counted for good.
    fn is_fresh(self) -> bool {
        // mutant: it needs a late reader of another lock and four steps in one order, which 60 000
        // drawn executions do not have.
        P::fence(SeqCst);
        let fresh = self.sum() == 0;
        if !fresh {
            self.give();
        }
        fresh
    }

    /// Gives the indicator back. No reader is in. Joined lines stay joined: a reader that counts
    /// itself here late, as one of the lock's, is seen by the next lock that has the indicator.
    pub(super) fn give(self) {
        // Relaxed: published by the release below.
        self.0.owner.idle.store(0, Relaxed);
        // Release: pairs with the fence in `is_fresh`.
        // mutant: of a writer, the fence in `rouse_sleepers` has released all but `idle`, on which
        // no more depends than where readers are counted.
        self.0.claimed.store(0, Release);
    }

    /// Returns the indicator of this name; `None` if the name is 0 or unknown.
    pub(super) fn named(name: u16) -> Option<Self> {
        all::<P>().get(usize::from(name).checked_sub(1)?).map(Self)
    }

    /// Returns the owner's words.
    pub(super) fn owner(self) -> &'static antiphon_platform::IndicatorOwner<P> {
        &self.0.owner
    }

    /// Returns the words of writers that wait for each other.
    pub(super) fn writers(self) -> &'static IndicatorWriters<P> {
        &self.0.writers
    }

    /// Returns the lines in use, and their places.
    fn places(self) -> impl Iterator<Item = (usize, Line<P>)> {
        // Relaxed: LINE-4.
        let joined = self.0.joined.load(Relaxed);
        let lines = self.0.lines.iter().enumerate();
        lines.filter(move |(place, _)| joined & 1 << place != 0).map(|(at, line)| (at, Line(line)))
    }

    /// Returns the lines in use.
    pub(super) fn lines(self) -> impl Iterator<Item = Line<P>> {
        self.places().map(|(_, line)| line)
    }

    /// Returns all lines, in use or not.
    fn all(self) -> impl Iterator<Item = Line<P>> {
        self.0.lines.iter().map(Line)
    }

    /// Returns how many lines are in use.
    pub(super) fn count(self) -> u32 {
        (self.0.joined.load(Relaxed) & !ASLEEP).count_ones()
    }

    /// Returns the line of the caller's socket, if it is in use.
    #[inline]
    pub(super) fn here(self) -> Option<Line<P>> {
        let place = place::<P>();
        // Relaxed: as in `lines`.
        (self.0.joined.load(Relaxed) & 1 << place != 0).then(|| Line(&self.0.lines[place]))
    }

    /// Returns the line of the caller's socket if it is in use, or another line in use.
    pub(super) fn any(self) -> Option<Line<P>> {
        self.here().or_else(|| self.lines().next())
    }

    /// LINE-4: returns the line of the caller's socket, after joining it if necessary.
    pub(super) fn join(self) -> Line<P> {
        let place = place::<P>();
        // Relaxed: LINE-4.
        if self.0.joined.load(Relaxed) & 1 << place == 0 {
            self.0.joined.fetch_or(1 << place, Relaxed);
        }
        Line(&self.0.lines[place])
    }

    /// Tells waiting readers that readers are let in. The indicator may be another lock's by now:
    /// then its readers check their state once more, without effect.
    pub(super) fn tell(self) {
        // Relaxed: a reader that is notified looks at the state.
        self.0.gate.0.fetch_add(1, Relaxed);
        self.rouse_sleepers();
    }

    /// GATE-1: notes that a reader sleeps, or is about to.
    pub(super) fn note_sleeper(self) {
        // Relaxed: ordered by the fence after it. If a thread is about to clear the flag, it takes
        // the list after that, by an exchange that finds us (`Line::rouse`).
        if self.0.joined.load(Relaxed) & ASLEEP == 0 {
            self.0.joined.fetch_or(ASLEEP, Relaxed);
        }
    }

    /// GATE-1: returns whether a reader sleeps; the caller will wake all sleeping readers.
    pub(super) fn takes_sleepers(self) -> bool {
        // Relaxed: ordered by the fence before it.
        self.0.joined.load(Relaxed) & ASLEEP != 0
            && self.0.joined.fetch_and(!ASLEEP, Relaxed) & ASLEEP != 0
    }

    /// Returns how many times readers were notified.
    pub(super) fn told(self) -> u32 {
        // Relaxed: a reader that is notified looks at the state. If it misses a notification here,
        // it loses a moment at most.
        self.0.gate.0.load(Relaxed)
    }

    /// Waits until readers are notified once more; returns whether they were, within the budget.
    pub(super) fn wait_to_be_told(self, told: u32, budget: Budget) -> bool {
        // Relaxed: a reader that is notified looks at the state.
        self.0.gate.0.spin_while(Relaxed, budget, |now| now == told).is_ok()
    }

    /// Returns how many readers are in (LINE-2); never less than the number that are in throughout.
    pub(super) fn sum(self) -> u64 {
        // In this order, so that all readers that are seen to have left are also seen to have
        // entered.
        let left = self.lines().fold(0_u64, |sum, line| sum.wrapping_add(line.left()));
        self.entered().wrapping_sub(left) & COUNT
    }

    /// Returns whether a reader is in, usually by a look at the caller's line only. Always true if
    /// the caller is in. May be true although no reader is in, if readers have left on another line
    /// than they came by, until the next writer (LINE-5).
    pub(super) fn seems_read(self) -> bool {
        self.here().is_some_and(|line| matches!(line.balance(), 1..=MOST)) || self.sum() != 0
    }

    /// Returns whether a writer that lets no readers in is alone, by a [`sum`](Self::sum). LINE-5:
    /// if so, no line counts a reader that will still be taken back, so each line is made even.
    pub(super) fn is_empty(self) -> bool {
        let mut balances = [0; LINES];
        // In this order: as in `sum`. A line that is joined in between counts as one that no reader
        // has left.
        for (at, line) in self.places() {
            balances[at] = line.left();
        }
        let mut sum = 0_u64;
        for (at, line) in self.places() {
            // Relaxed: as in `Line::balance`.
            balances[at] = line.0.entered.load(Relaxed).wrapping_sub(balances[at]) & COUNT;
            sum = sum.wrapping_add(balances[at]);
        }
        let empty = sum & COUNT == 0;
        for (line, balance) in self.all().zip(balances).filter(|(_, b)| empty && *b != 0) {
            // Relaxed: no reader is in.
            line.0.left.fetch_add(balance.wrapping_mul(LEAVE), Relaxed);
        }
        empty
    }

    /// Returns how many readers have entered so far.
    pub(super) fn entered(self) -> u64 {
        // Relaxed: it decides how readers are counted, and not whether they are.
        self.lines().fold(0_u64, |sum, line| sum.wrapping_add(line.0.entered.load(Relaxed)))
    }

    /// LINE-2: removes the caller, which is counted here. Touches nothing of the lock, whose memory
    /// may be gone at once.
    #[inline]
    pub(super) fn leave(self) {
        let Some(line) = self.any() else { return };
        // Release: what we have read; pairs with the acquire in `Line::balance`.
        let left = line.0.left.fetch_add(LEAVE, Release);
        if left & WAKE != 0 {
            self.rouse(left);
        }
    }

    /// LINE-1: takes back what [`Line::enter`] has counted.
    #[cold]
    pub(super) fn take_back(self, line: &Line<P>) {
        // Relaxed: the caller has not been in.
        line.0.entered.fetch_sub(1, Relaxed);
        P::fence(SeqCst);
        // Relaxed: LINE-3, by the fence.
        let left = line.0.left.load(Relaxed);
        if left & WAKE != 0 {
            self.rouse(left);
        }
    }

    /// LINE-3: wakes the writer whose name was found, if no reader is in.
    #[cold]
    fn rouse(self, left: u64) {
        P::fence(SeqCst);
        if self.sum() == 0 {
            wake::<P>((left >> NAME_SHIFT) as u16);
        }
    }

    /// LINE-2: waits until no reader is in, or the deadline has passed, for a writer that lets no
    /// readers in; returns whether no reader is in.
    pub(super) fn wait_until_empty<F: RwForm>(self, deadline: Option<Deadline>) -> bool {
        self.spin_until_empty(F::HEAD_SPIN.ns.saturating_mul(LOOKS))
            || F::LINGER.ns != 0
                && P::roomy()
                && self.linger_until_empty(F::LINGER.ns.saturating_mul(LOOKS))
            || self.sleep_until_empty(deadline)
    }

    #[cold]
    fn linger_until_empty(self, budget_ns: u32) -> bool {
        P::hint(Hint::SpinBegin);
        let empty = self.spin_until_empty(budget_ns);
        P::hint(Hint::SpinEnd);
        empty
    }

    fn spin_until_empty(self, budget_ns: u32) -> bool {
        let mut left_ns = budget_ns;
        loop {
            for line in self.lines() {
                // Usually a reader leaves by the line on which it came. LINE-5: if not, only the
                // sum decides, so a line that no reader leaves does not delay the writer.
                while left_ns > 0 && line.balance() != 0 {
                    let piece_ns = left_ns.min(PIECE_NS);
                    left_ns -= piece_ns;
                    if !line.spin_until_left(piece_ns) {
                        break;
                    }
                }
            }
            if self.sum() == 0 {
                return true;
            }
            if left_ns == 0 {
                return false;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn sleep_until_empty(self, deadline: Option<Deadline>) -> bool {
        const NAP_NS: u64 = 200_000;
        let me = Place::take(crate::policy::None);
        let empty = loop {
            let known = me.filter(|me| !me.is_lost());
            // LINE-6.
            for line in self.all() {
                line.name(known.map(|me| me.id.index() as u16));
            }
            P::fence(SeqCst);
            if self.sum() == 0 {
                break true;
            }
            let parked = match known {
                Some(me) => P::park(me.node, deadline),
                None => {
                    nap::nap::<P>(NAP_NS);
                    Parked::TimedOut
                }
            };
            if parked == Parked::TimedOut && nap::passed::<P>(deadline) {
                break self.sum() == 0;
            }
        };
        for line in self.all() {
            // Relaxed: a thread that still reads the name wakes a node that is never freed.
            line.0.left.fetch_and(!(WAKE | NAME), Relaxed);
        }
        if let Some(me) = me {
            me.give();
        }
        empty
    }
}

impl<P: Platform> Line<P> {
    /// Returns the list of sleeping readers.
    pub(super) fn sleepers(&self) -> &'static P::U32 {
        &self.0.asleep
    }

    /// Counts the caller in, which then checks whether it is in.
    #[inline]
    pub(super) fn enter(&self) {
        // Relaxed: by the fence, a writer that we do not see will see us.
        self.0.entered.fetch_add(1, Relaxed);
        P::fence(SeqCst);
    }

    /// Counts the caller in, which keeps writers out in another way.
    pub(super) fn sit(&self) {
        // Relaxed: published when the caller stops keeping them out.
        self.0.entered.fetch_add(1, Relaxed);
    }

    /// Counts the `readers` of the lock's word here; `before` of them are counted here already.
    pub(super) fn count_over(&self, before: u64, readers: u64) {
        // Relaxed: published with the mode of the lock.
        self.0.entered.fetch_add(readers.wrapping_sub(before), Relaxed);
    }

    /// Returns how many readers have left by this line.
    fn left(&self) -> u64 {
        // Acquire: pairs with the release in `leave`.
        self.0.left.load(Acquire) / LEAVE
    }

    /// Returns how many more readers have entered by this line than have left; negative where
    /// readers move.
    fn balance(&self) -> u64 {
        let left = self.left();
        // Relaxed: the readers that have left are acquired.
        self.0.entered.load(Relaxed).wrapping_sub(left) & COUNT
    }

    /// Waits for a moment until one more reader has left; returns whether one has.
    fn spin_until_left(&self, ns: u32) -> bool {
        // Relaxed: the caller decides by the sum.
        let seen = self.0.left.load(Relaxed);
        let budget = Budget::ns(ns).backing_off(IN_PEACE_NS);
        self.0.left.spin_while(Relaxed, budget, |left| left == seen).is_ok()
    }

    /// Names the writer to wake; `None` if the writer naps.
    fn name(&self, name: Option<u16>) {
        let named = name.map_or(0, |name| WAKE | u64::from(name) << NAME_SHIFT);
        // Relaxed: the exchange checks it.
        let mut seen = self.0.left.load(Relaxed);
        // Relaxed: LINE-3. A reader that finds the name looks behind a fence, and the caller sums
        // behind its own. Of the readers that found the name, take the last whose fence is after
        // ours: it sees our node's generation and that all have left, and wakes us. If there is
        // none, we see that all have left, and do not sleep.
        while let Err(now) =
            self.0.left.compare_exchange(seen, seen & !(WAKE | NAME) | named, Relaxed, Relaxed)
        {
            seen = now;
        }
    }
}

/// Returns the index of the caller's line.
fn place<P: Platform>() -> usize {
    P::socket().0 as usize % LINES
}
