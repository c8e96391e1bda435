//! A hand-written futex: no spinning, and no system call without a waiter.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Broadcast, Mechanism};

/// The state of the receiver: notified, asleep, or neither.
///
/// ```text
///   NEITHER ── wait ──► ASLEEP ── signal: wakes ──► TOLD ── wait returns ──► NEITHER
///      └────────────── signal ─────────────────────► TOLD
/// ```
#[repr(align(128))]
pub struct One(AtomicU32);

const NEITHER: u32 = 0;
const TOLD: u32 = 1;
const ASLEEP: u32 = 2;

impl Mechanism for One {
    fn new() -> Result<Self, String> {
        Ok(Self(AtomicU32::new(NEITHER)))
    }

    #[inline]
    fn signal(&self) {
        // Release: pairs with the acquire of the waiter.
        if self.0.swap(TOLD, Release) == ASLEEP {
            wake(&self.0, 1);
        }
    }

    #[inline]
    fn wait(&self) {
        // Acquire: pairs with the release of the notifier.
        while self.0.compare_exchange(TOLD, NEITHER, Acquire, Relaxed).is_err() {
            let asleep = self.0.compare_exchange(NEITHER, ASLEEP, Relaxed, Relaxed);
            if asleep != Err(TOLD) {
                sleep(&self.0, ASLEEP);
            }
        }
    }
}

/// The number of the round; one call wakes all threads that sleep on this word.
#[repr(align(128))]
pub struct All(AtomicU32);

impl Broadcast for All {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self(AtomicU32::new(0)))
    }

    fn tell(&self, round: u32) {
        // Release: pairs with the acquire of the waiters.
        self.0.store(round, Release);
        wake(&self.0, i32::MAX);
    }

    fn wait(&self, _: usize, round: u32) {
        // Acquire: pairs with the release of the notifier.
        while self.0.load(Acquire) < round {
            sleep(&self.0, round - 1);
        }
    }
}

/// Sleeps while `word` is `value`. May return early.
fn sleep(word: &AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = ptr::null::<libc::timespec>();
    // SAFETY: the word is borrowed; the kernel reads it and nothing else. Whatever the result, the
    // caller checks again.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}

fn wake(word: &AtomicU32, count: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is borrowed, and the kernel does not touch it; a valid call can't fail.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, count) };
}
