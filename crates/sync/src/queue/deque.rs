//! The deque of a worker: the worker puts items in at the back and takes them out at either end;
//! thieves take up to half from the front.
//!
//! | lines | field | written by | read by |
//! |---|---|---|---|
//! | | [`Ends`] | the owner, thieves | all |
//! | the last two | `top`: the highest `tail` that a thief may have seen | the owner | the owner |
//!
//! A thief first reads the items that it would take, and has them if it then moves `head` on by an
//! exchange.
//!
//! ```text
//!        head                 limit                      tail       top
//!   ──────┼─────────────────────┼──────────────────────────┼──────────┼────
//!         │ what a thief that   │ what is the owner's,     │
//!         │ is on its way       │ which takes it with no   │
//!         │ may get at most     │ exchange                 │
//! ```
//!
//! A thief that loaded `tail` some time ago still takes half of what was there at that time. So the
//! owner, which takes from the back, reaches items that the thief may get. Then it moves `head` and
//! `tail` on by a whole number of laps, which changes no slot, and a thief that had loaded them
//! before fails. The owner does so once each time that the queue is halved.
//!
//! - DEQUE-1: a thief that loads `head` and then `tail` takes at most half of the items between,
//!   rounded up. `top` is not below any `tail` that could be seen after the owner has last moved
//!   on. So no thief gets an item at or above `limit = head + (top - head + 1) / 2`.
//! - DEQUE-2: between the owner's moving `tail` on and its moving `head` on, the queue seems to
//!   hold more than its capacity, whatever thieves take meanwhile: thieves that look are told to
//!   retry, and never see it empty.
//!
//! Stealing half and a fast end for the owner are in Hendler and Shavit, "Non-blocking steal-half
//! work queues" (2002), whose owner exchanges a range at each power of two. The dissertation's
//! stack exchanges cell by cell, and seems empty to its owner while a thief takes back what it
//! overshot.

use core::sync::atomic::Ordering::{Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::ends::{Ends, ahead};
use super::{Full, Item, Lines, Stolen, WorkQueue};

/// A deque of one owner and any number of thieves.
pub struct Deque<P: Platform> {
    ends: Ends<P>,
    top: Lines<P::U64>,
}

impl<P: Platform> Deque<P> {
    /// An empty deque with room for `capacity` items, that grows to `most` when it is full; both
    /// rounded up to powers of two, and at least 2.
    ///
    /// # Panics
    ///
    /// If `most` is below `capacity`, or above 2³¹.
    #[must_use]
    pub fn new(capacity: usize, most: usize) -> Self {
        Self { ends: Ends::new(capacity, most), top: Lines(P::U64::ZERO) }
    }

    /// Takes the item at the front. Does not block.
    pub fn steal(&self) -> Stolen {
        self.ends.steal()
    }

    /// For the owner: returns whether there is room for one more item.
    pub(super) fn has_room(&self) -> bool {
        self.ends.has_room()
    }

    /// Raises `tail`, and with it publishes the items below it.
    fn raise(&self, tail: u64) {
        if ahead(tail, self.top.0.load(Relaxed)) > 0 {
            // Before `tail`, so that `top` is never below it.
            self.top.0.store(tail, Relaxed);
        }
        // Release: the items below; pairs with the acquire in `look`.
        self.ends.tail.0.store(tail, Release);
    }

    /// DEQUE-1: returns whether no thief can get the item `last`, which is no longer below `tail`.
    fn is_ours(&self, head: u64, last: u64) -> bool {
        let most = self.top.0.load(Relaxed).wrapping_sub(head);
        ahead(last, head) >= most.div_ceil(2) as i64
    }

    /// Takes the item `last`, which is no longer below `tail`, and which thieves may be about to
    /// take.
    #[cold]
    fn pop_shared(&self, mut head: u64, last: u64) -> Option<Item> {
        let (array, lap) = (self.ends.slots.array(), self.lap());
        let tail = last.wrapping_add(lap);
        while ahead(last, head) > 0 {
            // DEQUE-2. Relaxed: published by the exchange; a thief that sees it earlier retries.
            self.ends.tail.0.store(tail, Relaxed);
            let moved = head.wrapping_add(lap);
            // Release: pairs with the acquire in `look`, to which the queue would seem empty.
            match self.ends.head.0.compare_exchange(head, moved, Release, Relaxed) {
                Ok(_) => {
                    // DEQUE-1: no thief goes by a `tail` that could be seen before.
                    self.top.0.store(tail, Relaxed);
                    return array.item(last);
                }
                Err(now) => head = now,
            }
        }
        self.ends.pop_only(head, last)
    }

    /// Returns the amount by which positions are moved on: slots stay the same, and no array in use
    /// holds half as many items.
    fn lap(&self) -> u64 {
        2 * self.ends.slots.array().capacity()
    }
}

impl<P: Platform> WorkQueue for Deque<P> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        let tail = self.ends.write(item)?;
        self.raise(tail);
        Ok(())
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        let (head, last) = self.ends.lower()?;
        if self.is_ours(head, last) {
            return self.ends.slots.array().item(last);
        }
        self.pop_shared(head, last)
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        self.ends.pop_front()
    }

    unsafe fn share(&self) -> bool {
        // Thieves can take all items already.
        true
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        let there = match self.ends.look() {
            Ok(there) => there,
            Err(told) => return told,
        };
        let ((tail, room), array) = (mine.ends.room(), mine.ends.slots.array());
        let count = share(there.size).clamp(1, there.size.div_ceil(2)).min(room + 1);
        let others = count - 1;
        for place in 0..others {
            let (from, to) = (there.head.wrapping_add(1 + place), tail.wrapping_add(place));
            // Relaxed, both: acquired with `tail`; published by that of `mine`, if we have them.
            array.slot(to).store(there.array.slot(from).load(Relaxed), Relaxed);
        }
        let told = self.ends.take(&there, count);
        if others > 0 && matches!(told, Stolen::Got(_)) {
            mine.raise(tail.wrapping_add(others));
        }
        told
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn count(&self) -> u64 {
        // DEQUE-2: the length may be a lap more than the number of items.
        self.ends.len() % self.lap()
    }
}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;

    use super::*;

    fn item(number: u64) -> Item {
        Item::new(8 * (512 + number)).expect("a word for an item")
    }

    /// The deque as it would be after some centuries.
    fn old(capacity: usize) -> Deque<Linux> {
        let deque = Deque::<Linux>::new(capacity, capacity);
        for position in [&deque.ends.head, &deque.ends.tail, &deque.top] {
            position.0.store(u64::MAX - 3, Relaxed);
        }
        deque
    }

    #[test]
    fn positions_may_pass_the_end_of_the_words() {
        let (deque, thief) = (old(8), old(8));
        for first in 0..10 {
            // SAFETY: there is one thread.
            unsafe {
                for number in first..first + 8 {
                    deque.push(item(number)).expect("room");
                }
                assert!(deque.push(item(0)).is_err());
                assert_eq!(deque.steal_into(&thief, |size| size), Stolen::Got(item(first)));
                assert_eq!(thief.pop_front(), Some(item(first + 1)));
                assert_eq!(thief.pop_back(), Some(item(first + 3)));
                assert_eq!(thief.pop_back(), Some(item(first + 2)));
                for number in (4..8).rev() {
                    assert_eq!(deque.pop_back(), Some(item(first + number)));
                }
                assert_eq!((deque.pop_back(), thief.pop_front()), (None, None));
            }
            assert!(deque.is_empty() && thief.is_empty());
        }
    }
}
