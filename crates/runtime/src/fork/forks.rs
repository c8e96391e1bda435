//! The notes that a thread has left, and the time at which the oldest of them is made a task.
//!
//! ```text
//!   oldest ◄──► note ◄──► note ◄──► newest       on the stack, deeper to the right
//! ```
//!
//! - FORK-1: notes are left and taken away by their thread, or fiber, in last-in-first-out order;
//!   only the oldest may be taken away earlier, when it is made a task.
//! - FORK-2: a note is made a task if a worker is idle, and a beat has passed after the last one,
//!   or after the beginning of the tree of forks: a shorter tree wakes no worker.
//! - FORK-3: a fork leaves a note while there are fewer than [`KEPT`], so that there is one near
//!   the root; and otherwise when it is time to read the clock. The others are two calls.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use antiphon_platform::{Clock, Platform};

use super::Forker;

/// The notes of a thread, and its beat. All fields belong to this thread.
pub struct Forks<P: Platform> {
    /// Number of forks that are two calls, before the next leaves a note.
    passes: Cell<u32>,
    /// Number of forks after that until the clock is read.
    rest: Cell<u32>,
    /// Number of forks between two readings of the clock.
    interval: Cell<u32>,
    kept: Cell<u32>,
    oldest: Cell<Option<NonNull<Link>>>,
    newest: Cell<Option<NonNull<Link>>>,
    /// The last reading of the clock, in nanoseconds.
    looked: Cell<u64>,
    /// The beginning of the beat; 0 if the clock was not read after the tree was begun.
    began: Cell<u64>,
    platform: PhantomData<P>,
}

/// The first part of all notes, whatever their type.
#[derive(Debug)]
pub(super) struct Link {
    older: Cell<Option<NonNull<Link>>>,
    newer: Cell<Option<NonNull<Link>>>,
    /// Whether the note was made a task, and is no longer linked.
    promoted: Cell<bool>,
    /// Makes the note a task, and submits it.
    promote: unsafe fn(NonNull<Link>),
}

/// The notes of a fiber that waits: see [`Forks::set_aside`].
#[derive(Debug)]
pub struct Aside {
    oldest: Option<NonNull<Link>>,
    newest: Option<NonNull<Link>>,
    kept: u32,
    began: u64,
}

/// The number of notes that are always kept, if there are as many forks.
const KEPT: u32 = 3;
/// Readings of the clock per beat.
const LOOKS: u64 = 8;
/// The most forks between two readings of the clock.
const FORKS: u64 = 64;

impl Link {
    pub(super) const fn new(promote: unsafe fn(NonNull<Self>)) -> Self {
        let (older, newer) = (Cell::new(None), Cell::new(None));
        Self { older, newer, promoted: Cell::new(false), promote }
    }
}

