//! Sleeping on a waiter's node: `park` and `unpark`, by a token in the node.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Parked, Waiter};

use crate::Sim;
use crate::sleep::{Sleep, SleepsOn, sleep};
use crate::step::{call, step};
use crate::world::with;

/// No wake is pending for the waiter, and it is not asleep.
const AWAKE: u32 = 0;
/// A wake is pending.
const WOKEN: u32 = 1;
/// The waiter sleeps or is about to.
const ASLEEP: u32 = 2;

/// See [`Platform::park`](antiphon_platform::Platform::park).
pub(crate) fn park(waiter: &Waiter<Sim>, deadline_ns: Option<u64>) -> Parked {
    let token = &waiter.token;
    if token.compare_exchange(AWAKE, ASLEEP, Relaxed, Relaxed) == Err(WOKEN) {
        token.store(AWAKE, Relaxed);
        return Parked::Woken;
    }
    // The node's address names the sleep, as a futex word's does; the raw load of the token models
    // the kernel's check under its lock.
    let on = SleepsOn::Node(core::ptr::from_ref(waiter).addr());
    let awake = || token.peek() != ASLEEP;
    sleep(Sleep { on, deadline_ns }, |world| world.machine.park_ns, awake);
    if token.swap(AWAKE, Relaxed) == WOKEN { Parked::Woken } else { Parked::TimedOut }
}

/// Unparks the node, unless it has changed hands since that generation.
pub(crate) fn unpark(node: &Waiter<Sim>, generation: u32) {
    if node.generation.load(Relaxed) != generation {
        return;
    }
    wakes(true);
    let before = node.token.swap(WOKEN, Relaxed);
    wakes(false);
    if before == ASLEEP {
        let address = core::ptr::from_ref(node).addr();
        call(|world| world.machine.wake_ns + world.run_queue_ns(address));
        let send_ns = with(|world| world.wake_node(address));
        if send_ns > 0 {
            step(|_| send_ns);
        }
    }
}

/// Sets whether the calling thread is about to wake another.
fn wakes(wakes: bool) {
    with(|world| {
        let me = world.me();
        world.threads[me].wakes = wakes;
    });
}
