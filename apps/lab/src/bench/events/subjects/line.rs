//! A word on a cache line, and a loop that polls it: the minimal cost of a hand-over.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Mechanism;

/// Two cache lines of most machines, so that the neighbouring line is not prefetched.
#[repr(align(128))]
pub struct Spin(AtomicU32);

impl Mechanism for Spin {
    const SLEEPS: bool = false;

    fn new() -> Result<Self, String> {
        Ok(Self(AtomicU32::new(0)))
    }

    #[inline]
    fn signal(&self) {
        // Release: pairs with the acquire of the waiter.
        self.0.store(1, Release);
    }

    #[inline]
    fn wait(&self) {
        // Acquire: pairs with the release of the notifier.
        while self.0.load(Acquire) == 0 {
            spin_loop();
        }
        // Relaxed: the next notifier is synchronised with this thread by other means.
        self.0.store(0, Relaxed);
    }
}
