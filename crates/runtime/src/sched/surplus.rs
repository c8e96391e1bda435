//! The unbounded queue for refused tasks: it holds tasks that must not be refused when there is no
//! room elsewhere.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `top` | producers | the address of the newest node; 0 if none |
//! | 2–3 | `count` | all | number of tasks, including those being put in, without one being taken |
//! | | `busy` | consumers | whether a consumer takes tasks out |
//! | | `first` | consumers | the address of the first of the nodes that are in order |
//!
//! - SURPLUS-1: a producer links its node to the top by an exchange; a consumer takes all nodes
//!   from the top at once. So no thread follows the link of a node that another thread owns.
//! - SURPLUS-2: one consumer at a time takes tasks out, in the order in which they were put in; a
//!   consumer that finds another one active retries later.

use alloc::boxed::Box;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};
use antiphon_sync::queue::{Full, Item, Stolen};

use crate::lines::Lines;

/// A queue that is bounded only by memory.
pub(super) struct Surplus<P: Platform> {
    top: Lines<P::U64>,
    taken: Lines<Taken<P>>,
}

struct Taken<P: Platform> {
    count: P::U64,
    busy: P::U32,
    first: P::U64,
}

struct Node<P: Platform> {
    item: P::U64,
    next: P::U64,
}

/// The most tasks that are taken at once.
const BATCH: usize = 32;

impl<P: Platform> Surplus<P> {
    /// Creates an empty queue.
    pub(super) const fn new() -> Self {
        let taken = Taken { count: P::U64::ZERO, busy: P::U32::ZERO, first: P::U64::ZERO };
        Self { top: Lines(P::U64::ZERO), taken: Lines(taken) }
    }

    /// Appends an item.
    pub(super) fn push(&self, item: Item) {
        let node = Box::leak(Box::new(Node::<P> { item: P::U64::ZERO, next: P::U64::ZERO }));
        let address = (&raw mut *node).expose_provenance() as u64;
        // Relaxed: a consumer looks for it, and a resting worker sees this by the fence of
        // `notify`.
        self.taken.0.count.fetch_add(1, Relaxed);
        // Relaxed, both: published by the exchange.
        node.item.store(item.word(), Relaxed);
        let mut top = self.top.0.load(Relaxed);
        loop {
            node.next.store(top, Relaxed);
            // Release: the node; pairs with the acquire in `pop_if`.
            match self.top.0.compare_exchange(top, address, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes the first task, and gives the next ones to `more` while that has room.
    pub(super) fn take(&self, mut more: impl FnMut(Item) -> Result<(), Full>) -> Stolen {
        if self.is_empty() {
            return Stolen::Empty;
        }
        // Acquire: the nodes, as the last consumer left them; pairs with the release in `Busy`'s
        // drop.
        if self.taken.0.busy.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            return Stolen::Retry;
        }
        // The guard is needed because `more` may panic.
        let _busy = Busy::<P>(&self.taken.0.busy);
        let Some(item) = self.pop_if(|_| Ok(())) else {
            return Stolen::Retry;
        };
        for _ in 1..BATCH {
            if self.pop_if(&mut more).is_none() {
                break;
            }
        }
        Stolen::Got(item)
    }

    /// Returns the number of tasks, including those being put in; may be stale at once.
    pub(super) fn len(&self) -> u64 {
        // Relaxed: a hint.
        self.taken.0.count.load(Relaxed)
    }

    /// Returns whether there are no tasks; may be stale at once.
    pub(super) fn is_empty(&self) -> bool {
        // Relaxed: a resting worker sees the count by the fence of `notify`.
        self.taken.0.count.load(Relaxed) == 0
    }

    /// Takes the first task, if there is one, and gives it to `take`. The caller has set `busy`.
    ///
    /// If `take` refuses, the task that it gives back stays in its place.
    fn pop_if(&self, take: impl FnOnce(Item) -> Result<(), Full>) -> Option<Item> {
        let Taken { count, first, .. } = &self.taken.0;
        // Relaxed: `first` belongs to the caller, which has acquired `busy`.
        let mut address = first.load(Relaxed);
        if address == 0 {
            // Acquire: SURPLUS-1, the nodes; pairs with the release in `push`.
            address = reversed::<P>(self.top.0.swap(0, Acquire));
            first.store(address, Relaxed);
        }
        let node = node::<P>(address)?;
        let item = Item::new(node.item.load(Relaxed))?;
        // Stored before `take`: if that panics, the task must not be taken again.
        first.store(node.next.load(Relaxed), Relaxed);
        // Relaxed, both: the consumer runs the task, or notifies.
        count.fetch_sub(1, Relaxed);
        if let Err(Full(back)) = take(item) {
            node.item.store(back.word(), Relaxed);
            first.store(address, Relaxed);
            count.fetch_add(1, Relaxed);
            return None;
        }
        // SAFETY: the node was leaked by `push`, and no other thread has it (SURPLUS-2).
        drop(unsafe { Box::from_raw(with_exposed_provenance_mut::<Node<P>>(address as usize)) });
        Some(item)
    }
}

/// Clears `busy` when it is dropped.
struct Busy<'a, P: Platform>(&'a P::U32);

impl<P: Platform> Drop for Busy<'_, P> {
    fn drop(&mut self) {
        // Release: the nodes; pairs with the acquire in `take`.
        self.0.store(0, Release);
    }
}

/// Returns the node at this address, which belongs to the caller.
fn node<'a, P: Platform>(address: u64) -> Option<&'a Node<P>> {
    let node = with_exposed_provenance_mut::<Node<P>>(address as usize);
    // SAFETY: null, or a node of `push` that is the caller's until it is freed.
    unsafe { node.as_ref() }
}

/// Reverses the list at this address.
fn reversed<P: Platform>(mut address: u64) -> u64 {
    let mut done = 0;
    while let Some(node) = node::<P>(address) {
        let next = node.next.load(Relaxed);
        node.next.store(done, Relaxed);
        done = address;
        address = next;
    }
    done
}

impl<P: Platform> Drop for Surplus<P> {
    fn drop(&mut self) {
        while self.pop_if(|_| Ok(())).is_some() {}
    }
}
