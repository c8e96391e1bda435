//! The inbox: all threads put in, its owner takes out, and nothing is allocated.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `posted` | all | the last item that was put in, and by its links those before it |
//! | 2–3 | `sorted` | the owner | the items that it took from there, the other way round |
//!
//! An item is the address of an object that begins with a [`Link`]: it is its own place in the
//! queue.
//!
//! - INBOX-1: an item is put in front of `posted` by one exchange; there is no moment at which it
//!   is in and can't be reached, as in queues that exchange the end and then write the link.
//! - INBOX-2: the owner takes all of `posted` by one exchange. So no item is there twice while
//!   another thread looks, and an address may be used again at once.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::{Item, Lines};

/// A queue of one consumer and any number of producers, without bounds. All zero: empty.
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
    /// A link on no queue.
    pub const NEW: Self = Self(P::U64::ZERO);
}

impl<P: Platform> Inbox<P> {
    /// An empty inbox.
    pub const NEW: Self =
        Self { posted: Lines(P::U64::ZERO), sorted: Lines(P::U64::ZERO), links: PhantomData };

    /// Puts an item in; returns whether there was none after the owner's last look, so that the
    /// owner might want to be notified. Does not block.
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
    /// The caller is the owner: one thread at a time, and what it has done to the inbox happens
    /// before what the next owner does.
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

    /// Whether nothing is there for the owner; may be stale at once.
    pub fn is_empty(&self) -> bool {
        // Relaxed: `pop` acquires.
        self.sorted.0.load(Relaxed) == 0 && self.posted.0.load(Relaxed) == 0
    }

    /// Takes all that was posted, and reverses it; returns the first.
    fn sort(&self) -> u64 {
        // Relaxed: if it is there it is acquired below.
        if self.posted.0.load(Relaxed) == 0 {
            return 0;
        }
        // Acquire: the items, and the links; pairs with the releases in `push`, each of which but
        // the first carries those before it on.
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

/// The link of an item that is in the inbox, or about to be.
fn link<'a, P: Platform>(address: u64) -> &'a Link<P> {
    // SAFETY: the thread that put it in has promised that it is a link, and that it stays.
    unsafe { &*core::ptr::with_exposed_provenance(address as usize) }
}
