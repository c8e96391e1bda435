//! The allocator of waiter nodes.
//!
//! Nodes live in platform memory that is never freed, so a late read of one is always valid. They
//! are taken only under contention, without allocation and without locks:
//!
//! ```text
//!            take                         take
//!   fresh ────────────►  in use  ◄───────────────  cached by a thread (2 each)
//!   (generation 0)       (odd)   ───────────────►  (even, owner = thread)
//!                          │  ▲        give             │
//!                     give │  │ take                    │ the thread has ended
//!                          ▼  │                         ▼
//!                        free list (even, owner = 0) ◄──┘ scavenge
//! ```
//!
//! - ARENA-1: a node is in use by at most one waiter: at any time it is in exactly one of the
//!   states above.
//! - ARENA-2: `generation` changes with each arrow, so that a reference from before an arrow can be
//!   told from one after it.
//! - ARENA-3: an index that a parent process used is never handed out in the child of a `fork`
//!   (`fresh` survives the fork; the nodes and the lists don't): a stale name in an inherited lock
//!   word never resolves, not even in a word too narrow for an epoch.
//!
//! A thread that ends leaves up to two nodes in its cache: no destructor returns them. Once a block
//! of nodes is in use, a thread that finds no idle node checks a few old nodes for dead owners
//! first.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::{Atomic, AtomicInteger, Platform, ThreadId, Waiter, WaiterId, WaiterRef};

/// The allocator of a platform's waiter nodes. There is one per process (or execution, or
/// simulation).
pub struct Arena<P: Platform> {
    /// Number of indices handed out; may exceed the number of nodes.
    fresh: P::U32,
    /// The free list: in the high half a tag that grows with each change, in the low half the
    /// [`WaiterId`] of the first node.
    free: P::U64,
    /// Number of nodes that were checked for dead owners.
    scavenged: P::U32,
    /// Number of nodes in queues that their waiters have left.
    left_behind: P::U32,
    /// Measurements of the machine by the waiters of the process, in a format that their primitive
    /// defines; 0 if there are none.
    pub lesson: P::U64,
    /// Whether a thread of real-time priority has waited in this process or a parent of it.
    pub saw_urgent: Apart<P::U32>,
    /// Number of real-time waiters in queues, counted by the queue's address.
    urgent: Apart<[P::U32; COUNTERS]>,
    /// Number of waiters without a node.
    placeless: Apart<P::U32>,
    /// The cohorts of locks, by lock and socket, in a format that the lock defines.
    cohorts: [Apart<P::U64>; COHORTS],
    /// Number of [heavy fences](crate::LightUnlock::heavy_fence) that waiters have begun, for
    /// primitives that share them; wraps around.
    pub fences_begun: P::U32,
    /// The number of the last heavy fence that is complete; fences are numbered from 1 as they
    /// begin. Wraps around.
    pub fences_done: P::U32,
}

