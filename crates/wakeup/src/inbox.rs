//! The inbox of a CPU: threads that must run there. Any CPU puts them in, without a lock.
//!
//! | the word | meaning |
//! |---|---|
//! | `AWAKE` (0) | empty; the CPU checks by itself |
//! | `HALTED` (1) | empty; the CPU is halted, or about to halt: it needs an interrupt |
//! | `WATCHING` (2) | empty; the CPU watches this word: a store wakes it |
//! | address | the entry that was put in last; each names the one before it, the first 0 |
//!
//! ```text
//!             halt                         put: sends an interrupt
//!   AWAKE ──────────► HALTED ───────────────────────────────────────► entries
//!     │ ▲                │  another interrupt                            ▲ │
//!     │ └────────────────┘                                               │ │
//!     └──────────────────────────────────── put ─────────────────────────┘ │
//!       ▲                                  take                            │
//!       └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! - INBOX-1 (no lost wake): the CPU halts only if its exchange finds `AWAKE`. An entry that is put
//!   in later finds `HALTED`, and its sender sends the interrupt.
//! - INBOX-2 (one interrupt): one sender replaces `HALTED`, and only that sender sends an
//!   interrupt.
//! - INBOX-3: an entry is in one inbox at a time, because only the waker that took its thread's
//!   token away from `ASLEEP` puts it there ([`token`](crate::token)).
//! - INBOX-4: the link of an entry that is in no inbox and no queue is 0. So an entry that is put
//!   into an empty inbox needs no store to its link, whose line stays on the CPU of its thread: a
//!   wake of a halted CPU moves one line, that of the inbox.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Atomics};

const AWAKE: u64 = 0;
const HALTED: u64 = 1;
const WATCHING: u64 = 2;
/// Addresses of entries are at least this, and so none of the values above: entries are aligned.
const ADDRESSES: u64 = 8;

/// An entry that can be put into an inbox.
///
/// # Safety
///
/// `link` always returns the same word, which is 0 in a new entry and which only this crate writes;
/// and the entry is aligned to eight bytes.
pub unsafe trait Linked {
    /// The atomic words.
    type Words: Atomics;

    /// The word that names the entry before it.
    fn link(&self) -> &<Self::Words as Atomics>::U64;
}

/// The inbox of a CPU.
pub struct Inbox<A: Atomics>(A::U64);

/// What a caller that has put an entry in must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing: the CPU checks by itself, or its watch sees the store.
    No,
    /// The CPU is halted: send it an interrupt.
    Interrupt,
}

impl<A: Atomics> Inbox<A> {
    /// The inbox of a CPU that is awake.
    pub const NEW: Self = Self(A::U64::ZERO);

    /// Puts an entry in.
    ///
    /// # Safety
    ///
    /// - The entry is in no inbox (INBOX-3), and neither moves nor is freed until it was taken out.
    /// - All entries of an inbox are of one type, which [`take`](Self::take) names, too, and what
    ///   it returns is taken to its end.
    /// - The words keep what was stored, and nothing else writes the word that
    ///   [`watch`](Self::watch) shows.
    #[inline]
    pub unsafe fn put<T: Linked<Words = A>>(&self, entry: *const T) -> Wake {
        let address = entry.expose_provenance() as u64;
        // SAFETY: the caller's promise.
        let link = unsafe { (*entry).link() };
        let mut seen = self.0.load(Relaxed);
        // INBOX-4.
        let mut linked = 0;
        loop {
            let before = if seen < ADDRESSES { 0 } else { seen };
            if before != linked {
                // Relaxed: published by the exchange.
                link.store(before, Relaxed);
                linked = before;
            }
            // Release: the entry; pairs with the acquire in `take`.
            match self.0.compare_exchange(seen, address, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        // INBOX-2: this exchange has replaced `HALTED`, and so no other does.
        if seen == HALTED { Wake::Interrupt } else { Wake::No }
    }

    /// Takes all entries out, the latest first. Called by the CPU itself.
    #[inline]
    pub fn take<T: Linked<Words = A>>(&self) -> Taken<T> {
        // Relaxed: only whether there is an entry; the swap below acquires.
        if self.0.load(Relaxed) < ADDRESSES {
            return Taken { first: 0, marker: PhantomData };
        }
        // Acquire: pairs with the release in `put`.
        let seen = self.0.swap(AWAKE, Acquire);
        let first = if seen < ADDRESSES { 0 } else { seen };
        Taken { first, marker: PhantomData }
    }

    /// Returns whether the inbox is empty. May be stale at once.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load(Relaxed) < ADDRESSES
    }

    /// Calls `halt`, which halts the CPU until an interrupt has come, unless an entry was put in.
    /// While `halt` runs, the next sender sends that interrupt.
    ///
    /// An interrupt that comes before the CPU has halted must end the halt too.
    #[inline]
    pub fn halt(&self, halt: impl FnOnce()) {
        // INBOX-1. Relaxed: no data but the word itself is passed.
        if self.0.compare_exchange(AWAKE, HALTED, Relaxed, Relaxed).is_ok() {
            halt();
            self.awake(HALTED);
        }
    }

    /// Calls `watch` with the word, unless an entry was put in. `watch` waits until the word is
    /// written to or an interrupt has come; while it runs, senders send no interrupt.
    #[inline]
    pub fn watch(&self, watch: impl FnOnce(&A::U64)) {
        // INBOX-1. Relaxed: as in `halt`.
        if self.0.compare_exchange(AWAKE, WATCHING, Relaxed, Relaxed).is_ok() {
            watch(&self.0);
            self.awake(WATCHING);
        }
    }

    /// Announces that the CPU is awake again, for any reason.
    #[inline]
    fn awake(&self, before: u64) {
        // Relaxed, all: no data but the word itself is passed.
        if self.0.load(Relaxed) == before {
            // Fails if an entry was put in just now, which has replaced the value.
            let _ = self.0.compare_exchange(before, AWAKE, Relaxed, Relaxed);
        }
    }
}

/// Makes a link 0 that has the value `now` (INBOX-4).
#[inline]
pub(crate) fn unlink(link: &impl Atomic<u64>, now: u64) {
    if now != 0 {
        // Relaxed: published by the exchange that puts the entry in again.
        link.store(0, Relaxed);
    }
}

/// Entries that were taken out, the latest first.
#[derive(Debug)]
pub struct Taken<T> {
    first: u64,
    marker: PhantomData<*const T>,
}

impl<T: Linked> Iterator for Taken<T> {
    type Item = *const T;

    fn next(&mut self) -> Option<*const T> {
        if self.first == 0 {
            return None;
        }
        let entry = core::ptr::with_exposed_provenance::<T>(self.first as usize);
        // SAFETY: `put` was promised that the entry stays until it is taken out, which is now.
        // Relaxed: acquired with the list.
        let link = unsafe { (*entry).link() };
        self.first = link.load(Relaxed);
        unlink(link, self.first);
        Some(entry)
    }
}
