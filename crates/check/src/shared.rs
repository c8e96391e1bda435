//! Waiting on words, private or shared, like the kernel's futex.
//!
//! A waiting thread announces itself in its own word, and then reads the word that it waits on; a
//! waker has written that word, and then looks for waiters. The fences on both sides correspond to
//! the kernel's lock of the address: one of the two sees the other. If there are more sleepers than
//! wakes, the woken ones are a choice: the order of futex wakes follows neither arrival nor
//! priority (futex(2), `FUTEX_WAKE`).

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use antiphon_platform::{Atomic, Atomics as _, Deadline, Parked, SharedWait};

use crate::Check;
use crate::atomic::{U32, U64};
use crate::clock::SLOTS;
use crate::context;
use crate::graph::What;
use crate::platform::{Way, choose, take, way_of};

/// The address that a thread waits on, above 5 bits of its place (0: it does not wait); and its
/// wake token.
struct Sleeper {
    address: U64,
    token: U32,
}

const PLACE_BITS: u32 = 5;

static SLEEPERS: [Sleeper; SLOTS] =
    [const { Sleeper { address: U64::ZERO, token: U32::ZERO } }; SLOTS];

/// Waits at `address` in `place` if `sleeps` returns `true`; it is called once wakers can find the
/// thread.
pub(crate) fn wait(
    (address, place): (usize, u32),
    deadline: Option<Deadline>,
    sleeps: impl FnOnce() -> bool,
) -> Parked {
    let way = way_of(deadline);
    if let Way::Spurious = way {
        return Parked::Woken;
    }
    let me = &SLEEPERS[context::with(|execution| execution.current)];
    me.address.store((address as u64) << PLACE_BITS | u64::from(place), Relaxed);
    Check::fence(SeqCst);
    let sleeps = sleeps();
    if sleeps && matches!(way, Way::Wait) && take(&me.token, deadline) {
        return Parked::Woken;
    }
    // A waker that has found this thread has spent a wake on it, which must not end its next wait.
    let found = me.address.swap(0, Relaxed) == 0;
    if found {
        take(&me.token, None);
    }
    if sleeps && !found { Parked::TimedOut } else { Parked::Woken }
}

/// Wakes up to `count` waiters at `address` in one of the `places`; returns how many.
pub(crate) fn wake(address: usize, places: u32, count: u32) -> u32 {
    Check::fence(SeqCst);
    let threads = context::with(|execution| execution.threads.len());
    let is_meant = |at: u64| {
        let place = 1 << (at & ((1 << PLACE_BITS) - 1));
        at >> PLACE_BITS == address as u64 && places & place != 0
    };
    let seen = SLEEPERS[..threads].iter().map(|sleeper| (sleeper, sleeper.address.load(Relaxed)));
    let mut meant: Vec<_> = seen.filter(|(_, at)| is_meant(*at)).collect();
    let mut woken = 0;
    while woken < count && !meant.is_empty() {
        let all = meant.len() as u64 <= u64::from(count - woken);
        let which = if all { 0 } else { choose(What::Wake, meant.len() as u64) };
        let (sleeper, at) = meant.remove(which as usize);
        if sleeper.address.compare_exchange(at, 0, Relaxed, Relaxed).is_ok() {
            woken += 1;
            // An exchange: it comes after the exchange that consumed the last wake.
            sleeper.token.swap(1, Relaxed);
        }
    }
    woken
}

impl SharedWait for Check {
    fn wait_shared(word: &U32, expected: u32, deadline: Option<Deadline>) -> Parked {
        let address = std::ptr::from_ref(word).addr();
        wait((address, 0), deadline, || word.load(Relaxed) == expected)
    }

    fn wake_shared(word: *const U32, count: u32) {
        wake(word.addr(), 1, count);
    }
}