impl<P: Platform> Forks<P> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            passes: Cell::new(0),
            rest: Cell::new(0),
            interval: Cell::new(0),
            kept: Cell::new(0),
            oldest: Cell::new(None),
            newest: Cell::new(None),
            looked: Cell::new(0),
            began: Cell::new(0),
            platform: PhantomData,
        }
    }

    /// Returns whether this fork is two calls.
    #[inline]
    pub(super) fn passes(&self) -> bool {
        let passes = self.passes.get();
        self.passes.set(passes.saturating_sub(1));
        passes > 0
    }

    /// Makes the next 2³² − 1 forks two calls: the thread is not a worker.
    #[cold]
    pub fn pass_all(&self) {
        self.passes.set(u32::MAX);
    }

    /// Called when the thread has become a worker.
    pub fn begin(&self) {
        self.passes.set(0);
    }

    /// Unlinks all notes: those of a fiber that is about to wait. Forks made meanwhile belong to
    /// others. `None`: there are no notes.
    #[inline]
    #[must_use]
    pub fn set_aside(&self) -> Option<Aside> {
        let kept = self.kept.get();
        if kept == 0 {
            return None;
        }
        self.keep(0);
        let (oldest, newest) = (self.oldest.take(), self.newest.take());
        Some(Aside { oldest, newest, kept, began: self.began.replace(0) })
    }

    /// Puts the notes back, on the fiber's present thread, while that has no others.
    pub fn put_back(&self, aside: Aside) {
        debug_assert!(self.newest.get().is_none(), "FORK-1");
        self.oldest.set(aside.oldest);
        self.newest.set(aside.newest);
        self.began.set(aside.began);
        self.keep(aside.kept);
    }

    /// Leaves a note.
    ///
    /// # Safety
    ///
    /// The note stays in place until the same thread has [taken it away](Self::pop), before any
    /// that was left earlier.
    pub(super) unsafe fn push(&self, note: NonNull<Link>) {
        let newest = self.newest.replace(Some(note));
        // SAFETY: the caller's contract, for this note and those before.
        unsafe { note.as_ref() }.older.set(newest);
        match newest {
            // SAFETY: the caller's contract, for the note before.
            Some(newest) => unsafe { newest.as_ref() }.newer.set(Some(note)),
            None => self.oldest.set(Some(note)),
        }
        self.keep(self.kept.get() + 1);
    }

    /// Takes the newest note away; `false` if it was made a task.
    pub(super) fn pop(&self, note: &Link) -> bool {
        if note.promoted.get() {
            return false;
        }
        debug_assert_eq!(self.newest.get(), Some(NonNull::from(note)), "FORK-1");
        self.newest.set(note.older.get());
        match note.older.get() {
            // SAFETY: the note still exists: FORK-1.
            Some(older) => unsafe { older.as_ref() }.newer.set(None),
            None => {
                self.oldest.set(None);
                // FORK-2: the next fork begins another tree.
                self.began.set(0);
            }
        }
        self.keep(self.kept.get() - 1);
        true
    }

    /// FORK-3: called after the number of notes has become `kept`.
    fn keep(&self, kept: u32) {
        self.kept.set(kept);
        let left = self.passes.get() + self.rest.get();
        let (passes, rest) = if kept < KEPT { (0, left) } else { (left, 0) };
        self.passes.set(passes);
        self.rest.set(rest);
    }

    /// Called by a fork, or half of one, that has left a note: reads the clock if it is time.
    pub(super) fn tick<F: Forker<Platform = P>>(&self) {
        match self.rest.get() {
            0 if self.passes.get() == 0 => self.look::<F>(),
            0 => {}
            rest => self.rest.set(rest - 1),
        }
    }

    /// FORK-2: reads the clock, and makes the oldest note a task if it is time, and a worker is
    /// idle.
    #[cold]
    fn look<F: Forker<Platform = P>>(&self) {
        let beat = F::beat_ns();
        let now = P::now(Clock::Monotonic).max(1);
        self.interval.set(interval(self.interval.get(), now - self.looked.replace(now), beat));
        self.rest.set(self.interval.get() - 1);
        self.keep(self.kept.get());
        if self.began.get() == 0 {
            self.began.set(now);
        }
        if now - self.began.get() >= beat && F::is_wanted() && self.promote() {
            self.began.set(now);
        }
    }

    /// Makes the oldest note a task.
    fn promote(&self) -> bool {
        let Some(oldest) = self.oldest.get() else {
            return false;
        };
        // SAFETY: the note and its neighbours still exist: FORK-1.
        let note = unsafe { oldest.as_ref() };
        note.promoted.set(true);
        self.oldest.set(note.newer.get());
        match note.newer.get() {
            // SAFETY: the note still exists: FORK-1.
            Some(newer) => unsafe { newer.as_ref() }.older.set(None),
            None => self.newest.set(None),
        }
        self.keep(self.kept.get() - 1);
        // SAFETY: the function of this note, which is called for the first time.
        unsafe { (note.promote)(oldest) };
        true
    }
}

impl<P: Platform> Default for Forks<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the number of forks until the next reading, if the last `forks` took `ns`.
fn interval(forks: u32, ns: u64, beat: u64) -> u32 {
    let wanted = u64::from(forks) * (beat / LOOKS) / ns.max(1);
    wanted.clamp(1, FORKS) as u32
}
