//! What other threads have a loop do.
//!
//! - INBOX-1 (no lost post): who posts puts the post in, and then rings; who is about to sleep
//!   leaves word, and then looks for posts ([`Bell`]). One of them sees the other.
//! - INBOX-2: no lock is held while something is dropped, called or woken.
//! - INBOX-3: a handle that goes is counted after what it has posted was put in; so a loop that
//!   finds no handles, and then no posts, gets none.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{Atomic, AtomicInteger, Platform, Ticket};
use antiphon_sync::lock::ShflMutex;

use crate::sleep::Bell;

use super::agenda::Entry;
use super::event::{Callback, Due, Event, EventId};
use super::name::Name;
use super::sight::Sight;
use super::wait::{Ring, Wait};

/// What is posted.
pub(super) enum Post<W: Wait> {
    /// An event.
    Submit { id: u64, due: Due, name: Name, entry: Box<Entry<W, dyn Callback<W> + Send>> },
    /// That one is to be cancelled.
    Cancel(u64),
    /// That one is to be woken.
    Wake(u64),
    /// The loop is to stop.
    Stop,
}

/// What a loop and those who post to it share.
pub(super) struct Shared<W: Wait> {
    lock: ShflMutex<W::Platform>,
    posts: UnsafeCell<Posts<W>>,
    /// Whether there are posts: 0 or 1.
    any: <W::Platform as Platform>::U32,
    /// The next number of an event.
    next: <W::Platform as Platform>::U64,
    /// How many handles there are.
    handles: <W::Platform as Platform>::U64,
    bell: Bell<W::Platform>,
    ring: Ring,
    pub(super) sight: Sight<W::Platform>,
}

struct Posts<W: Wait> {
    all: Vec<Post<W>>,
    /// The names of events, by place: for who watches the loop.
    names: Vec<Name>,
    /// The loop is gone.
    closed: bool,
}

// SAFETY: `posts` is used under the lock only, and what is in it may be sent; the rest are atomics,
// and a function that may be shared.
unsafe impl<W: Wait> Sync for Shared<W> {}
// SAFETY: as above; nothing in it is of a thread.
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
        // SAFETY: locked; `f` does not come here again, nor unwind: it moves what there is.
        let result = f(unsafe { &mut *self.posts.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }

    /// A number for an event.
    pub(super) fn number(&self) -> u64 {
        // Relaxed: it is to be another one each time, and no more.
        self.next.fetch_add(1, Relaxed)
    }

    /// Hands a post back if the loop is gone.
    pub(super) fn post(&self, post: Post<W>) -> Result<(), Post<W>> {
        self.with(|posts| {
            if posts.closed {
                return Err(post);
            }
            posts.all.push(post);
            // Relaxed: who finds it takes the lock.
            self.any.store(1, Relaxed);
            Ok(())
        })?;
        self.wake();
        Ok(())
    }

    /// INBOX-1: wakes the loop, if that sleeps.
    fn wake(&self) {
        if self.bell.take().is_some() {
            (self.ring)();
        }
    }

    /// Whether there are posts.
    #[inline]
    pub(super) fn any(&self) -> bool {
        // Relaxed: the lock orders what is taken. Who sleeps looks after a fence: INBOX-1.
        self.any.load(Relaxed) != 0
    }

    /// Takes all posts, in the order in which they came.
    pub(super) fn take(&self, into: &mut Vec<Post<W>>) {
        self.with(|posts| {
            self.any.store(0, Relaxed);
            mem::swap(&mut posts.all, into);
        });
    }

    /// The loop is about to sleep, unless it finds posts now, or that there are no handles.
    pub(super) fn doze(&self) {
        self.bell.arm(Ticket::MIN);
    }

    /// The loop is awake.
    pub(super) fn awake(&self) {
        self.bell.disarm();
    }

    /// Whether there are no handles.
    pub(super) fn is_forsaken(&self) -> bool {
        // Acquire: INBOX-3; pairs with the release of `Handle::drop`.
        self.handles.load(Acquire) == 0
    }

    /// An event has a name that is new.
    pub(super) fn add_name(&self, name: Name) {
        self.with(|posts| posts.names.push(name));
    }

    fn name(&self, place: usize) -> Option<Name> {
        self.with(|posts| posts.names.get(place).copied())
    }

    /// The loop goes: nothing is posted any more, and what is there is the caller's to drop.
    pub(super) fn close(&self) -> Vec<Post<W>> {
        self.with(|posts| {
            posts.closed = true;
            mem::take(&mut posts.all)
        })
    }
}

