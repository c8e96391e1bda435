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
//! - INBOX-4: the link of an entry that is in no inbox and no queue is 0, also if the list that it
//!   was taken out with is dropped. So an entry that is put into an empty inbox needs no store to
//!   its link, whose line stays on the CPU of its thread: a wake of a halted CPU moves one line,
//!   that of the inbox.
//!
//! Safe code can't write the word of an inbox, nor the link of an entry, and all entries of an
//! inbox have its type. What is left to the caller is said where an entry is [put](Inbox::put) in.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Atomics};

const AWAKE: u64 = 0;
const HALTED: u64 = 1;
const WATCHING: u64 = 2;
/// Addresses of entries are at least this, and so none of the values above: entries are aligned.
const ADDRESSES: u64 = 8;

/// The part of an entry that names the entry before it. Only this crate reads and writes it.
#[repr(align(8))]
pub struct Link<A: Atomics>(A::U64);

impl<A: Atomics> Link<A> {
    /// The link of an entry that was never put in.
    pub const NEW: Self = Self(A::U64::ZERO);

    /// Returns the address of the entry that it names, or 0.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // Relaxed, here and below: published by the exchange that puts the entry in; or only the
        // CPU that has taken the entry out accesses it.
        self.0.load(Relaxed)
    }

    /// Names an entry by its address, or none by 0.
    #[inline]
    pub(crate) fn set(&self, address: u64) {
        self.0.store(address, Relaxed);
    }

    /// Makes the link 0 that has the value `now` (INBOX-4).
    #[inline]
    pub(crate) fn unlink(&self, now: u64) {
        if now != 0 {
            self.set(0);
        }
    }
}

/// An entry that can be put into an inbox. It has a [`Link`], and so is aligned to eight bytes.
///
/// # Safety
///
/// `link` always returns the same link, and that of no other entry.
pub unsafe trait Linked: Sync {
    /// The atomic words.
    type Words: Atomics;

    /// The link of this entry.
    fn link(&self) -> &Link<Self::Words>;
}

/// The inbox of a CPU, for entries of one type. What is taken out has that type too:
///
/// ```compile_fail,E0308
/// use antiphon_wakeup::inbox::{Inbox, Linked, Taken};
///
/// fn take<Thread: Linked, Timer: Linked>(inbox: &Inbox<Thread>) -> Taken<Timer> {
///     inbox.take()
/// }
/// ```
pub struct Inbox<T: Linked> {
    word: <T::Words as Atomics>::U64,
    /// The inbox gives out the entries that were put in. It owns none, and so may be used from all
    /// CPUs.
    entries: PhantomData<fn(*mut T) -> *mut T>,
}

/// What a caller that has put an entry in must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing: the CPU checks by itself, or its watch sees the store.
    No,
    /// The CPU is halted: send it an interrupt.
    Interrupt,
}

impl<T: Linked> Inbox<T> {
    /// The inbox of a CPU that is awake.
    pub const NEW: Self = Self { word: Atomic::ZERO, entries: PhantomData };

    /// Puts an entry in.
    ///
    /// # Safety
    ///
    /// - The entry is in no inbox, no list that was taken out, and no run queue (INBOX-3).
    /// - Until it is taken out, it neither moves nor is freed, nor is it borrowed exclusively. It
    ///   is taken out when the iterator that [`take`](Self::take) returns gives it out or is
    ///   dropped.
    /// - The words keep what was stored.
    #[inline]
    pub unsafe fn put(&self, entry: *const T) -> Wake {
        const { assert!(align_of::<T>() as u64 >= ADDRESSES, "an entry has a link") };
        let address = entry.expose_provenance() as u64;
        // SAFETY: the caller's promise.
        let link = unsafe { (*entry).link() };
        let mut seen = self.word.load(Relaxed);
        // INBOX-4.
        let mut linked = 0;
        loop {
            let before = if seen < ADDRESSES { 0 } else { seen };
            if before != linked {
                link.set(before);
                linked = before;
            }
            // Release: the entry; pairs with the acquire in `take`.
            match self.word.compare_exchange(seen, address, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        // INBOX-2: this exchange has replaced `HALTED`, and so no other does.
        if seen == HALTED { Wake::Interrupt } else { Wake::No }
    }

    /// Takes all entries out, the latest first. Called by the CPU itself.
    #[inline]
    pub fn take(&self) -> Taken<T> {
        // Relaxed: only whether there is an entry; the swap below acquires.
        if self.word.load(Relaxed) < ADDRESSES {
            return Taken { first: 0, marker: PhantomData };
        }
        // Acquire: pairs with the release in `put`.
        let seen = self.word.swap(AWAKE, Acquire);
        let first = if seen < ADDRESSES { 0 } else { seen };
        Taken { first, marker: PhantomData }
    }

    /// Returns whether the inbox is empty. May be stale at once.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.word.load(Relaxed) < ADDRESSES
    }

    /// Calls `halt`, which halts the CPU until an interrupt has come, unless an entry was put in.
    /// While `halt` runs, the next sender sends that interrupt.
    ///
    /// An interrupt that comes before the CPU has halted must end the halt too.
    #[inline]
    pub fn halt(&self, halt: impl FnOnce()) {
        // INBOX-1. Relaxed: no data but the word itself is passed.
        if self.word.compare_exchange(AWAKE, HALTED, Relaxed, Relaxed).is_ok() {
            halt();
            self.awake(HALTED);
        }
    }

    /// Calls `watch` with the word, unless an entry was put in. `watch` waits until the word is
    /// written to or an interrupt has come; while it runs, senders send no interrupt.
    #[inline]
    pub fn watch(&self, watch: impl FnOnce(Watched<'_, T>)) {
        // INBOX-1. Relaxed: as in `halt`.
        if self.word.compare_exchange(AWAKE, WATCHING, Relaxed, Relaxed).is_ok() {
            watch(Watched(self));
            self.awake(WATCHING);
        }
    }

    /// Announces that the CPU is awake again, for any reason.
    #[inline]
    fn awake(&self, before: u64) {
        // Relaxed, all: no data but the word itself is passed.
        if self.word.load(Relaxed) == before {
            // Fails if an entry was put in just now, which has replaced the value.
            let _ = self.word.compare_exchange(before, AWAKE, Relaxed, Relaxed);
        }
    }
}

/// The word of an inbox, while its CPU watches it.
pub struct Watched<'a, T: Linked>(&'a Inbox<T>);

impl<T: Linked> Watched<'_, T> {
    /// Returns the address of the word, for an instruction such as MONITOR, which arms a watch of
    /// its cache line. Nothing may be stored there.
    #[inline]
    #[must_use]
    pub fn address(&self) -> *const () {
        (&raw const self.0.word).cast()
    }

    /// Returns whether no entry was put in. A CPU asks when the watch is armed, and before it
    /// waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Spins until an entry was put in.
    #[inline]
    pub fn wait(&self) {
        // Relaxed: `take` acquires what was put in.
        self.0.word.wait_while(Relaxed, |now| now < ADDRESSES);
    }
}

/// Entries that were taken out, the latest first. The entries that it has not given out when it is
/// dropped are in no inbox any more, and nothing names them.
#[derive(Debug)]
#[must_use = "what is not given out is dropped"]
pub struct Taken<T: Linked> {
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
        let link = unsafe { (*entry).link() };
        self.first = link.get();
        link.unlink(self.first);
        Some(entry)
    }
}

impl<T: Linked> Drop for Taken<T> {
    #[inline]
    fn drop(&mut self) {
        // INBOX-4.
        while self.next().is_some() {}
    }
}
