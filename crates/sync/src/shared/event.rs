//! The process-shared event: one word.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0 | `SET` | the event was set, and no thread has taken the set |
//! | 31 | `SLEEPERS` | a thread may sleep: the setter must wake one |
//!
//! ```text
//!         set: one swap, which clears `SLEEPERS`, and a wake if that was on
//!     0 ◄──────────────────────────────────────────────────────────────────► SET
//!         a waiter takes it, and marks `SLEEPERS` again if it has slept
//! ```

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, SharedWait};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};

const SET: u32 = 1;

/// An auto-reset event in memory that processes share, 4 bytes. All zero bytes: not set. Arriving
/// waiters take it ahead of sleeping waiters. If a process is killed, a set that it had taken is
/// lost.
#[repr(transparent)]
pub struct SharedEvent<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

impl<P: SharedWait, F: Form> SharedEvent<P, F> {
    /// An event that is not set.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// Lets one waiter go, or leaves the event set for the next waiter; sets that were not taken
    /// count as one. Never blocks.
    #[inline]
    pub fn set(&self) {
        let word = &raw const self.word;
        // Release: pairs with the acquire in `take`. SHARED-3.
        if self.word.swap(SET, Release) & SLEEPERS != 0 {
            P::wake_shared(word, 1);
        }
    }

    /// Waits until the event is set, and takes the set.
    #[inline]
    pub fn wait(&self) {
        while !self.wait_until(None) {}
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed; returns
    /// whether the event was set.
    #[inline]
    pub fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.try_wait() || self.wait_contended(deadline)
    }

    /// Takes the event if it is set; never blocks.
    #[inline]
    pub fn try_wait(&self) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & SET != 0 {
            match self.take(seen, 0) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Returns whether the event is set; may be stale at once.
    pub fn is_set(&self) -> bool {
        self.word.load(Relaxed) & SET != 0
    }

    /// Takes the event, which was seen to be set.
    fn take(&self, seen: u32, marks: u32) -> Result<u32, u32> {
        // Acquire: what came before each set; pairs with the release in `set`.
        self.word.compare_exchange(seen, seen & !SET | marks, Acquire, Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, deadline: Option<Deadline>) -> bool {
        // Relaxed: loaded again below, whatever the result.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), |word| word & SET == 0);
        let mut marks = 0;
        let mut seen = self.word.load(Relaxed);
        loop {
            if seen & SET != 0 {
                match self.take(seen, marks) {
                    Ok(_) => return true,
                    Err(now) => seen = now,
                }
                continue;
            }
            let slept = mark_and_sleep::<P, F>(&self.word, seen, &mut marks, deadline);
            let Some(now) = slept else { return false };
            seen = now;
        }
    }
}
