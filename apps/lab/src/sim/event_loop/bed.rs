//! How a loop's thread sleeps on a simulated machine: on a word, until a time or until it is
//! notified.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{Atomic, Atomics, Clock, Clocks as _, Deadline, SharedWait};
use antiphon_runtime::event_loop::{Ring, Wait};
use antiphon_sim::{OwnLine, Sim, now, system_call};

/// A word on which one thread sleeps; 1 if it was notified since its last wake-up.
pub struct Bed(Arc<OwnLine<<Sim as Atomics>::U32>>);

impl Bed {
    /// Makes a bed without a sleeper and without a notification.
    pub fn new() -> Self {
        Self(Arc::new(OwnLine(Atomic::ZERO)))
    }
}

impl Wait for Bed {
    type Platform = Sim;
    type Source = Infallible;
    type Ready = u8;
    type Error = Infallible;

    fn now_ns() -> u64 {
        Sim::now(Clock::Monotonic)
    }

    /// Waits as `epoll_pwait2` does on Linux: polling is a system call, too.
    fn wait(&mut self, until_ns: Option<u64>, _: &mut dyn FnMut(u64, u8)) {
        let word = &**self.0;
        if until_ns == Some(0) {
            system_call();
        } else if word.load(Relaxed) == 0 {
            let deadline = until_ns.map(|ns| Deadline { clock: Clock::Monotonic, ns });
            // The word is checked below, so the reason of the wake-up does not matter.
            let _ = Sim::wait_shared(word, 0, deadline);
        }
        // Acquire: the work before the notification; pairs with the exchange in `ring`.
        if word.load(Relaxed) != 0 {
            word.swap(0, Acquire);
        }
    }

    fn ring(&self) -> Ring {
        let bed = self.0.clone();
        Arc::new(move || {
            // Release: pairs with the Acquire in `wait`.
            if bed.swap(1, AcqRel) == 0 {
                Sim::wake_shared(&raw const **bed, 1);
            }
        })
    }

    fn add(&mut self, source: Infallible, _: u64) -> Result<(), Infallible> {
        match source {}
    }

    fn remove(&mut self, _: u64) {}
}

/// Sleeps until this time has passed.
pub fn sleep_past(at_ns: u64) {
    let bed = OwnLine(<Sim as Atomics>::U32::ZERO);
    let deadline = Some(Deadline { clock: Clock::Monotonic, ns: at_ns + 1 });
    while now() <= at_ns {
        // No thread wakes the sleeper.
        let _ = Sim::wait_shared(&bed, 0, deadline);
    }
}
