//! Several tasks that one thread waits for.
//!
//! | byte | field | written by | meaning |
//! |---|---|---|---|
//! | 0–3 | `left` | all | the tasks that are not done; less 1 when their maker waits |
//! | 4–7 | `let_go` | the last task | 1: the task touches this no more |
//! | 8–15 | `bell` | the maker, the last task | how the maker sleeps |
//!
//! - COUNT-1: the thread that takes `left` below 0 is the last, and sees what was done by all that
//!   took one away before.
//! - COUNT-2: the maker goes on, and this may be gone, when nothing is left and the last task, if
//!   that was not the maker, has let go: it has taken the ticket that it will notify by then.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Notify, Platform};

use super::Awaited;
use crate::sleep::{Bell, Park};

/// Tasks that their maker waits for: all are done when [`wait`](Self::wait) is back. All zero: no
/// tasks yet.
#[repr(C)]
pub struct Countdown<P: Platform> {
    left: P::U32,
    let_go: P::U32,
    bell: Bell<P>,
}

/// One below 0.
const ALL_DONE: u32 = u32::MAX;

impl<P: Platform> Countdown<P> {
    /// Creates a countdown of no tasks yet.
    pub const NEW: Self = Self { left: P::U32::ZERO, let_go: P::U32::ZERO, bell: Bell::NEW };

    /// Adds a task. The caller is the maker, or one of the tasks.
    pub fn add(&self) {
        // Relaxed: the caller has one, which it takes away later.
        self.left.fetch_add(1, Relaxed);
    }

    /// A task is done. The caller touches this no more.
    pub fn done(&self) {
        // Release, Acquire: COUNT-1.
        if self.left.fetch_sub(1, AcqRel) == 0 {
            let ticket = self.bell.take();
            // Release: COUNT-2; pairs with the acquire in `leave`.
            self.let_go.store(1, Release);
            if let Some(ticket) = ticket {
                Park::<P>::NEW.notify(ticket);
            }
        }
    }

    /// Says that the maker makes no more tasks. `None` if all tasks are done, else what to wait for
    /// before it [leaves](Self::leave). Call it once.
    pub fn close(&self) -> Option<Awaited<'_, P>> {
        // Acquire: COUNT-1.
        let last = self.left.fetch_sub(1, AcqRel) == 0;
        let lasts = |left| left != ALL_DONE;
        (!last).then_some(Awaited { word: &self.left, lasts, bell: &self.bell, watched: 0 })
    }

    /// Waits until the last task has let go, which it is about to when what is awaited is over.
    pub fn leave(&self) {
        // Acquire: COUNT-2; pairs with the release in `done`.
        self.let_go.wait_while(Acquire, |let_go| let_go == 0);
    }

    /// The maker makes no more, and waits until all tasks are done. Blocks.
    pub fn wait(&self) {
        if let Some(awaited) = self.close() {
            awaited.wait();
            self.leave();
        }
    }
}

impl<P: Platform> Default for Countdown<P> {
    fn default() -> Self {
        Self::NEW
    }
}
