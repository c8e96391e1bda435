//! The slow path of readers: they sleep, and are let in together.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, WaiterRef};

use super::super::list::Locked;
use super::{
    ASLEEP, GRANTED, LinuxRwSem, READ, READER, READERS, WRITER, readers_in_front, reads, reference,
    wake,
};
use crate::classic::node::Node;

impl<P: Platform, const PATIENCE_NS: u64> LinuxRwSem<P, PATIENCE_NS> {
    #[cold]
    pub(super) fn read_contended(&self) {
        let Some(me) = Node::<P>::try_take() else { return self.read_without_node() };
        let (chain, writer) = self.sleepers.with(|list| {
            self.push(list, &me, READ);
            // Relaxed: the caller was counted and has read nothing; what it waits for is ordered by
            // the list.
            let now = self.count.fetch_sub(READER, Relaxed) - READER;
            self.after_release(list, now)
        });
        chain.let_in::<P>();
        wake::<P>(writer);
        me.sleep_while(ASLEEP);
        me.give();
    }

    /// Waits on behalf of a caller that is counted and has no node for the list.
    fn read_without_node(&self) {
        loop {
            let (chain, writer) = self.sleepers.with(|list| {
                // Relaxed: as in `read_contended`.
                let now = self.count.fetch_sub(READER, Relaxed) - READER;
                self.after_release(list, now)
            });
            chain.let_in::<P>();
            wake::<P>(writer);
            Node::<P>::nap();
            // Acquire: as in `read`.
            if self.count.fetch_add(READER, Acquire) & (READER - 1) == 0 {
                return;
            }
        }
    }

    /// RWSEM-2, RWSEM-3: `count` is `now`, perhaps because of the caller; returns the waiters that
    /// may go on.
    fn after_release(&self, list: &Locked<'_, P>, mut now: u32) -> (Chain, Option<WaiterRef>) {
        let front = list.first();
        let reader = front.as_ref().is_some_and(reads);
        if !reader {
            let writer = if now & (WRITER | READERS) == 0 { reference(&front) } else { None };
            return (Chain(0), writer);
        }
        let readers = readers_in_front(list);
        while now & WRITER == 0 {
            // A writer may steal the lock in between; then that writer lets the readers in as it
            // releases. Acquire: as in `read`, for the readers that are let in.
            // mutant: a writer that releases while a reader is counted does so with the list
            // locked, which orders it, too.
            let before = self.count.fetch_add(readers, Acquire);
            if before & WRITER == 0 {
                return (self.take_readers(list), None);
            }
            now = self.count.fetch_sub(readers, Relaxed) - readers;
        }
        (Chain(0), None)
    }
}

/// Readers that were taken off the list, and are counted.
#[must_use = "they sleep until they are let in"]
pub(super) struct Chain(pub(super) u32);

impl Chain {
    /// Lets these readers in. Touches only their nodes.
    pub(super) fn let_in<P: Platform>(self) {
        let mut left = self.0;
        while let Some(reader) = Node::<P>::at(left) {
            left = reader.waiter.next.load(Relaxed);
            let reference = reader.reference();
            // Release: what the last writer has done, and our read of the link; pairs with the
            // acquire in `sleep_while`.
            reader.waiter.status.store(GRANTED, Release);
            wake::<P>(reference);
        }
    }
}
