//! Waiting across processes, as the kernel's futex does it.
//!
//! A thread that waits says so in a word of its own and looks at the word that it waits on; who
//! wakes has written that word and looks who waits. A fence on both sides is what the kernel's lock
//! of the address amounts to: one of the two sees the other. Threads are woken by number.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use antiphon_platform::{Atomic, Deadline, Parked, Platform, SharedWait};

use crate::Check;
use crate::atomic::{U32, U64};
use crate::clock::SLOTS;
use crate::context;
use crate::platform::{Way, take, way_of};

/// What a thread waits on, by address; 0 is nothing. And its wake.
struct Sleeper {
    address: U64,
    token: U32,
}

static SLEEPERS: [Sleeper; SLOTS] =
    [const { Sleeper { address: U64::ZERO, token: U32::ZERO } }; SLOTS];

impl SharedWait for Check {
    fn wait_shared(word: &U32, expected: u32, deadline: Option<Deadline>) -> Parked {
        let way = way_of(deadline);
        if let Way::Spurious = way {
            return Parked::Woken;
        }
        let me = &SLEEPERS[context::with(|execution| execution.current)];
        me.address.store(std::ptr::from_ref(word).addr() as u64, Relaxed);
        Self::fence(SeqCst);
        let sleeps = word.load(Relaxed) == expected;
        if sleeps && matches!(way, Way::Wait) && take(&me.token, deadline) {
            return Parked::Woken;
        }
        // Who has found us has spent a wake on us, which is not for our next wait.
        let found = me.address.swap(0, Relaxed) == 0;
        if found {
            take(&me.token, None);
        }
        if sleeps && !found { Parked::TimedOut } else { Parked::Woken }
    }

    fn wake_shared(word: *const U32, count: u32) {
        Self::fence(SeqCst);
        let address = word.addr() as u64;
        let threads = context::with(|execution| execution.threads.len());
        let mut left = count;
        for sleeper in &SLEEPERS[..threads] {
            if left == 0 {
                return;
            }
            let waits = sleeper.address.load(Relaxed) == address
                && sleeper.address.compare_exchange(address, 0, Relaxed, Relaxed).is_ok();
            if waits {
                left -= 1;
                // An exchange: it comes after the one that took the last wake.
                sleeper.token.swap(1, Relaxed);
            }
        }
    }
}
