//! The ordered list of a lock's sleepers: nodes protected by a spinlock.
//!
//! The mutex and the readers-writer semaphore use the same list. The flag of the list in the lock's
//! own word changes with it: the thread that adds the first sleeper or removes the last one changes
//! the flag.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::qspinlock::QSpinLock;
use crate::classic::node::Node;

/// A list of sleepers, 12 bytes; all bits zero is the empty list.
#[repr(C)]
pub(super) struct WaitList<P: Platform> {
    lock: QSpinLock<P>,
    first: P::U32,
    last: P::U32,
}

/// Access to the list for the thread that has locked it.
pub(super) struct Locked<'a, P: Platform>(&'a WaitList<P>);

impl<P: Platform> WaitList<P> {
    pub(super) const NEW: Self =
        Self { lock: QSpinLock::NEW, first: P::U32::ZERO, last: P::U32::ZERO };

    /// Runs `work` on the list with the list locked.
    pub(super) fn with<R>(&self, work: impl FnOnce(&Locked<'_, P>) -> R) -> R {
        self.lock.lock();
        let result = work(&Locked(self));
        // SAFETY: this function has locked it above.
        unsafe { self.lock.unlock() };
        result
    }
}

// Relaxed, all: handed on with the list's lock.
impl<P: Platform> Locked<'_, P> {
    /// Returns the first sleeper.
    pub(super) fn first(&self) -> Option<Node<P>> {
        Node::at(self.0.first.load(Relaxed))
    }

    /// Returns whether the first sleeper is `me`.
    pub(super) fn is_first(&self, me: &Node<P>) -> bool {
        self.0.first.load(Relaxed) == me.bits()
    }

    /// Appends `me`, whose wish is already written. If the list was empty, runs `begins` before
    /// another thread can see the list.
    pub(super) fn push(&self, me: &Node<P>, begins: impl FnOnce()) {
        me.waiter.next.store(0, Relaxed);
        match Node::<P>::at(self.0.last.load(Relaxed)) {
            Some(last) => last.waiter.next.store(me.bits(), Relaxed),
            None => {
                self.0.first.store(me.bits(), Relaxed);
                begins();
            }
        }
        self.0.last.store(me.bits(), Relaxed);
    }

    /// Removes `me` from any place in the list; returns whether the list is then empty.
    pub(super) fn remove(&self, me: &Node<P>) -> bool {
        let next = me.waiter.next.load(Relaxed);
        let mut before = None;
        let mut at = self.first();
        while let Some(node) = at.take_if(|node| node.bits() != me.bits()) {
            at = node.behind();
            before = Some(node);
        }
        match before {
            Some(before) => {
                before.waiter.next.store(next, Relaxed);
                if next == 0 {
                    self.0.last.store(before.bits(), Relaxed);
                }
            }
            None => self.begin_at(next),
        }
        self.0.first.load(Relaxed) == 0
    }

    /// Removes all sleepers before the node named `next`; if the name is 0, all.
    pub(super) fn begin_at(&self, next: u32) {
        self.0.first.store(next, Relaxed);
        if next == 0 {
            self.0.last.store(0, Relaxed);
        }
    }

    /// Counts the sleepers in front that `belong`, up to the first that does not.
    pub(super) fn count_front(&self, belongs: impl Fn(&Node<P>) -> bool) -> u32 {
        let mut count = 0;
        let mut at = self.first();
        while let Some(node) = at.take_if(|node| belongs(node)) {
            count += 1;
            at = node.behind();
        }
        count
    }

    /// Removes the sleepers in front that `belong`, as a separate chain. Returns the name of the
    /// first; 0 is none. Runs `ends` if the list is then empty.
    pub(super) fn take_front(
        &self,
        belongs: impl Fn(&Node<P>) -> bool,
        ends: impl FnOnce(),
    ) -> u32 {
        let chain = self.0.first.load(Relaxed);
        let mut last = None;
        let mut at = self.first();
        while let Some(node) = at.take_if(|node| belongs(node)) {
            at = node.behind();
            last = Some(node);
        }
        let Some(last) = last else { return 0 };
        last.waiter.next.store(0, Relaxed);
        let rest = at.as_ref().map_or(0, Node::bits);
        self.begin_at(rest);
        if rest == 0 {
            ends();
        }
        chain
    }
}

impl<P: Platform> Node<P> {
    /// Returns the node behind this one on a list.
    pub(super) fn behind(&self) -> Option<Self> {
        Self::at(self.waiter.next.load(Relaxed))
    }
}