/// Data that all waiters read and few write, on its own cache lines: every wait writes the fields
/// beside it.
#[repr(align(64))]
pub struct Apart<T>(T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Number of counters for urgent waiters.
const COUNTERS: usize = 256;

/// Number of words for cohorts.
const COHORTS: usize = 512;

/// Number of nodes that one call of `scavenge` checks for dead owners.
const LOOKS: u32 = 64;

impl<P: Platform> Arena<P> {
    /// An arena that has handed out nothing.
    ///
    /// # Safety
    ///
    /// The result must be the arena that [`Platform::arena`] returns: two arenas would hand out the
    /// same nodes.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self {
            fresh: P::U32::ZERO,
            free: P::U64::ZERO,
            scavenged: P::U32::ZERO,
            left_behind: P::U32::ZERO,
            lesson: P::U64::ZERO,
            saw_urgent: Apart(P::U32::ZERO),
            urgent: Apart([const { P::U32::ZERO }; COUNTERS]),
            placeless: Apart(P::U32::ZERO),
            cohorts: [const { Apart(P::U64::ZERO) }; COHORTS],
            fences_begun: P::U32::ZERO,
            fences_done: P::U32::ZERO,
        }
    }

    /// Takes a node for a wait of the caller: from its own cache, the free list or fresh memory.
    ///
    /// Returns `None` when all nodes are in use; the caller then waits without one.
    #[must_use]
    pub fn take(&self) -> Option<WaiterId> {
        let id = self.take_cached().or_else(|| self.pop()).or_else(|| self.take_fresh())?;
        let node = self.resolve_any(id)?;
        node.owner.store(0, Relaxed);
        // Relaxed: a thread that learns the node's name from the caller acquires the generation
        // with the name.
        node.generation.fetch_add(1, Relaxed);
        Some(id)
    }

    /// Gives back a node to which no other thread will write any more.
    pub fn give(&self, id: WaiterId) {
        let Some(node) = self.resolve_any(id) else { return };
        node.next.store(0, Relaxed);
        Self::retire(node);
        let cached = P::local(|local| {
            local.cache.iter().any(|slot| {
                slot.load(Relaxed) == 0 && {
                    // The owner is set first: a scavenger acts on nodes of dead threads only.
                    node.owner.store(P::thread().0, Relaxed);
                    slot.compare_exchange(0, id.bits(), Relaxed, Relaxed).is_ok()
                }
            })
        });
        if !cached {
            node.owner.store(0, Relaxed);
            self.push(id, node);
        }
    }

    /// Moves the nodes that the calling thread caches for its next waits to the free list, because
    /// it will not wait any more. Needed where the platform can't [tell](Platform::alive) that a
    /// thread has ended.
    pub fn give_up_cached(&self) {
        while let Some(id) = self.take_cached() {
            let Some(node) = self.resolve_any(id) else { continue };
            // Twice, as in a wait that begins and ends: a scavenger may have read the old
            // generation.
            node.owner.store(0, Relaxed);
            node.generation.fetch_add(1, Relaxed);
            Self::retire(node);
            self.push(id, node);
        }
    }

    /// The node with the name `id`. `None` if another process wrote the name, or the node was never
    /// in use.
    #[must_use]
    pub fn resolve(&self, id: WaiterId) -> Option<&'static Waiter<P>> {
        if id.epoch() != P::epoch() { None } else { self.resolve_index(id.index()) }
    }

    /// Like [`resolve`](Self::resolve), for words too narrow for an epoch.
    #[must_use]
    pub fn resolve_index(&self, index: u32) -> Option<&'static Waiter<P>> {
        // Relaxed: a thread that has the name of a live node has acquired it, and with it a
        // generation above zero.
        if index == 0 || index >= P::WAITERS {
            return None;
        }
        Self::node(index).filter(|node| node.generation.load(Relaxed) != 0)
    }

    /// Like [`resolve`](Self::resolve), but without its checks: the caller knows that this process
    /// wrote the name and that the node was handed out.
    #[must_use]
    pub fn resolve_any(&self, id: WaiterId) -> Option<&'static Waiter<P>> {
        Self::node(id.index())
    }

    /// A reference to the present user of node `index`, to wake it later. `None` if the node is not
    /// in use.
    #[must_use]
    pub fn reference(&self, index: u32) -> Option<WaiterRef> {
        let generation = self.resolve_index(index)?.generation.load(Relaxed);
        (generation % 2 == 1).then_some(WaiterRef { index, generation })
    }

    /// The highest index that may be in use.
    #[must_use]
    pub fn high_water(&self) -> u32 {
        self.fresh.load(Relaxed).min(P::WAITERS - 1)
    }

    /// The number of real-time waiters in the queue at `address`, and in other queues that share
    /// the counter. The waiters maintain it; it affects only the order of service.
    #[must_use]
    #[inline]
    pub fn urgent(&self, address: usize) -> &P::U32 {
        const { assert!(P::COUNTERS.is_power_of_two() && P::COUNTERS <= COUNTERS) };
        // The highest bits are the best mixed ones.
        &self.urgent[(P::spread(address) >> 24) as usize & (P::COUNTERS - 1)]
    }

    /// The word for the cohort of the lock at `address` on `socket`; other locks or sockets may
    /// share it.
    #[must_use]
    #[inline]
    pub fn cohort(&self, address: usize, socket: u32) -> &P::U64 {
        const { assert!(P::COHORTS.is_power_of_two() && P::COHORTS <= COHORTS) };
        let place = P::spread(address).wrapping_add(socket.wrapping_mul(0x9E37_79B1) >> 8);
        &self.cohorts[place as usize & (P::COHORTS - 1)]
    }

    /// Forgets all nodes of the parent. Must be called in the child of a `fork`, by one thread,
    /// after the node memory was wiped and before [`Platform::epoch`] returns the child's epoch.
    pub fn forked(&self) {
        self.free.store(0, Relaxed);
        self.left_behind.store(0, Relaxed);
        for counter in self.urgent.iter() {
            counter.store(0, Relaxed);
        }
        self.placeless.store(0, Relaxed);
        // Words that are zero are not written: their pages stay shared with the parent.
        for cohort in self.cohorts.iter().filter(|cohort| cohort.load(Relaxed) != 0) {
            cohort.store(0, Relaxed);
        }
    }

    /// The number of waiters of the process that have no node, and so no place in a queue.
    #[must_use]
    pub fn placeless(&self) -> u32 {
        // Relaxed, as in `without_place`: the count affects how a lock is handed on, and orders
        // nothing.
        self.placeless.load(Relaxed)
    }

    /// Counts a waiter without a node while `wait` runs.
    pub fn without_place<R>(&self, wait: impl FnOnce() -> R) -> R {
        let epoch = P::epoch();
        self.placeless.fetch_add(1, Relaxed);
        let result = wait();
        // After a fork in a signal handler, this is the count of the child.
        if P::epoch() == epoch {
            self.placeless.fetch_sub(1, Relaxed);
        }
        result
    }

    /// The number of nodes in queues that their waiters have left, for primitives that bound it.
    #[must_use]
    pub fn left_behind(&self) -> u32 {
        // Relaxed, as in `leave_behind`: a count, which orders nothing.
        self.left_behind.load(Relaxed)
    }

    /// Counts a node whose waiter has left it in its queue.
    pub fn leave_behind(&self) {
        self.left_behind.fetch_add(1, Relaxed);
    }

    /// Gives back a node that was [left behind](Self::leave_behind).
    pub fn reclaim(&self, id: WaiterId) {
        self.left_behind.fetch_sub(1, Relaxed);
        self.give(id);
    }

    fn take_cached(&self) -> Option<WaiterId> {
        let epoch = P::epoch();
        P::local(|local| {
            local.cache.iter().find_map(|slot| {
                // A swap, because a signal handler may take from the same slot.
                WaiterId::from_bits(slot.swap(0, Relaxed)).filter(|id| id.epoch() == epoch)
            })
        })
    }

    fn take_fresh(&self) -> Option<WaiterId> {
        loop {
            let seen = self.fresh.load(Relaxed);
            if seen >= P::arena_block()
                && let Some(id) = self.scavenge()
            {
                return Some(id);
            }
            if seen >= P::WAITERS - 1 {
                return None;
            }
            // Memory that is not available uses up no index.
            Self::node(seen + 1)?;
            // An addition and not an exchange: hundreds of threads may come at once. It can
            // overshoot the end by that many, but never wrap.
            let index = self.fresh.fetch_add(1, Relaxed) + 1;
            // A lock's `head` field holds the low 15 or 16 bits of an index; zero means that it
            // names no waiter.
            if index < P::WAITERS && !index.is_multiple_of(1 << 15) {
                // Zero means never used: the first generation of an idle node is 2.
                Self::node(index)?.generation.store(2, Relaxed);
                return Some(WaiterId::new(P::epoch(), index));
            }
        }
    }

    /// Searches for nodes that dead threads have left in their caches: takes one and frees the
    /// others.
    ///
    /// Each call checks the next [`LOOKS`] nodes, cyclically, so no two calls check the same ones.
    /// So the arena grows only while fewer than one node in [`LOOKS`] belongs to a dead thread.
    #[cold]
    fn scavenge(&self) -> Option<WaiterId> {
        let up_to = self.high_water();
        let begin = self.scavenged.fetch_add(LOOKS, Relaxed);
        let mut found = None;
        let mut last = (0, true);
        for step in 0..LOOKS.min(up_to) {
            let index = begin.wrapping_add(step) % up_to + 1;
            let Some(node) = self.resolve_index(index) else { continue };
            // Acquire: pairs with the release in `retire`. That the thread is dead orders nothing.
            let generation = node.generation.load(Acquire);
            let owner = node.owner.load(Relaxed);
            if generation % 2 == 1 || owner == 0 {
                continue;
            }
            if last.0 != owner {
                last = (owner, P::alive(ThreadId(owner)));
            }
            // A thread that took the node after our load has changed the generation. We take the
            // node as a waiter would (odd): while it still names its dead owner, another scavenger
            // that saw it idle could claim it too (ARENA-1).
            let free = !last.1
                && node
                    .generation
                    .compare_exchange(generation, generation + 1, Relaxed, Relaxed)
                    .is_ok();
            if free {
                node.owner.store(0, Relaxed);
                Self::retire(node);
                let id = WaiterId::new(P::epoch(), index);
                if found.is_none() {
                    found = Some(id);
                } else {
                    self.push(id, node);
                }
            }
        }
        found
    }

    /// Ends the use of a node: its generation becomes even, and never zero.
    fn retire(node: &Waiter<P>) {
        // Only the user of a node changes an odd generation, so this needs no exchange.
        let next = node.generation.load(Relaxed).wrapping_add(1);
        // Release: pairs with the acquire in `scavenge`, in case our thread ends with the node in
        // its cache; a thread that sees this generation sees no owner from before it.
        node.generation.store(if next == 0 { 2 } else { next }, Release);
    }

    fn push(&self, id: WaiterId, node: &Waiter<P>) {
        let mut head = self.free.load(Relaxed);
        loop {
            node.next.store(head as u32, Relaxed);
            let new = Self::tagged(head, id.bits());
            // Release: publishes `next`, and the node's last wait; pairs with `pop`.
            match self.free.compare_exchange(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self) -> Option<WaiterId> {
        // Acquire (here and where the exchange fails): the node's `next`, and what its last user
        // did; pairs with `push`. Relaxed where it succeeds: an equal tag means that the head is
        // the one that was acquired.
        let mut head = self.free.load(Acquire);
        loop {
            let id = WaiterId::from_bits(head as u32)?;
            if id.epoch() != P::epoch() {
                return None;
            }
            let node = self.resolve_any(id)?;
            // The value may already belong to the node's next wait; then the tag has changed and
            // the exchange fails.
            let next = node.next.load(Relaxed);
            match self.free.compare_exchange(head, Self::tagged(head, next), Relaxed, Acquire) {
                Ok(_) => return Some(id),
                Err(now) => head = now,
            }
        }
    }

    fn tagged(head: u64, id: u32) -> u64 {
        ((head >> 32) + 1) << 32 | u64::from(id)
    }

    fn node(index: u32) -> Option<&'static Waiter<P>> {
        // SAFETY: the arena itself writes only to nodes that are not in use. A caller that resolves
        // other nodes has promised to follow their protocol, when it called `Platform::arena`.
        unsafe { P::waiter(index) }
    }
}
