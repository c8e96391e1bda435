//! Two threads: one for timers, which the kernel prefers to all others, and one that decodes. The
//! mutex between them lends the priority of its waiter to its owner.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, Thread};

use antiphon_linux::schedule::set_fifo;

use super::super::player::{Player, Seen};
use super::Seat;
use super::scheduling::ME;
use crate::compete::work::{Pace, SHOW_NS, now_ns, sleep_until};

/// Above loops that are real-time as a whole, and below the sentinel.
pub const PRIORITY: u8 = 50;

/// Plays with timers in a real-time thread.
///
/// # Errors
///
/// One line, if real-time priorities are not permitted.
pub fn play(player: Player, mut seat: Seat) -> Result<Seen, String> {
    let shared = Inheriting::new(player)?;
    let (ended, decoder, pace) = (AtomicBool::new(false), thread::current(), seat.pace);
    thread::scope(|scope| {
        let timers = scope.spawn(|| {
            let permitted = set_fifo(ME, PRIORITY).map_err(|refused| refused.to_string());
            if permitted.is_ok() {
                timers(&shared, pace, &decoder);
            }
            // Relaxed: only tells the thread to stop; joining it orders what it has done.
            ended.store(true, Relaxed);
            decoder.unpark();
            permitted
        });
        while !ended.load(Relaxed) {
            let next = shared.locked(|player| {
                let frame = player.best()?;
                Some((frame, player.chunk_ns(frame)))
            });
            let Some((frame, ns)) = next else {
                thread::park();
                continue;
            };
            seat.decode(ns);
            shared.locked(|player| player.decoded(frame, now_ns()));
        }
        timers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(shared.into_inner().into_seen())
}

fn timers(shared: &Inheriting<Player>, pace: Pace, decoder: &Thread) {
    while let Some(release_ns) = shared.locked(|player| player.release_ns()) {
        sleep_until(release_ns);
        // The mutex is on the path to the callback, so its cost counts as tardiness.
        if shared.locked(|player| player.dispatch(now_ns())) == Some(true) {
            pace.burn(SHOW_NS);
        }
        decoder.unpark();
    }
}

/// A value behind a pthread mutex with `PTHREAD_PRIO_INHERIT`.
struct Inheriting<T> {
    /// The mutex is on the heap, because it must not move.
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: only the owner of the mutex accesses the value, so access moves between threads as if the
// value were sent.
unsafe impl<T: Send> Sync for Inheriting<T> {}

impl<T> Inheriting<T> {
    fn new(value: T) -> Result<Self, String> {
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised by the first call before the others use them, and
        // destroyed by the last; no other thread knows the mutex yet.
        let failed = unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            let kind = libc::PTHREAD_PRIO_INHERIT;
            let failed = libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), kind)
                | libc::pthread_mutex_init(mutex.get(), attributes.as_ptr());
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            failed
        };
        let error = "the C library has no mutex that lends priorities";
        if failed != 0 {
            return Err(error.to_owned());
        }
        Ok(Self { mutex, value: UnsafeCell::new(value) })
    }

    /// Returns the result of `body` on the value, to which no other thread has access meanwhile.
    fn locked<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        /// Unlocks even if `body` panics.
        struct Unlock(*mut libc::pthread_mutex_t);
        impl Drop for Unlock {
            fn drop(&mut self) {
                // SAFETY: this thread has locked it.
                unsafe { libc::pthread_mutex_unlock(self.0) };
            }
        }
        // SAFETY: initialised by `new`, and never moved.
        let failed = unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        // An inheriting mutex reports a thread that would wait for itself.
        assert_eq!(failed, 0, "no thread locks it twice");
        let _unlock = Unlock(self.mutex.get());
        // SAFETY: the owner of the mutex has exclusive access to the value.
        body(unsafe { &mut *self.value.get() })
    }

    fn into_inner(self) -> T {
        // SAFETY: a caller that has it by value has exclusive access, and no thread holds the
        // mutex.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
        self.value.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_value() {
        let count = Inheriting::new(0_u32).expect("a mutex");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| count.locked(|count| *count += 1)));
            }
        });
        assert_eq!(count.into_inner(), 4000);
    }
}
