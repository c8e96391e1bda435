//! The three-state mutex: a word that tells whether a thread may be asleep, and a queue of
//! sleepers.
//!
//! Source: U. Drepper, "Futexes Are Tricky", "Mutex, Take 2". glibc's normal mutex and Rust's are
//! of this kind.
//!
//! On Linux the kernel keeps the queue and finds it by the word's address. A platform has no such
//! queue, so here the lock contains it:
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `word` | the state, 2 bits; above them the index of the last to sleep, 22 bits |
//! | 4–7 | `oldest` | index of the sleeper to be woken next; the owner's |
//!
//! ```text
//!             lock               one goes to sleep
//!   FREE ◄────────────► LOCKED ───────────────────────► CONTENDED
//!   ▲  │     unlock                                      ▲  │
//!   │  └─────────────────────────────────────────────────┘  │
//!   │              lock, by one that had to wait            │
//!   └───────────────────────────────────────────────────────┘
//!                  unlock, and wake the oldest
//!
//!   word ───► newest ──next──► … ──► oldest of the new    (the owner turns them round
//!   oldest ─► oldest ──next──► … ──► newest of the old     when there are no old ones)
//! ```
//!
//! A thread that had to wait locks it as CONTENDED, because other threads may still sleep. Arriving
//! waiters barge.
//!
//! - FUTEX-1: while a thread sleeps, the state is CONTENDED, or a thread that was woken is about to
//!   set it.
//! - FUTEX-2: sleepers put themselves in front of `word`'s list; only the owner removes from it,
//!   and only the owner touches `oldest`.
//! - FUTEX-3: nothing of the lock is touched after the exchange that releases it.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, WaiterId};

use super::node::Node;

/// Status of a waiter that must be woken; otherwise 0.
const ASLEEP: u32 = 1;

/// A three-state mutex of 8 bytes, and a node of 64 bytes for each sleeper.
#[repr(C)]
pub struct Futex<P: Platform> {
    word: P::U32,
    oldest: P::U32,
}

/// The word, unpacked.
#[derive(Clone, Copy)]
struct Word(u32);

impl Word {
    const FREE: u32 = 0;
    const LOCKED: u32 = 1;
    const CONTENDED: u32 = 2;
    const STATE: u32 = 3;
    const STATE_BITS: u32 = 2;

    fn is_free(self) -> bool {
        self.0 & Self::STATE == Self::FREE
    }

    /// Returns the word with the same sleepers and state CONTENDED.
    fn contended(self) -> u32 {
        self.0 & !Self::STATE | Self::CONTENDED
    }

    /// Returns the word that [`contended`](Self::contended) returns, with one more sleeper.
    fn joined_by(index: u32) -> u32 {
        index << Self::STATE_BITS | Self::CONTENDED
    }

    /// Returns the index of the last that went to sleep; 0 if all are sorted.
    fn newest(self) -> u32 {
        self.0 >> Self::STATE_BITS
    }
}

const _: () = assert!(WaiterId::INDEX_BITS + Word::STATE_BITS <= u32::BITS);

impl<P: Platform> Futex<P> {
    /// A free lock.
    pub const NEW: Self = Self { word: P::U32::ZERO, oldest: P::U32::ZERO };

    /// Acquires the lock; sleeps until the caller has it. Naps where there is no node for the
    /// caller.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    /// Acquires the lock if it is free, ahead of all that sleep.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the releases of the word in `unlock`.
        match self.word.compare_exchange(Word::FREE, Word::LOCKED, Acquire, Relaxed) {
            Ok(_) => true,
            Err(seen) => self.take_contended(seen).is_ok(),
        }
    }

    /// Releases the lock; wakes the thread that has slept longest.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquire of the next owner.
        if self.word.compare_exchange(Word::LOCKED, Word::FREE, Release, Relaxed).is_err() {
            self.unlock_contended();
        }
    }

    #[cold]
    fn lock_contended(&self) {
        loop {
            let Err(held) = self.take_contended(self.word.load(Relaxed)) else { return };
            let Some(me) = Node::try_take() else {
                Node::<P>::nap();
                continue;
            };
            if self.join(&me, held) {
                me.sleep_while(ASLEEP);
            }
            me.give();
        }
    }

    /// Locks a free lock as CONTENDED.
    ///
    /// # Errors
    ///
    /// The word, if the lock is held. `seen` is the word as the caller has seen it.
    fn take_contended(&self, mut seen: u32) -> Result<(), u32> {
        while Word(seen).is_free() {
            // Acquire: as in `try_lock`.
            match self.word.compare_exchange(seen, Word(seen).contended(), Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
        Err(seen)
    }

    /// Adds the caller's node to the sleepers of a held lock; returns `false` if the word is no
    /// longer `held`.
    fn join(&self, me: &Node<P>, held: u32) -> bool {
        // Relaxed: published by the exchange.
        me.waiter.next.store(Word(held).newest(), Relaxed);
        me.waiter.status.store(ASLEEP, Relaxed);
        // Release: our node; pairs with the acquire in `sort`.
        let joined = Word::joined_by(me.id.index());
        self.word.compare_exchange(held, joined, Release, Relaxed).is_ok()
    }

    #[cold]
    fn unlock_contended(&self) {
        loop {
            match self.first_sleeper() {
                Some(first) => return self.release_and_wake(&first),
                None if self.release_alone() => return,
                None => {}
            }
        }
    }

    /// Releases a lock for which no thread sleeps. Returns `false` if one sleeps now (FUTEX-1).
    fn release_alone(&self) -> bool {
        // Release: as in `unlock`.
        self.word.compare_exchange(Word::CONTENDED, Word::FREE, Release, Relaxed).is_ok()
    }

    fn release_and_wake(&self, first: &Node<P>) {
        let sleeper = first.reference();
        // Release: as in `unlock`.
        self.word.fetch_and(!Word::STATE, Release);
        // FUTEX-3. Release: our last look at the node happens before its next use; pairs with the
        // acquire in `sleep_while`.
        first.waiter.status.store(0, Release);
        if let Some(sleeper) = sleeper {
            P::unpark(sleeper);
        }
    }

    /// Removes the thread that has slept longest from the queue. Called only by the owner
    /// (FUTEX-2).
    fn first_sleeper(&self) -> Option<Node<P>> {
        // Relaxed, here and below: only the owner accesses it, and it is handed on with the lock.
        let oldest = match self.oldest.load(Relaxed) {
            0 => self.sort(),
            oldest => oldest,
        };
        let first = Node::<P>::at(oldest)?;
        self.oldest.store(first.waiter.next.load(Relaxed), Relaxed);
        Some(first)
    }

    /// Takes all sleepers off the word's list and reverses it; returns the index of the first.
    fn sort(&self) -> u32 {
        // Acquire: the nodes of all that have joined; pairs with the release in `join`, and each of
        // those exchanges carries on the one before it.
        let mut left = Word(self.word.fetch_and(Word::STATE, Acquire)).newest();
        let mut first = 0;
        while let Some(node) = Node::<P>::at(left) {
            let before = node.waiter.next.load(Relaxed);
            node.waiter.next.store(first, Relaxed);
            first = left;
            left = before;
        }
        first
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] Futex<P>);
