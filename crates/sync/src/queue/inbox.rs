//! The inbox: any thread puts items in, its owner takes them out, and nothing is allocated.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `posted` | all | the last item that was put in, which links to those before it |
//! | 2–3 | `sorted` | the owner | the items that it took from `posted`, in reverse |
//!
//! An item is the address of an object that begins with a [`Link`]: it is its own place in the
//! queue.
//!
//! - INBOX-1: an item is put in front of `posted` by one exchange; at no moment is it in the queue
//!   and unreachable, as in queues that exchange the end and then write the link.
//! - INBOX-2: the owner takes all of `posted` by one exchange. So no thread can find an item there
//!   twice, and an address may be used again at once.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::{Item, Lines};

/// An unbounded queue of one consumer and any number of producers. All zero bytes: empty.
#[repr(C)]
pub struct Inbox<P: Platform> {
    posted: Lines<P::U64>,
    sorted: Lines<P::U64>,
    links: PhantomData<Link<P>>,
}

/// The first field of an item of an [`Inbox`].
#[repr(transparent)]
pub struct Link<P: Platform>(P::U64);

impl<P: Platform> Link<P> {
    /// A link that is in no queue.
    pub const NEW: Self = Self(P::U64::ZERO);
}

impl<P: Platform> Inbox<P> {
    /// An empty inbox.
    pub const NEW: Self =
        Self { posted: Lines(P::U64::ZERO), sorted: Lines(P::U64::ZERO), links: PhantomData };

    /// Puts an item in; returns whether it is the first after the owner last took the posted items,
    /// so that the owner may have to be notified. Does not block.
    ///
    /// # Safety
    ///
    /// The item is the address of a [`Link`], in no queue, that no other thread reads, writes or
    /// frees before the owner has taken it out.
    pub unsafe fn push(&self, item: Item) -> bool {
        // Relaxed: acquired by the owner that takes it out.
        let mut last = self.posted.0.load(Relaxed);
        loop {
            // Relaxed: published by the exchange.
            link::<P>(item.word()).0.store(last, Relaxed);
            // Release: INBOX-1; pairs with the acquire in `sort`.
            match self.posted.0.compare_exchange(last, item.word(), Release, Relaxed) {
                Ok(_) => return last == 0,
                Err(now) => last = now,
            }
        }
    }

    /// Takes out the item that was put in first. Does not block.
    ///
    /// # Safety
    ///
    /// The caller is the owner: one thread at a time, whose operations on the inbox happen before
    /// those of the next owner.
    pub unsafe fn pop(&self) -> Option<Item> {
        // Relaxed, both: the owner's own.
        let first = match self.sorted.0.load(Relaxed) {
            0 => self.sort(),
            first => first,
        };
        let item = Item::new(first)?;
        self.sorted.0.store(link::<P>(first).0.load(Relaxed), Relaxed);
        Some(item)
    }

    /// Returns whether the inbox has no items; may be stale at once.
    pub fn is_empty(&self) -> bool {
        // Relaxed: `pop` acquires.
        self.sorted.0.load(Relaxed) == 0 && self.posted.0.load(Relaxed) == 0
    }

    /// Takes all posted items, and reverses their order; returns the first.
    fn sort(&self) -> u64 {
        // Relaxed: an item that is there is acquired below.
        if self.posted.0.load(Relaxed) == 0 {
            return 0;
        }
        // Acquire: the items, and the links; pairs with the releases in `push`, whose exchanges
        // continue each other's release sequence.
        let mut at = self.posted.0.swap(0, Acquire);
        let mut first = 0;
        while at != 0 {
            let link = link::<P>(at);
            let before = link.0.load(Relaxed);
            link.0.store(first, Relaxed);
            (first, at) = (at, before);
        }
        first
    }
}

/// Returns the link of an item that is in the inbox, or about to be.
fn link<'a, P: Platform>(address: u64) -> &'a Link<P> {
    // SAFETY: the thread that put the item in has promised that it is a link, and that it is not
    // freed.
    unsafe { &*core::ptr::with_exposed_provenance(address as usize) }
}
