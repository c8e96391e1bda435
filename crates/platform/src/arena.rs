//! The allocator of waiter nodes.
//!
//! Nodes live in never-freed platform memory, so a late look at one is always a valid read. They
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
//! - ARENA-1: a node is in use by one waiter at most: it is in one of the states above at a time.
//! - ARENA-2: `generation` changes with each arrow, so that a reference from before an arrow can be
//!   told from one after it.
//! - ARENA-3: an index that a parent process used is never handed out in the child of a `fork`
//!   (`fresh` survives, the nodes and the lists don't): a stale name in an inherited lock word
//!   never resolves, not even in a word too narrow for an epoch.
//!
//! A thread that ends leaves up to two nodes in its cache; nothing is registered for its end. Once
//! a block of nodes is in use, a thread that finds no idle one looks at a few old ones first.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::{Atomic, AtomicInteger, Platform, ThreadId, Waiter, WaiterId, WaiterRef};

/// The allocator of a platform's waiter nodes. One a process (or execution, or simulation).
pub struct Arena<P: Platform> {
    /// How many indices were handed out; may exceed what there are.
    fresh: P::U32,
    /// The free list: a tag that grows with each change above the [`WaiterId`] of the first node.
    free: P::U64,
    /// How many nodes were looked at for dead owners.
    scavenged: P::U32,
    /// How many nodes stand in queues that their waiters have left.
    left_behind: P::U32,
    /// Measurements of the machine that the waiters of the process have made, in their primitive's
    /// words; 0 is none.
    pub lesson: P::U64,
    /// Whether a thread of real-time priority has waited in this process or a parent of it.
    pub saw_urgent: Apart<P::U32>,
    /// How many waiters of real-time priority stand in queues, by the queue's address.
    urgent: Apart<[P::U32; COUNTERS]>,
    /// How many waiters have no node.
    placeless: Apart<P::U32>,
    /// The cohorts of locks, in the locks' words, by lock and socket.
    cohorts: [Apart<P::U64>; COHORTS],
    /// How many [heavy fences](crate::LightUnlock::heavy_fence) waiters have begun, for primitives
    /// that share them; wraps around.
    pub fences_begun: P::U32,
    /// The number of the last of these that is over, counted as they begin and from 1; wraps
    /// around.
    pub fences_done: P::U32,
}

