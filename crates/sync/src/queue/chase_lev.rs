//! The deque of Chase and Lev: its owner has both ends, thieves take one item at a time.
//!
//! | lines | field | written by | read by |
//! |---|---|---|---|
//! | | [`Ends`] | the owner, thieves | all |
//!
//! - CL-1: a thief takes one item, and the owner that has lowered `tail` sees every thief that does
//!   not see the new `tail` (ENDS-2). So the owner needs an exchange only for the last remaining
//!   item.
//!
//! Chase and Lev, "Dynamic circular work-stealing deque" (SPAA 2005). It serves as the comparison
//! for the other deques; use it where thieves should take little.

use core::sync::atomic::Ordering::Release;

use antiphon_platform::{Atomic, Platform};

use super::ends::{Ends, ahead};
use super::{Full, Item, Stolen, WorkQueue};

/// A deque of one owner, and any number of thieves, each of which takes one item.
pub struct ChaseLev<P: Platform>(Ends<P>);

impl<P: Platform> ChaseLev<P> {
    /// An empty deque with room for `capacity` items, that grows to `most` when it is full; both
    /// rounded up to powers of two, and at least 2.
    ///
    /// # Panics
    ///
    /// If `most` is below `capacity`, or above 2³¹.
    #[must_use]
    pub fn new(capacity: usize, most: usize) -> Self {
        Self(Ends::new(capacity, most))
    }

    /// Takes the item at the front. Does not block.
    pub fn steal(&self) -> Stolen {
        self.0.steal()
    }
}

impl<P: Platform> WorkQueue for ChaseLev<P> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        let tail = self.0.write(item)?;
        // Release: the items below; pairs with the acquire in `look`.
        self.0.tail.0.store(tail, Release);
        Ok(())
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        let (head, last) = self.0.lower()?;
        // CL-1
        if ahead(last, head) > 0 {
            self.0.slots.array().item(last)
        } else {
            self.0.pop_only(head, last)
        }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        self.0.pop_front()
    }

    unsafe fn share(&self) -> bool {
        // Thieves can take all items already.
        true
    }

    unsafe fn steal_into(&self, _: &Self, _: impl FnOnce(u64) -> u64) -> Stolen {
        self.steal()
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn count(&self) -> u64 {
        self.0.len()
    }
}
