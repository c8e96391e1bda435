//! The fibers of a thread that may go on, as reported by other threads.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–3 | `posted` | all | an inbox: fibers that may go on |
//! | 4–5 | `told` | all | 1: the owner must check |
//! | | `bell` | the owner, a poster | by which the owner is woken |
//!
//! - READY-1 (no lost fiber): a poster that posts into an empty inbox sets `told` afterwards; the
//!   owner clears `told` before it checks, and rests while it is 0. So the owner is notified of a
//!   fiber that it has not found: by `told`, or by an earlier poster whose fiber it has not found
//!   either.
//! - READY-2: a poster may notify late, when the owner and the fiber have ended. So this is never
//!   freed, and a late poster notifies the present owner without effect.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};
use antiphon_sync::queue::{Inbox, Item};

use crate::lines::Lines;
use crate::sleep::{Bell, Park};
use crate::task::Awaited;

/// The inbox in which other threads put the fibers of a thread that may go on. READY-2: must be
/// leaked, or a static; the next owner continues to use it.
pub struct Ready<P: Platform> {
    posted: Inbox<P>,
    owner: Lines<Owner<P>>,
}

struct Owner<P: Platform> {
    told: P::U32,
    bell: Bell<P>,
}

impl<P: Platform> Ready<P> {
    /// An empty inbox.
    pub const NEW: Self =
        Self { posted: Inbox::NEW, owner: Lines(Owner { told: P::U32::ZERO, bell: Bell::NEW }) };

    /// Reports that this fiber may go on. Wakes its thread if it rests. Does not block.
    ///
    /// # Safety
    ///
    /// See [`Inbox::push`]: the item is the address of a [`Link`](antiphon_sync::queue::Link), in
    /// no queue, that no other thread reads, writes or frees before the owner has taken it out. And
    /// READY-2: this exists until the call is over, even if the fiber ends meanwhile.
    pub unsafe fn post(&self, fiber: Item) {
        // SAFETY: the caller's contract.
        if unsafe { self.posted.push(fiber) } {
            self.tell();
        }
    }

    /// Makes the owner check, for a fiber or for something else. Wakes it if it rests. Does not
    /// block.
    pub fn tell(&self) {
        // Release: READY-1, the fiber is in; pairs with the acquire in `look`. An exchange, because
        // a store may come before the exchange of an owner that has not seen the fiber.
        self.owner.0.told.swap(1, Release);
        self.owner.0.bell.ring(&Park::<P>::NEW);
    }

    /// Called by the owner before it takes out fibers until there is none.
    pub fn look(&self) {
        // Acquire: READY-1; pairs with the release in `tell`.
        self.owner.0.told.swap(0, Acquire);
    }

    /// Takes out the fiber that was put in first. Does not block.
    ///
    /// # Safety
    ///
    /// The caller is the owner: one thread at a time, and its accesses happen before those of the
    /// next owner.
    pub unsafe fn take(&self) -> Option<Item> {
        // SAFETY: the caller's contract.
        unsafe { self.posted.pop() }
    }

    /// Returns the event that a fiber is posted, for an owner that has [looked](Self::look) and
    /// found none.
    #[must_use]
    pub fn awaited(&self) -> Awaited<'_, P> {
        let Owner { told, bell } = &self.owner.0;
        Awaited { word: told, lasts: |told| told == 0, bell, watched: 0, own: None }
    }

    /// Ends the owner's rest: the owner has found something else to do.
    pub fn tell_oneself(&self) {
        // Relaxed: a message of the owner to itself. An exchange: it continues the release
        // sequences of other threads.
        self.owner.0.told.swap(1, Relaxed);
    }

    /// Returns whether the owner need not check; may be stale at once.
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