/// Data that all waiters read and few write, on lines of its own: what stands beside it is written
/// by each wait.
#[repr(align(64))]
pub struct Apart<T>(T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// How many counters there are for urgent waiters.
const COUNTERS: usize = 256;

/// How many words there are for cohorts.
const COHORTS: usize = 512;

/// How many nodes one taker looks at for dead owners.
const LOOKS: u32 = 64;

impl<P: Platform> Arena<P> {
    /// An arena that has handed out nothing.
    ///
    /// # Safety
    ///
    /// It is the one that [`Platform::arena`] returns: two would hand out the same nodes.
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
    /// `None` when all are in use; the caller then waits without a node.
    #[must_use]
    pub fn take(&self) -> Option<WaiterId> {
        let id = self.take_cached().or_else(|| self.pop()).or_else(|| self.take_fresh())?;
        let node = self.resolve_any(id)?;
        node.owner.store(0, Relaxed);
        // Relaxed: a thread that learns the node's name from us acquires it with the name.
        node.generation.fetch_add(1, Relaxed);
        Some(id)
    }

    /// Gives back a node that no other thread will write to any more.
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

    /// Gives the nodes that the calling thread keeps for its next waits to all threads: it will not
    /// wait any more. Needed where it can't be [asked](Platform::alive) whether a thread has ended.
    pub fn give_up_cached(&self) {
        while let Some(id) = self.take_cached() {
            let Some(node) = self.resolve_any(id) else { continue };
            // As of a wait that begins and ends: a scavenger may have looked at it.
            node.owner.store(0, Relaxed);
            node.generation.fetch_add(1, Relaxed);
            Self::retire(node);
            self.push(id, node);
        }
    }

    /// The node of a name that this process wrote and that was in use at some time; otherwise
    /// `None`.
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

    /// Like [`resolve`](Self::resolve), for a name that is known to be this process's, and for a
    /// node that was handed out: neither is looked at.
    #[must_use]
    pub fn resolve_any(&self, id: WaiterId) -> Option<&'static Waiter<P>> {
        Self::node(id.index())
    }

    /// The present user of `node`, to wake it later. `None` if the node is not in use.
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

    /// How many waiters of real-time priority stand in the queue at `address`, and perhaps in
    /// others that share the counter. Kept by the waiters; decides about order only.
    #[must_use]
    #[inline]
    pub fn urgent(&self, address: usize) -> &P::U32 {
        const { assert!(P::COUNTERS.is_power_of_two() && P::COUNTERS <= COUNTERS) };
        // The highest bits are the best mixed.
        &self.urgent[(P::spread(address) >> 24) as usize & (P::COUNTERS - 1)]
    }

    /// The word for the cohort of the lock at `address` on a socket; other locks, or sockets, may
    /// share it.
    #[must_use]
    #[inline]
    pub fn cohort(&self, address: usize, socket: u32) -> &P::U64 {
        const { assert!(P::COHORTS.is_power_of_two() && P::COHORTS <= COHORTS) };
        let place = P::spread(address).wrapping_add(socket.wrapping_mul(0x9E37_79B1) >> 8);
        &self.cohorts[place as usize & (P::COHORTS - 1)]
    }

    /// Forgets all nodes of the parent: to be called in the child of a `fork`, by one thread, after
    /// the node memory was wiped and before [`Platform::epoch`] returns the child's epoch.
    pub fn forked(&self) {
        self.free.store(0, Relaxed);
        self.left_behind.store(0, Relaxed);
        for counter in self.urgent.iter() {
            counter.store(0, Relaxed);
        }
        self.placeless.store(0, Relaxed);
        // Those that are zero are not written to: their pages are the parent's, too.
        for cohort in self.cohorts.iter().filter(|cohort| cohort.load(Relaxed) != 0) {
            cohort.store(0, Relaxed);
        }
    }

    /// How many waiters of the process have no node, and so no place in a queue.
    #[must_use]
    pub fn placeless(&self) -> u32 {
        // Relaxed, as below: it says how a lock is given on, and orders nothing.
        self.placeless.load(Relaxed)
    }

    /// Counts a waiter without a node while `wait` runs.
    pub fn without_place<R>(&self, wait: impl FnOnce() -> R) -> R {
        let epoch = P::epoch();
        self.placeless.fetch_add(1, Relaxed);
        let result = wait();
        // After a fork in a signal handler the count is of the child.
        if P::epoch() == epoch {
            self.placeless.fetch_sub(1, Relaxed);
        }
        result
    }

    /// How many nodes stand in queues that their waiters have left, for primitives that bound it.
    #[must_use]
    pub fn left_behind(&self) -> u32 {
        // Relaxed, as below: a count, which orders nothing.
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
            // Memory that can't be had costs no index.
            Self::node(seen + 1)?;
            // An addition and not an exchange: hundreds may come at once. It can overshoot the end
            // by as many as come at once, never wrap.
            let index = self.fresh.fetch_add(1, Relaxed) + 1;
            // A lock's `head` field has the low 15 or 16 bits of an index. Bits of zero there mean
            // that no waiter is named.
            if index < P::WAITERS && !index.is_multiple_of(1 << 15) {
                // Zero is dead: the first generation of an idle node is 2.
                Self::node(index)?.generation.store(2, Relaxed);
                return Some(WaiterId::new(P::epoch(), index));
            }
        }
    }

    /// Looks for nodes that dead threads have left in their caches: takes one and frees others.
    ///
    /// Each call looks at [`LOOKS`] nodes and no two calls at the same, round and round. So the
    /// arena grows only while fewer than one node in that many is a dead thread's.
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
            // A thread that has taken the node after we looked has changed the generation. We take
            // it as a waiter would (odd): while it still names its dead owner, another scavenger
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
        // Release: pairs with the acquire in `scavenge`, should our thread end with the node in its
        // cache; and a thread that sees this generation sees no owner from before it.
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
        // did; pairs with `push`. Relaxed where it succeeds: the tag tells that the head is the one
        // that was acquired.
        let mut head = self.free.load(Acquire);
        loop {
            let id = WaiterId::from_bits(head as u32)?;
            if id.epoch() != P::epoch() {
                return None;
            }
            let node = self.resolve_any(id)?;
            // May belong to the node's next wait already; then the tag has changed and the
            // exchange fails.
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
        // SAFETY: the arena writes to nodes that are not in use. A caller that asks it for others
        // has promised what it does with them, when it got the arena.
        unsafe { P::waiter(index) }
    }
}