/// By which other threads have a loop do something. A clone is of the same loop. While there are
/// any, a loop that has nothing to do waits for what they submit.
pub struct Handle<W: Wait>(Arc<Shared<W>>);

/// By which other threads see what a loop is at. It keeps no loop waiting.
pub struct Lookout<W: Wait>(Arc<Shared<W>>);

/// The loop is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What a loop was found at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The name of the event; `None` if the loop has more than 65 534 names.
    pub name: Option<Name>,
    /// How long its callback has been running, in nanoseconds.
    pub for_ns: u64,
}

impl<W: Wait> Handle<W> {
    pub(super) fn new(shared: Arc<Shared<W>>) -> Self {
        // Relaxed: the caller has a handle, or is the loop.
        shared.handles.fetch_add(1, Relaxed);
        Self(shared)
    }

    /// Has the loop do something; see [`EventLoop::submit`](super::EventLoop::submit). Does not
    /// block; makes a system call if the loop sleeps, to wake it.
    ///
    /// What the caller did before happens before the event.
    ///
    /// # Errors
    ///
    /// If the loop is gone.
    pub fn submit<C: Callback<W> + Send>(&self, event: Event<W, C>) -> Result<EventId, Gone> {
        let id = self.0.number();
        let Event { due, name, callback, .. } = event;
        let entry = Entry::new(callback);
        self.post(Post::Submit { id, due, name, entry }).map(|()| EventId(id))
    }

    /// Has the loop forget about an event, if it is there when the loop comes to that.
    ///
    /// # Errors
    ///
    /// If the loop is gone.
    pub fn cancel(&self, id: EventId) -> Result<(), Gone> {
        self.post(Post::Cancel(id.0))
    }

    /// Wakes an event; see [`EventLoop::wake`](super::EventLoop::wake).
    ///
    /// # Errors
    ///
    /// If the loop is gone.
    pub fn wake(&self, id: EventId) -> Result<(), Gone> {
        self.post(Post::Wake(id.0))
    }

    /// Has the loop stop after the callback that it is in.
    ///
    /// # Errors
    ///
    /// If the loop is gone.
    pub fn stop(&self) -> Result<(), Gone> {
        self.post(Post::Stop)
    }

    fn post(&self, post: Post<W>) -> Result<(), Gone> {
        self.0.post(post).map_err(|_| Gone)
    }
}

impl<W: Wait> Lookout<W> {
    pub(super) const fn new(shared: Arc<Shared<W>>) -> Self {
        Self(shared)
    }

    /// The callback that the loop is in, if it is in one.
    #[must_use]
    pub fn sight(&self) -> Option<Sighting> {
        let seen = self.0.sight.look()?;
        // Only now: what was seen has begun before.
        let for_ns = seen.for_ns(W::now_ns());
        Some(Sighting { name: seen.kind().and_then(|kind| self.0.name(kind)), for_ns })
    }
}

impl<W: Wait> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<W: Wait> Drop for Handle<W> {
    fn drop(&mut self) {
        // Release: INBOX-3; pairs with the acquire of `is_forsaken`. Acquire: of other handles,
        // whose posts the loop is to see.
        if self.0.handles.fetch_sub(1, AcqRel) == 1 {
            self.0.wake();
        }
    }
}

impl<W: Wait> fmt::Debug for Handle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl<W: Wait> fmt::Debug for Lookout<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookout")
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the event loop is gone")
    }
}

impl core::error::Error for Gone {}
