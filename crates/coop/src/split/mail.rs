//! The mailbox of the timer thread, and the return of memory to submitters, both without a lock.
//!
//! ```text
//!   submit ──post──► posted ──take──► Due (a heap, the thread's own) ──run──► spend ──► spent
//!      ▲                                                                                  │
//!      └────────────────────────── sweep: freed by submitters ◄───────────────────────────┘
//! ```
//!
//! - MAIL-1: a letter is in one place: the thread that has put it in does not touch it, and the
//!   thread that has taken it out owns it.
//! - MAIL-2: `posted` has one owner, the timer thread; `spent` has one owner at a time, the thread
//!   that has set `sweeping`.

use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};

use antiphon_linux::Linux;
use antiphon_sync::queue::{Inbox, Item, Link};

/// A submitted timer in a mailbox.
#[repr(C)]
struct Node {
    link: Link<Linux>,
    release_ns: u64,
    state: Arc<AtomicU32>,
    /// Called once.
    run: Box<dyn FnMut(u64) + Send>,
}

/// A timer that one thread owns.
pub(super) struct Letter(Box<Node>);

impl Letter {
    pub(super) fn release_ns(&self) -> u64 {
        self.0.release_ns
    }

    pub(super) fn state(&self) -> &AtomicU32 {
        &self.0.state
    }

    pub(super) fn run(&mut self, late_ns: u64) {
        (self.0.run)(late_ns);
    }

    fn into_item(self) -> Option<Item> {
        let node = Box::into_raw(self.0);
        Item::new(node.expose_provenance() as u64)
    }

    /// # Safety
    ///
    /// The item is from a letter's `into_item`, and no other code has it.
    unsafe fn from_item(item: Item) -> Self {
        let node = std::ptr::with_exposed_provenance_mut(item.word() as usize);
        // SAFETY: made by `Box::into_raw`, and only the caller has it.
        Self(unsafe { Box::from_raw(node) })
    }
}

pub(super) struct Mail {
    posted: Inbox<Linux>,
    spent: Inbox<Linux>,
    sweeping: AtomicBool,
}

impl Mail {
    pub(super) const fn new() -> Self {
        Self { posted: Inbox::NEW, spent: Inbox::NEW, sweeping: AtomicBool::new(false) }
    }

    pub(super) fn post(
        &self,
        release_ns: u64,
        state: Arc<AtomicU32>,
        run: impl FnOnce(u64) + Send + 'static,
    ) {
        let mut run = Some(run);
        // The outer closure stays after its call, so that the timer thread, which calls it, does
        // not free it.
        let run = Box::new(move |late_ns| {
            if let Some(run) = run.take() {
                run(late_ns);
            }
        });
        put(&self.posted, Letter(Box::new(Node { link: Link::NEW, release_ns, state, run })));
    }

    /// # Safety
    ///
    /// Called only by the timer thread (MAIL-2).
    pub(super) unsafe fn take(&self) -> Option<Letter> {
        // SAFETY: the caller is the owner.
        let item = unsafe { self.posted.pop() }?;
        // SAFETY: MAIL-1, every item in `posted` is a letter.
        Some(unsafe { Letter::from_item(item) })
    }

    /// Keeps a letter that is done for the next `sweep`, which frees it.
    pub(super) fn spend(&self, letter: Letter) {
        put(&self.spent, letter);
    }

    /// Frees the letters that were spent, unless another thread is doing so. Does not block.
    pub(super) fn sweep(&self) {
        // Acquire: what the previous sweeper did to the inbox; pairs with the release below.
        if self.spent.is_empty() || self.sweeping.swap(true, Acquire) {
            return;
        }
        // SAFETY: MAIL-2, we are the owner until `sweeping` is cleared; MAIL-1.
        while let Some(item) = unsafe { self.spent.pop() } {
            // SAFETY: MAIL-1, every item in `spent` is a letter.
            drop(unsafe { Letter::from_item(item) });
        }
        self.sweeping.store(false, Release);
    }
}

fn put(inbox: &Inbox<Linux>, letter: Letter) {
    if let Some(item) = letter.into_item() {
        // SAFETY: MAIL-1: a letter begins with its link, and only we had it.
        unsafe { inbox.push(item) };
    }
}

impl Drop for Mail {
    fn drop(&mut self) {
        // Relaxed: no other thread uses this mailbox.
        self.sweeping.store(false, Relaxed);
        self.sweep();
        // SAFETY: no other thread uses this mailbox, so we are the owner.
        while let Some(letter) = unsafe { self.take() } {
            drop(letter);
        }
    }
}

/// Letters in order of release, and those of one release in order of arrival.
pub(super) struct Due {
    heap: BinaryHeap<At>,
    next: u64,
}

struct At {
    number: u64,
    letter: Letter,
}

impl Due {
    /// Creates an empty heap, with room for as many timers as the thread may have without
    /// allocating.
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::with_capacity(1024), next: 0 }
    }

    pub(super) fn put(&mut self, letter: Letter) {
        self.heap.push(At { number: self.next, letter });
        self.next += 1;
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|at| at.letter.release_ns())
    }

    pub(super) fn take(&mut self) -> Option<Letter> {
        self.heap.pop().map(|at| at.letter)
    }
}

impl At {
    fn key(&self) -> (u64, u64) {
        (self.letter.release_ns(), self.number)
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Order {
        // The earliest release compares as the greatest.
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for At {}
