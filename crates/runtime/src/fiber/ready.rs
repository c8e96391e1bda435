//! The fibers of a thread that may go on, as other threads have said.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–3 | `posted` | all | an inbox: fibers that may go on |
//! | 4–5 | `told` | all | 1: there is something for the owner to look at |
//! | | `bell` | the owner, a poster | how the owner sleeps |
//!
//! - READY-1 (no lost fiber): a poster that posts where nothing was sets `told` afterwards; the
//!   owner clears `told` before it looks, and rests while it is 0. So the owner is notified of a
//!   fiber that it has not found: by `told`, or by an earlier poster whose fiber was not found
//!   either.
//! - READY-2: a poster may be late to tell, and the owner, and the fiber, gone. So this is never
//!   freed, and a late poster tells the thread that owns it by then, in vain.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};
use antiphon_sync::queue::{Inbox, Item};

use crate::lines::Lines;
use crate::sleep::{Bell, Park};
use crate::task::Awaited;

/// The place where other threads put the fibers of a thread that may go on. READY-2: to be leaked,
/// or a static; the next owner goes on with it.
pub struct Ready<P: Platform> {
    posted: Inbox<P>,
    owner: Lines<Owner<P>>,
}

struct Owner<P: Platform> {
    told: P::U32,
    bell: Bell<P>,
}

impl<P: Platform> Ready<P> {
    /// Creates one without fibers.
    pub const NEW: Self =
        Self { posted: Inbox::NEW, owner: Lines(Owner { told: P::U32::ZERO, bell: Bell::NEW }) };

    /// Says that this fiber may go on. Wakes its thread if that rests. Does not block.
    ///
    /// # Safety
    ///
    /// See [`Inbox::push`]: the item is the address of a [`Link`](antiphon_sync::queue::Link), in
    /// no queue, that no other thread reads, writes or frees before the owner has taken it out. And
    /// READY-2: this is there until the call is over, whatever happens to the fiber meanwhile.
    pub unsafe fn post(&self, fiber: Item) {
        // SAFETY: the caller's.
        if unsafe { self.posted.push(fiber) } {
            self.tell();
        }
    }

    /// Makes the owner look, for a fiber or for something else. Wakes it if it rests. Does not
    /// block.
    pub fn tell(&self) {
        // Release: READY-1, the fiber is in; pairs with the acquire in `look`. An exchange, because
        // a store may come before the exchange of an owner that has not seen the fiber.
        self.owner.0.told.swap(1, Release);
        self.owner.0.bell.ring(&Park::<P>::NEW);
    }

    /// The owner begins to look, and takes out until there is none.
    pub fn look(&self) {
        // Acquire: READY-1; pairs with the release in `tell`.
        self.owner.0.told.swap(0, Acquire);
    }

    /// Takes the fiber out that was put in first. Does not block.
    ///
    /// # Safety
    ///
    /// The caller is the owner: one thread at a time, and what it has done here happens before what
    /// the next owner does.
    pub unsafe fn take(&self) -> Option<Item> {
        // SAFETY: the caller's.
        unsafe { self.posted.pop() }
    }

    /// The event that something is posted, for an owner that has [looked](Self::look) and found
    /// nothing.
    #[must_use]
    pub fn awaited(&self) -> Awaited<'_, P> {
        let Owner { told, bell } = &self.owner.0;
        Awaited { word: told, lasts: |told| told == 0, bell, watched: 0, own: None }
    }

    /// The owner has found something else to look at, while it rests: ends its rest.
    pub fn tell_oneself(&self) {
        // Relaxed: the owner's word to itself. An exchange: it carries on what others have
        // released.
        self.owner.0.told.swap(1, Relaxed);
    }

    /// Whether the owner need not look; may be stale at once.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        // Relaxed: `look` acquires.
        self.owner.0.told.load(Relaxed) == 0
    }
}

impl<P: Platform> Default for Ready<P> {
    fn default() -> Self {
        Self::NEW
    }
}

impl<P: Platform> core::fmt::Debug for Ready<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ready").field("is_quiet", &self.is_quiet()).finish_non_exhaustive()
    }
}
