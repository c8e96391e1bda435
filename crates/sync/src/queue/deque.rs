//! The deque of a worker: it puts in at the back and takes out at either end, others steal up to
//! half from the front.
//!
//! | lines | field | written by | read by |
//! |---|---|---|---|
//! | 0–1 | `head`: the position of the first item | the owner, thieves | all |
//! | 2–3 | `tail`: the position behind the last; `array` | the owner | all |
//! | 4–5 | `top`: the highest `tail` that a thief may go by | the owner | the owner |
//!
//! Positions are 64 bits and never wrap; that of `n` is in slot `n` modulo the capacity. A thief
//! reads what it would have, and has it if it moves `head` on by an exchange then.
//!
//! ```text
//!        head                 limit                      tail       top
//!   ──────┼─────────────────────┼──────────────────────────┼──────────┼────
//!         │ what a thief that   │ what is the owner's,     │
//!         │ is on its way       │ which takes it with no   │
//!         │ may get at most     │ exchange                 │
//! ```
//!
//! A thief that has looked at `tail` some time ago still takes half of what was there then. So the
//! owner, who takes from the back, comes to what the thief may get: then it moves `head` and `tail`
//! on by a whole number of laps, which changes no slot, and whoever had looked before fails. It
//! does so once each time that the queue is halved.
//!
//! - DEQUE-1: whoever moves `head` from `h` on to `h + n` by an exchange, `n` below the capacity,
//!   has the items of these positions; nobody else has, and no slot of them is written before that.
//! - DEQUE-2: a thief that looks at `head` and then at `tail` takes half of that at most, rounded
//!   up. `top` is not below any `tail` that was to be seen since the owner has last moved on. So
//!   what is at or above `limit = head + (top - head + 1) / 2` is no thief's.
//! - DEQUE-3: the owner lowers `tail` first and looks at `head` then, with a fence between; a thief
//!   the other way round. So one of the two sees the other.
//! - DEQUE-4: between the owner's moving `tail` on and its moving `head` on, the queue seems to
//!   hold more than it can, whatever thieves take meanwhile: those who look are told to come back,
//!   never that it is empty.
//! - DEQUE-5: a larger array has what the one before had; that is never written to again, nor
//!   freed before the deque is.
//!
//! Stealing half and a fast end for the owner are in Hendler and Shavit, "Non-blocking steal-half
//! work queues" (2002), whose owner exchanges a range at each power of two. The dissertation's
//! stack exchanges cell by cell, and seems empty to its owner while a thief takes back what it
//! overshot.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Platform};

use super::array::Array;
use super::{Full, Item, Lines, Stolen, WorkQueue};

/// A deque of one owner and any number of thieves.
pub struct Deque<P: Platform> {
    head: Lines<P::U64>,
    back: Lines<Back<P>>,
    top: Lines<P::U64>,
    most: u64,
    first: Array<P>,
}

struct Back<P: Platform> {
    tail: P::U64,
    /// The address of the newest [`Array`], 0 while that is the first.
    array: P::U64,
}

/// What a thief has seen.
struct There<'a, P: Platform> {
    head: u64,
    size: u64,
    array: &'a Array<P>,
}

impl<P: Platform> Deque<P> {
    /// An empty one with room for `capacity` items, that grows to `most` when it is full; both
    /// rounded up to powers of two.
    ///
    /// # Panics
    ///
    /// If `most` is below `capacity`, or above 2³¹.
    #[must_use]
    pub fn new(capacity: usize, most: usize) -> Self {
        assert!(capacity <= most && most <= 1 << 31, "{capacity} to {most} items");
        Self {
            head: Lines(P::U64::ZERO),
            back: Lines(Back { tail: P::U64::ZERO, array: P::U64::ZERO }),
            top: Lines(P::U64::ZERO),
            most: most.max(2).next_power_of_two() as u64,
            first: Array::new(capacity.max(2).next_power_of_two(), 0),
        }
    }

