//! The process-shared mutex: one word, which names its owner.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–29 | owner | the thread's number; 0 is free |
//! | 30 | `DIED` | an owner died holding it, and no owner has called `recovered` after that |
//! | 31 | `SLEEPERS` | a thread may sleep: the release must wake one |
//!
//! ```text
//!            lock                 one goes to sleep
//!    0 ◄─────────────► owner ─────────────────────────► owner|SLEEPERS
//!           unlock       ▲                                  │
//!                        │  unlock: wakes one, which locks  │
//!                        └──────── as owner|SLEEPERS ◄──────┘
//! ```
//!
//! Arriving waiters barge, and the kernel keeps the queue of the sleepers.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, SharedWait, ThreadId};

use super::{SLEEPERS, mark_and_sleep};
use crate::lock::{Form, Standard};

/// A mutex in memory that processes share, 4 bytes.
#[repr(C)]
pub struct SharedMutex<P: SharedWait, F: Form = Standard> {
    word: P::U32,
    form: PhantomData<F>,
}

/// How a mutex was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// The mutex is as its last owner left it.
    Whole,
    /// An owner died holding the mutex: the guarded data may be inconsistent. Each owner is told
    /// this until one calls [`SharedMutex::recovered`].
    OwnerDied,
}

const OWNER: u32 = (1 << 30) - 1;
const DIED: u32 = 1 << 30;

impl<P: SharedWait, F: Form> SharedMutex<P, F> {
    /// A free mutex.
    pub const NEW: Self = Self { word: P::U32::ZERO, form: PhantomData };

    /// Acquires the mutex; blocks until the caller has it, or until its owner is found dead. A
    /// caller that already owns the mutex deadlocks.
    #[inline]
    pub fn lock(&self) -> Acquired {
        match self.try_lock() {
            Some(acquired) => acquired,
            None => loop {
                if let Some(acquired) = self.lock_contended(None) {
                    break acquired;
                }
            },
        }
    }

    /// Acquires the mutex if it is free; never blocks, and so does not detect a dead owner.
    #[inline]
    pub fn try_lock(&self) -> Option<Acquired> {
        let mut seen = self.word.load(Relaxed);
        while seen & OWNER == 0 {
            match self.take(seen, 0) {
                Ok(acquired) => return Some(acquired),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Acquires the mutex, or gives up when the deadline has passed.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> Option<Acquired> {
        self.try_lock().or_else(|| self.lock_contended(Some(deadline)))
    }

    /// Releases the mutex; wakes one sleeper.
    ///
    /// # Safety
    ///
    /// The calling thread owns the mutex.
    #[inline]
    pub unsafe fn unlock(&self) {
        let word = &raw const self.word;
        // Release: pairs with the acquire in `take`.
        let seen = self.word.fetch_and(DIED, Release);
        if seen & SLEEPERS != 0 {
            P::wake_shared(word, 1);
        }
    }

    /// Declares that the data which the mutex guards is whole again; called by the owner.
    pub fn recovered(&self) {
        // Relaxed: the owner's release publishes it.
        self.word.fetch_and(!DIED, Relaxed);
    }

    /// Returns whether a thread owns the mutex, dead or alive; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & OWNER != 0
    }

    /// Takes the mutex, which was seen free, or with a dead owner.
    fn take(&self, seen: u32, marks: u32) -> Result<Acquired, u32> {
        let died = if seen & OWNER == 0 { seen & DIED } else { DIED };
        let new = P::thread().0 & OWNER | died | seen & SLEEPERS | marks;
        // Acquire: SHARED-1; pairs with the release in `unlock`. What a dead owner did is not
        // ordered before this.
        self.word.compare_exchange(seen, new, Acquire, Relaxed)?;
        Ok(if died == 0 { Acquired::Whole } else { Acquired::OwnerDied })
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> Option<Acquired> {
        // Relaxed: loaded again below, whatever the result.
        let _ = self.word.spin_while(Relaxed, F::SPIN.backing_off(0), |word| word & OWNER != 0);
        let mut marks = 0;
        let mut seen = self.word.load(Relaxed);
        loop {
            let dead = marks != 0 && P::ended(ThreadId(seen & OWNER));
            if seen & OWNER == 0 || dead {
                match self.take(seen, marks) {
                    Ok(acquired) => return Some(acquired),
                    Err(now) => seen = now,
                }
                continue;
            }
            seen = mark_and_sleep::<P, F>(&self.word, seen, &mut marks, deadline)?;
        }
    }
}
