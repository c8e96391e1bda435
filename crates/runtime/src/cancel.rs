//! Cancellation: a tree of tokens, each of which tells its users whether to end.
//!
//! | field | guarded by | meaning |
//! |---|---|---|
//! | `latch` | – | open: cancelled; the waiters for that are on its list |
//! | `deadline` | – | when the token is cancelled by time: not after its parent |
//! | `parent` | – | the token that it was made from |
//! | `place` | its maker, its dropper | its place in the parent's `children`, if it has one |
//! | `children` | `lock` | the tokens that are cancelled with it |
//!
//! - CANCEL-1 (no child is missed): a thread that cancels opens the latch and then takes the
//!   children, under the lock; a thread that makes a child checks the latch and adds the child,
//!   under the lock. So the child is found, or is cancelled at its creation.
//! - CANCEL-2 (nothing is left behind): a token that is dropped removes itself from its parent.
//! - CANCEL-3: no lock is held while waiters are woken; and there is no recursion, so the depth of
//!   a tree is limited only by memory.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem;

use antiphon_platform::{Deadline, Platform};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::nap;
use antiphon_sync::wait::{Latch, Several};

use crate::select::{Source, Stand, sooner};

/// A token; clones refer to the same token.
pub struct Token<P: Platform>(Arc<Node<P>>);

struct Node<P: Platform> {
    latch: Latch<P>,
    deadline: Option<Deadline>,
    parent: Option<Arc<Node<P>>>,
    place: UnsafeCell<Option<usize>>,
    lock: ShflMutex<P>,
    children: UnsafeCell<Children<P>>,
}

/// Children by place.
struct Children<P: Platform> {
    places: Vec<Place<P>>,
    /// The first free place.
    free: Option<usize>,
}

enum Place<P: Platform> {
    Taken(Weak<Node<P>>),
    /// A free place, with the index of the next free one.
    Free(Option<usize>),
}

// SAFETY: `children` is used only under the lock, `place` by the thread that makes the node and the
// one that drops it; the rest is `Sync`.
unsafe impl<P: Platform> Sync for Node<P> {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl<P: Platform> Send for Node<P> {}

impl<P: Platform> Children<P> {
    /// Adds a child. Returns its place.
    fn put(&mut self, child: Weak<Node<P>>) -> usize {
        let Some(at) = self.free else {
            self.places.push(Place::Taken(child));
            return self.places.len() - 1;
        };
        if let Place::Free(next) = mem::replace(&mut self.places[at], Place::Taken(child)) {
            self.free = next;
        }
        at
    }

    /// Removes a child, unless all were taken.
    fn remove(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            *place = Place::Free(self.free.replace(at));
        }
    }
}

impl<P: Platform> Node<P> {
    fn new(deadline: Option<Deadline>, parent: Option<Arc<Self>>) -> Self {
        Self {
            latch: Latch::new(1),
            deadline,
            parent,
            place: UnsafeCell::new(None),
            lock: ShflMutex::NEW,
            children: UnsafeCell::new(Children { places: Vec::new(), free: None }),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Children<P>) -> R) -> R {
        self.lock.lock();
        // SAFETY: locked; `f` does not re-enter.
        let result = f(unsafe { &mut *self.children.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }
}

impl<P: Platform> Token<P> {
    /// Creates a token that only its own [`cancel`](Self::cancel), and the deadline, cancels.
    #[must_use]
    pub fn new(deadline: Option<Deadline>) -> Self {
        Self(Arc::new(Node::new(deadline, None)))
    }

    /// Creates a token that is cancelled with this one, by its own [`cancel`](Self::cancel), and at
    /// its deadline.
    #[must_use]
    pub fn child(&self, deadline: Option<Deadline>) -> Self {
        let parent = &self.0;
        let deadline = match (parent.deadline, deadline) {
            (of_parent, Some(own)) => sooner::<P>(of_parent, own),
            (of_parent, None) => of_parent,
        };
        let child = Arc::new(Node::new(deadline, Some(parent.clone())));
        // CANCEL-1.
        let place = parent.with(|all| {
            let cancelled = parent.latch.is_open();
            (!cancelled).then(|| all.put(Arc::downgrade(&child)))
        });
        match place {
            // SAFETY: a canceller may have the child already, but reads no place: only the drop of
            // its last owner does, and we are an owner.
            Some(_) => unsafe { *child.place.get() = place },
            None => child.latch.count_down(1),
        }
        Self(child)
    }

    /// Cancels the token and all tokens that were made from it, and wakes their waiters. Linear in
    /// the number of tokens. When this returns they are cancelled, except those that a concurrent
    /// canceller is working on.
    pub fn cancel(&self) {
        let mut left = Vec::new();
        let mut next = Some(self.0.clone());
        while let Some(node) = next {
            // CANCEL-1, CANCEL-3.
            node.latch.count_down(1);
            let children = node.with(|all| {
                all.free = None;
                mem::take(&mut all.places)
            });
            left.extend(children.into_iter().filter_map(|place| match place {
                Place::Taken(child) => child.upgrade(),
                Place::Free(_) => None,
            }));
            next = left.pop();
        }
    }

    /// Returns whether the token was cancelled, or its deadline has passed; this never changes
    /// back.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.latch.is_open() || nap::passed::<P>(self.0.deadline)
    }

    /// Returns the latest time at which the token is cancelled.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        self.0.deadline
    }

    /// Waits until the token is cancelled, or until `deadline`; returns whether it is cancelled.
    /// Blocks.
    pub fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        let until = match (deadline, self.0.deadline) {
            (own, Some(of_token)) => sooner::<P>(own, of_token),
            (own, None) => own,
        };
        self.is_cancelled() || self.0.latch.wait_until(until) || self.is_cancelled()
    }

    /// Returns the number of places for children, used and free.
    #[must_use]
    pub fn places(&self) -> usize {
        self.0.with(|all| all.places.len())
    }
}

/// The event that the token is cancelled.
impl<P: Platform> Source<P> for Token<P> {
    fn try_take(&self) -> bool {
        self.is_cancelled()
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        self.0.latch.stand(several).map(Stand::had)
    }

    fn deadline(&self) -> Option<Deadline> {
        self.0.deadline
    }
}

impl<P: Platform> Drop for Node<P> {
    fn drop(&mut self) {
        let mut gone = self.parent.take().map(|parent| (parent, *self.place.get_mut()));
        while let Some((parent, place)) = gone {
            if let Some(place) = place {
                // CANCEL-2.
                parent.with(|all| all.remove(place));
            }
            // CANCEL-3: a loop, in which the last owner of each node drops its parent.
            gone = Arc::into_inner(parent).and_then(|mut node| {
                let place = *node.place.get_mut();
                Some((node.parent.take()?, place))
            });
        }
    }
}

impl<P: Platform> Clone for Token<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Platform> fmt::Debug for Token<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