    /// How many there are; may be stale at once.
    fn len(&self) -> u64 {
        // Relaxed, both: a guess.
        let head = self.head.0.load(Relaxed);
        let size = self.back.0.tail.load(Relaxed).wrapping_sub(head) as i64;
        // Below zero: taken since. From the lap on: DEQUE-4.
        size.max(0) as u64 % self.lap()
    }

    /// Puts `tail` up, with what is below it.
    fn raise(&self, tail: u64) {
        if self.top.0.load(Relaxed) < tail {
            // Before `tail`, so that it is never below that.
            self.top.0.store(tail, Relaxed);
        }
        // Release: the items below; pairs with the acquire in `look`.
        self.back.0.tail.store(tail, Release);
    }

    /// As `pop_back`, where thieves may be on their way to what is at the back. `tail` is one more
    /// than what the deque says.
    #[cold]
    fn pop_shared(&self, mut head: u64, tail: u64) -> Option<Item> {
        let (array, lap) = (self.array(), self.lap());
        while head < tail - 1 {
            // DEQUE-4. Relaxed: published by the exchange; who sees it earlier comes back.
            self.back.0.tail.store(tail - 1 + lap, Relaxed);
            // Release: pairs with the acquire in `look`, to which the queue would seem empty.
            match self.head.0.compare_exchange(head, head + lap, Release, Relaxed) {
                Ok(_) => {
                    // DEQUE-2: nobody goes by what was to be seen before.
                    self.top.0.store(tail - 1 + lap, Relaxed);
                    return array.item(tail - 1);
                }
                Err(now) => head = now,
            }
        }
        // One is left at most. Relaxed: the fence in `pop_back` releases what is below it.
        self.back.0.tail.store(tail, Relaxed);
        // Relaxed: it is empty then.
        if head == tail || self.head.0.compare_exchange(head, tail, Relaxed, Relaxed).is_err() {
            return None;
        }
        array.item(tail - 1)
    }

    /// Takes the item at the front. Does not block.
    pub fn steal(&self) -> Stolen {
        let there = match self.look() {
            Ok(there) => there,
            Err(told) => return told,
        };
        self.take(&there, 1)
    }

    /// What positions are moved on by: slots stay the same, and no array holds half as many.
    fn lap(&self) -> u64 {
        2 * self.most
    }

    /// The owner's: where it puts in next, and for how many there is room without growing.
    fn room(&self) -> (u64, u64) {
        let tail = self.back.0.tail.load(Relaxed);
        // Acquire: as in `push`.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        (tail, self.array().capacity() - (tail - self.head.0.load(Acquire)))
    }

    /// What is there to be taken, by a thief.
    fn look(&self) -> Result<There<'_, P>, Stolen> {
        // Relaxed: the fence acquires; pairs with the releases of the owner, so that `tail` is not
        // of before that.
        let head = self.head.0.load(Relaxed);
        // DEQUE-3; pairs with the fence in `pop_back`.
        P::fence(SeqCst);
        // Acquire: the items below it, and their array; pairs with the releases of the owner.
        let size = self.back.0.tail.load(Acquire).wrapping_sub(head) as i64;
        if size <= 0 {
            return Err(Stolen::Empty);
        }
        let (size, array) = (size as u64, self.array());
        // DEQUE-4, or `head` is of long ago.
        if size > array.capacity() {
            return Err(Stolen::Retry);
        }
        Ok(There { head, size, array })
    }

    /// DEQUE-1: takes so many, and returns the first.
    fn take(&self, there: &There<'_, P>, count: u64) -> Stolen {
        let head = there.head;
        let first = there.array.item(head);
        // Release: we have read the slots; pairs with the acquires of who writes to them.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        match self.head.0.compare_exchange(head, head + count, Release, Relaxed) {
            Ok(_) => first.map_or(Stolen::Retry, Stolen::Got),
            Err(_) => Stolen::Retry,
        }
    }

    fn array(&self) -> &Array<P> {
        // Acquire: what is in it; pairs with the release in `publish`.
        let address = self.back.0.array.load(Acquire);
        if address == 0 {
            return &self.first;
        }
        // SAFETY: `publish` has stored it, and it is freed with the deque.
        unsafe { &*core::ptr::with_exposed_provenance(address as usize) }
    }

    fn publish(&self, array: Array<P>) -> &Array<P> {
        let array = Box::into_raw(Box::new(array));
        // Release: pairs with the acquire in `array`.
        self.back.0.array.store(array.expose_provenance() as u64, Release);
        self.array()
    }

    /// A larger array, if there may be one. The owner's.
    #[cold]
    fn grow(&self) -> Option<&Array<P>> {
        let old = self.array();
        let capacity = old.capacity();
        if capacity >= self.most {
            return None;
        }
        let new = Array::<P>::new(2 * capacity as usize, self.back.0.array.load(Relaxed));
        let tail = self.back.0.tail.load(Relaxed);
        // DEQUE-5. Those that were taken meanwhile as well: nobody looks there.
        for position in tail - capacity..tail {
            new.slot(position).store(old.slot(position).load(Relaxed), Relaxed);
        }
        Some(self.publish(new))
    }
}

