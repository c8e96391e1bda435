//! The wheel: its position in time, and the timers that are due.
//!
//! - WHEEL-1: a timer in the levels is in the slot of its deadline at the wheel's position, which
//!   is not after it; so its slot is known, and begins after the position except on the lowest
//!   level. A timer that is late, because its deadline is before the position, was late when it was
//!   set.
//! - WHEEL-2: the position moves to the deadline of the timer that is handed out, or to a time at
//!   which no timer is due; never back, and never past a slot with timers. It enters such a slot
//!   only to take all timers out of it.

use core::fmt;
use core::ptr::NonNull;

use super::levels::{Levels, Place};
use super::list::{List, Timer};

/// The timers of one thread.
///
/// A wheel takes 5.7 KB, however many timers are in it.
pub struct Wheel {
    position_ns: u64,
    len: usize,
    levels: Levels,
    late: List,
}

/// The number of timers up to which the earliest of a slot is searched for.
const FEW: usize = 8;

const _: () = assert!(size_of::<Wheel>() < 5_760);

// SAFETY: it is not bound to a thread; only the owner of the wheel uses the timers' links, as the
// callers of `insert` have promised.
unsafe impl Send for Wheel {}

impl Wheel {
    /// Creates a wheel without timers.
    #[must_use]
    pub const fn new() -> Self {
        Self { position_ns: 0, len: 0, levels: Levels::new(), late: List::new() }
    }

    /// Returns how many timers are set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no timer is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a timer, in constant time; a timer that is set in this wheel already is moved.
    ///
    /// A timer whose deadline has passed is due at once.
    ///
    /// # Safety
    ///
    /// The timer is set in no other wheel, nor in one that was dropped. From now until it is handed
    /// out or removed, or the wheel is no longer used, it stays in place, there is no `&mut` to it,
    /// and only the thread that has the wheel uses it.
    pub unsafe fn insert(&mut self, timer: NonNull<Timer>, at_ns: u64) {
        // SAFETY: the caller's contract, here and below.
        unsafe { self.remove(timer) };
        // SAFETY: the caller's contract.
        unsafe { timer.as_ref() }.set_at_ns(at_ns);
        // SAFETY: the timer is in no list now.
        unsafe { self.put(timer, at_ns) };
        self.len += 1;
    }

    /// Removes a timer, in constant time, if it is set.
    ///
    /// # Safety
    ///
    /// The timer exists, and is set in no other wheel, nor in one that was dropped.
    pub unsafe fn remove(&mut self, timer: NonNull<Timer>) {
        // SAFETY: the caller's contract.
        let node = unsafe { timer.as_ref() };
        if !node.is_set() {
            return;
        }
        self.len -= 1;
        // WHEEL-1: the slot of its deadline.
        match self.place(node.at_ns()) {
            // SAFETY: the timer is set in this wheel.
            Some(place) => unsafe { self.levels.unlink(place, timer) },
            // SAFETY: the timer is set in this wheel.
            None => unsafe { self.late.unlink(timer) },
        }
    }

    /// Removes the next timer whose deadline is not after `now_ns`, and returns it: the pointer by
    /// which it was set.
    ///
    /// Timers are handed out by their deadlines, and those of the same nanosecond in the order in
    /// which they were set. A timer that is set for a time that the wheel has passed, which is
    /// before the last deadline that was handed out, or before a `now_ns` at which nothing was due,
    /// is late: due at once whatever `now_ns` is, before the others, and among late timers in the
    /// order of setting. Of the others, none is handed out before its deadline; so a `now_ns` that
    /// goes back does no harm.
    ///
    /// A timer is moved at most ten times before it is handed out, each time by a call of this; a
    /// call moves at most the timers of one slot.
    pub fn expire(&mut self, now_ns: u64) -> Option<NonNull<Timer>> {
        let due = self.late.pop().or_else(|| self.take_due(now_ns));
        self.len -= usize::from(due.is_some());
        due
    }

    /// Returns when to call [`expire`](Self::expire) next; `None` if no timer is set.
    ///
    /// That is not after the earliest deadline; it is that deadline if no more than eight timers
    /// share its slot. When [`expire`](Self::expire) has handed out all timers that were due, it is
    /// after the `now_ns` that was given. So a thread that always sleeps until then, and takes all
    /// timers that are due, wakes without success at most ten times for a timer: once for each
    /// level that the timer comes down with eight others or more. It is 0 if more than eight are
    /// late.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let (list, begin_ns) = if self.late.first().is_some() {
            (&self.late, 0)
        } else {
            let place = self.levels.earliest()?;
            (self.levels.list(place), place.begin_ns(self.position_ns))
        };
        let mut few = list.iter().map(|(_, at_ns)| at_ns);
        let earliest_ns = few.by_ref().take(FEW).min();
        if few.next().is_some() { Some(begin_ns) } else { earliest_ns }
    }

    /// Returns the slot of a deadline; `None` if it is late.
    #[inline]
    fn place(&self, at_ns: u64) -> Option<Place> {
        (at_ns >= self.position_ns).then(|| Place::of(at_ns, self.position_ns))
    }

    /// Puts a timer into its slot.
    ///
    /// # Safety
    ///
    /// See [`List::push`].
    #[inline]
    unsafe fn put(&mut self, timer: NonNull<Timer>, at_ns: u64) {
        match self.place(at_ns) {
            // SAFETY: the caller's contract.
            Some(place) => unsafe { self.levels.push(place, timer) },
            // SAFETY: the caller's contract.
            None => unsafe { self.late.push(timer) },
        }
    }

    /// Removes the next due timer that is not late.
    fn take_due(&mut self, now_ns: u64) -> Option<NonNull<Timer>> {
        let begun = |place: &Place| place.begin_ns(self.position_ns) <= now_ns;
        let Some(place) = self.levels.earliest().filter(begun) else {
            // WHEEL-2: before the first slot, of whose timers none is due.
            self.position_ns = self.position_ns.max(now_ns);
            return None;
        };
        if !place.is_one_ns() {
            return self.enter(place, now_ns);
        }
        self.position_ns = place.begin_ns(self.position_ns);
        let first = self.levels.list(place).first()?;
        // SAFETY: it is the first timer of the slot.
        unsafe { self.levels.unlink(place, first) };
        Some(first)
    }

    /// Moves into a slot that has begun: takes the first of its earliest timers out if that is due,
    /// and moves the others to their slots as seen from there.
    fn enter(&mut self, place: Place, now_ns: u64) -> Option<NonNull<Timer>> {
        let mut entered = self.levels.take(place);
        let (earliest, at_ns) = entered.iter().min_by_key(|&(_, at_ns)| at_ns)?;
        // WHEEL-2: into the slot; the levels below have no timers.
        self.position_ns = at_ns.min(now_ns);
        let due = at_ns <= now_ns;
        if due {
            // SAFETY: the timer is in that list.
            unsafe { entered.unlink(earliest) };
        }
        while let Some(timer) = entered.pop() {
            // SAFETY: LIST-1, and the timer is in no list now; it exists as long as before.
            unsafe { self.put(timer, timer.as_ref().at_ns()) };
        }
        due.then_some(earliest)
    }
}

impl Default for Wheel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position_ns, len, .. } = self;
        f.debug_struct("Wheel").field("position_ns", position_ns).field("len", len).finish()
    }
}
