//! The notes that a thread has left, and when the oldest of them is made a task.
//!
//! ```text
//!   oldest ◄──► note ◄──► note ◄──► newest       on the stack, deeper to the right
//! ```
//!
//! - FORK-1: notes are left and taken away by their thread, or fiber, the last first; only the
//!   oldest is taken away before, when it is made a task.
//! - FORK-2: a note is made a task where a worker has nothing to do, and a beat after the last one,
//!   or after the tree of forks was begun: a tree that takes less wakes no worker.
//! - FORK-3: a fork leaves a note while fewer than [`KEPT`] are there, so that there is one near
//!   the root; and otherwise when it is time to look at the clock. The others are two calls.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use antiphon_platform::{Clock, Platform};

use super::Forker;

/// The notes of a thread, and its beat. All of it belongs to this thread.
pub struct Forks<P: Platform> {
    /// How many forks are two calls, before the next leaves a note.
    passes: Cell<u32>,
    /// How many more forks there are until it is time to look at the clock.
    rest: Cell<u32>,
    /// How many forks there are from one look to the next.
    interval: Cell<u32>,
    kept: Cell<u32>,
    oldest: Cell<Option<NonNull<Link>>>,
    newest: Cell<Option<NonNull<Link>>>,
    /// When the clock was looked at, in nanoseconds.
    looked: Cell<u64>,
    /// When the beat began; 0 if the clock was not looked at after the tree was begun.
    began: Cell<u64>,
    platform: PhantomData<P>,
}

/// The first part of notes of all types.
#[derive(Debug)]
pub(super) struct Link {
    older: Cell<Option<NonNull<Link>>>,
    newer: Cell<Option<NonNull<Link>>>,
    /// Whether the note was made a task, and is no longer among the notes.
    promoted: Cell<bool>,
    /// Makes the note a task, and puts that where others find it.
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

/// How many notes there are always, if there are as many forks.
const KEPT: u32 = 3;
/// How often the clock is looked at in a beat.
const LOOKS: u64 = 8;
/// How many forks there are between two looks at most.
const FORKS: u64 = 64;

impl Link {
    pub(super) const fn new(promote: unsafe fn(NonNull<Self>)) -> Self {
        let (older, newer) = (Cell::new(None), Cell::new(None));
        Self { older, newer, promoted: Cell::new(false), promote }
    }
}

impl<P: Platform> Forks<P> {
    /// No notes yet.
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

    /// Whether this fork is two calls.
    #[inline]
    pub(super) fn passes(&self) -> bool {
        let passes = self.passes.get();
        self.passes.set(passes.saturating_sub(1));
        passes > 0
    }

    /// The thread is no worker: the next 2³² − 1 forks are two calls.
    #[cold]
    pub fn pass_all(&self) {
        self.passes.set(u32::MAX);
    }

    /// The thread has become a worker.
    pub fn begin(&self) {
        self.passes.set(0);
    }

    /// Takes all notes away: those of a fiber that is about to wait. What is forked meanwhile
    /// belongs to others. `None`: there are none.
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

    /// Puts the notes back, on the thread that the fiber is on then, when no others are there.
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
    /// The note stays where it is until the same thread has [taken it away](Self::pop), before any
    /// that was left earlier.
    pub(super) unsafe fn push(&self, note: NonNull<Link>) {
        let newest = self.newest.replace(Some(note));
        // SAFETY: the caller's, of this one and of those before.
        unsafe { note.as_ref() }.older.set(newest);
        match newest {
            // SAFETY: as above.
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
            // SAFETY: it is there still: FORK-1.
            Some(older) => unsafe { older.as_ref() }.newer.set(None),
            None => {
                self.oldest.set(None);
                // FORK-2: what comes next is another tree.
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

    /// A fork, or half of one, that has left a note: looks at the clock if it is time.
    pub(super) fn tick<F: Forker<Platform = P>>(&self) {
        match self.rest.get() {
            0 if self.passes.get() == 0 => self.look::<F>(),
            0 => {}
            rest => self.rest.set(rest - 1),
        }
    }

    /// FORK-2: looks at the clock, and makes the oldest note a task if it is time, and wanted.
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
        // SAFETY: it is there still: FORK-1; so are its neighbours.
        let note = unsafe { oldest.as_ref() };
        note.promoted.set(true);
        self.oldest.set(note.newer.get());
        match note.newer.get() {
            // SAFETY: as above.
            Some(newer) => unsafe { newer.as_ref() }.older.set(None),
            None => self.newest.set(None),
        }
        self.keep(self.kept.get() - 1);
        // SAFETY: its own, and for the first time.
        unsafe { (note.promote)(oldest) };
        true
    }
}

impl<P: Platform> Default for Forks<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// How many forks there are to be until the next look, if the last `forks` took `ns`.
fn interval(forks: u32, ns: u64, beat: u64) -> u32 {
    let wanted = u64::from(forks) * (beat / LOOKS) / ns.max(1);
    wanted.clamp(1, FORKS) as u32
}