impl<P: Platform> WorkQueue for Deque<P> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        let tail = self.back.0.tail.load(Relaxed);
        let mut array = self.array();
        // Acquire: DEQUE-1; pairs with the releases of those who take from the front.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        if tail - self.head.0.load(Acquire) >= array.capacity() {
            array = self.grow().ok_or(Full(item))?;
        }
        // Relaxed: published by `tail`.
        array.slot(tail).store(item.word(), Relaxed);
        self.raise(tail + 1);
        Ok(())
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        let tail = self.back.0.tail.load(Relaxed);
        if tail == self.head.0.load(Relaxed) {
            return None;
        }
        let last = tail - 1;
        // Release: who sees this sees the items below; pairs with the acquire in `look`.
        self.back.0.tail.store(last, Release);
        // DEQUE-3; pairs with the fence in `look`.
        P::fence(SeqCst);
        let head = self.head.0.load(Relaxed);
        if last >= limit(head, self.top.0.load(Relaxed)) {
            return self.array().item(last);
        }
        self.pop_shared(head, tail)
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        let tail = self.back.0.tail.load(Relaxed);
        let mut head = self.head.0.load(Relaxed);
        while head < tail {
            let first = self.array().item(head);
            // Release: `tail` as it is; pairs with the acquire in `look`, to which the queue could
            // seem empty.
            match self.head.0.compare_exchange(head, head + 1, Release, Relaxed) {
                Ok(_) => return first,
                Err(now) => head = now,
            }
        }
        None
    }

    unsafe fn share(&self) -> bool {
        // They have it.
        true
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        let there = match self.look() {
            Ok(there) => there,
            Err(told) => return told,
        };
        let (tail, room) = mine.room();
        let count = share(there.size).clamp(1, there.size.div_ceil(2)).min(room + 1);
        for place in 1..count {
            // Relaxed, both: acquired with `tail`; published by that of `mine`, if we have them.
            let word = there.array.slot(there.head + place).load(Relaxed);
            mine.array().slot(tail + place - 1).store(word, Relaxed);
        }
        let told = self.take(&there, count);
        if count > 1 && matches!(told, Stolen::Got(_)) {
            mine.raise(tail + count - 1);
        }
        told
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<P: Platform> Drop for Deque<P> {
    fn drop(&mut self) {
        let mut address = self.back.0.array.load(Relaxed);
        while address != 0 {
            let array: *mut Array<P> = core::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: `publish` made it of a box, each is on the list once, and nobody else is left
            // who could look at it.
            address = unsafe { Box::from_raw(array) }.older;
        }
    }
}

/// DEQUE-2: what is from here on is no thief's.
fn limit(head: u64, top: u64) -> u64 {
    head + (top - head).div_ceil(2)
}
