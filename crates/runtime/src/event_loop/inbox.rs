//! The inbox of a loop, through which other threads send it requests.
//!
//! - POST-1 (no lost post): a poster puts the post in, and then rings; a loop that is about to
//!   sleep arms the [`Bell`], and then looks for posts. At least one of them sees the other.
//! - POST-2: no lock is held while something is dropped, called or woken.
//! - POST-3: a dropped handle is counted after its posts were put in; so a loop that finds no
//!   handles, and then no posts, gets none later.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::mem;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics, Ticket};
use antiphon_sync::lock::ShflMutex;

use crate::sleep::Bell;

use super::agenda::Entry;
use super::context::Callback;
use super::name::Name;
use super::sight::Sight;
use super::step::Due;
use super::wait::{Ring, Wait};

/// A post to a loop.
pub(super) enum Post<W: Wait> {
    /// An event to submit.
    Submit { id: u64, due: Due, name: Name, entry: Box<Entry<W, dyn Callback<W> + Send>> },
    /// Cancels the event of this number.
    Cancel(u64),
    /// Wakes the event, with at least that importance.
    Wake { id: u64, importance: Option<u64> },
    /// Stops the loop.
    Stop,
}

/// The state that a loop shares with its posters. On cache lines of its own: a loop without posters
/// shares no line, wherever it was allocated.
#[repr(align(64))]
pub(super) struct Shared<W: Wait> {
    lock: ShflMutex<W::Platform>,
    posts: UnsafeCell<Posts<W>>,
    /// Whether there are posts: 0 or 1.
    any: <W::Platform as Atomics>::U32,
    /// The number of the next event.
    next: <W::Platform as Atomics>::U64,
    /// The number of handles.
    handles: <W::Platform as Atomics>::U64,
    bell: Bell<W::Platform>,
    ring: Ring,
    pub(super) sight: Sight<W::Platform>,
}

struct Posts<W: Wait> {
    all: Vec<Post<W>>,
    /// The names of events, by place: for threads that watch the loop.
    names: Vec<Name>,
    /// The loop has been dropped.
    closed: bool,
}

// SAFETY: `posts` is used only under the lock, and its contents are `Send`; the rest are atomics,
// and a function that is `Sync`.
unsafe impl<W: Wait> Sync for Shared<W> {}
// SAFETY: its contents may be sent, see `Sync` above; nothing in it is bound to a thread.
unsafe impl<W: Wait> Send for Shared<W> {}

impl<W: Wait> Shared<W> {
    pub(super) fn new(ring: Ring) -> Self {
        Self {
            lock: ShflMutex::NEW,
            posts: UnsafeCell::new(Posts { all: Vec::new(), names: Vec::new(), closed: false }),
            any: Atomic::ZERO,
            next: Atomic::ZERO,
            handles: Atomic::ZERO,
            bell: Bell::NEW,
            ring,
            sight: Sight::NEW,
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Posts<W>) -> R) -> R {
        self.lock.lock();
        // SAFETY: locked; `f` neither re-enters nor unwinds: it only moves values.
        let result = f(unsafe { &mut *self.posts.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }

    /// Returns a number for an event.
    pub(super) fn number(&self) -> u64 {
        // Relaxed: the numbers only have to be distinct.
        self.next.fetch_add(1, Relaxed)
    }

    /// Posts to the loop; returns whether it was asleep. Hands the post back if the loop is gone.
    pub(super) fn post(&self, post: Post<W>) -> Result<bool, Post<W>> {
        self.with(|posts| {
            if posts.closed {
                return Err(post);
            }
            posts.all.push(post);
            // Relaxed: a thread that finds it takes the lock.
            self.any.store(1, Relaxed);
            Ok(())
        })?;
        Ok(self.wake())
    }

    /// POST-1: wakes the loop, if it sleeps; returns whether it did.
    fn wake(&self) -> bool {
        let sleeps = self.bell.take().is_some();
        if sleeps {
            (self.ring)();
        }
        sleeps
    }

    /// Returns whether there are posts.
    #[inline]
    pub(super) fn any(&self) -> bool {
        // Relaxed: the lock orders the contents. A loop that is about to sleep checks after a
        // fence: POST-1.
        self.any.load(Relaxed) != 0
    }

    /// Takes all posts, in the order in which they came.
    pub(super) fn take(&self, into: &mut Vec<Post<W>>) {
        self.with(|posts| {
            self.any.store(0, Relaxed);
            mem::swap(&mut posts.all, into);
        });
    }

    /// Called when the loop is about to sleep, unless it then finds posts, or no handles.
    pub(super) fn doze(&self) {
        self.bell.arm(Ticket::MIN);
    }

    /// Called when the loop is awake again.
    pub(super) fn awake(&self) {
        self.bell.disarm();
    }

    /// Adds a handle.
    pub(super) fn enter(&self) {
        // Relaxed: the caller has a handle, or is the loop.
        self.handles.fetch_add(1, Relaxed);
    }

    /// Removes a handle.
    pub(super) fn leave(&self) {
        // Release: POST-3; pairs with the acquire of `is_forsaken`, for each handle that was
        // dropped.
        // mutant: POST has tests and no model.
        if self.handles.fetch_sub(1, Release) == 1 {
            self.wake();
        }
    }

    /// Returns whether there are no handles.
    pub(super) fn is_forsaken(&self) -> bool {
        // Acquire: POST-3; pairs with the releases of `leave`.
        // mutant: as there.
        self.handles.load(Acquire) == 0
    }

    /// Adds the new name of an event.
    pub(super) fn add_name(&self, name: Name) {
        self.with(|posts| posts.names.push(name));
    }

    /// Returns the name at place `place`.
    pub(super) fn name(&self, place: usize) -> Option<Name> {
        self.with(|posts| posts.names.get(place).copied())
    }

    /// Closes the inbox when the loop is dropped. The caller must drop the posts that are returned.
    pub(super) fn close(&self) -> Vec<Post<W>> {
        self.with(|posts| {
            posts.closed = true;
            mem::take(&mut posts.all)
        })
    }
}
