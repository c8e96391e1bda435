//! Bounds on the nodes that timed waits leave behind when they end early: two per thread, and a few
//! thousand in all.
//!
//! A waiter that gives up can't take its node out of the queue; the head reclaims it when it passes
//! the headship on (QUEUE-3). Until then the thread can't use the node. A thread that has left two
//! nodes behind waits without a node from then on, until one of the two is reclaimed: a million
//! timed-out waits on one held lock cost two nodes per thread and not a million. A thread that ends
//! leaves its two behind too. So the number is also bounded for the whole process: a server that
//! makes a thread for each request, all of which give up on one lock, stays small.

use core::sync::atomic::Ordering::Relaxed;

use crate::arena;
use antiphon_platform::{Atomic, Platform, WaiterRef};

/// About how many nodes all threads together may leave behind: 256 KiB.
const IN_ALL: i32 = 4096;

/// Returns whether the calling thread may begin a wait that it may have to give up.
pub(super) fn may_leave_one<P: Platform>() -> bool {
    // The number is below zero for a moment if a node is reclaimed before it is counted.
    thread_may_leave_one::<P>() && arena::<P>().left_behind().cast_signed() < IN_ALL
}

/// Does what [`may_leave_one`] does, for a wait that has no deadline and is given up only if the
/// head of its queue does not run.
pub(super) fn thread_may_leave_one<P: Platform>() -> bool {
    P::local(|local| {
        local.abandoned.iter().any(|slot| {
            let packed = slot.load(Relaxed);
            packed == 0 || !still_there::<P>(unpack(packed))
        })
    })
}

/// Records a node that the caller leaves behind.
pub(super) fn note<P: Platform>(left: WaiterRef) {
    arena::<P>().leave_behind();
    P::local(|local| {
        for slot in &local.abandoned {
            let packed = slot.load(Relaxed);
            if (packed == 0 || !still_there::<P>(unpack(packed)))
                && slot.compare_exchange(packed, pack(left), Relaxed, Relaxed).is_ok()
            {
                return;
            }
        }
        // Only a signal handler that gave up a wait in the middle of another one gets here. Even
        // then the node belongs to the queue.
    });
}

fn still_there<P: Platform>(left: WaiterRef) -> bool {
    arena::<P>()
        .resolve_index(left.index)
        .is_some_and(|node| node.generation.load(Relaxed) == left.generation)
}

fn pack(left: WaiterRef) -> u64 {
    u64::from(left.generation) << 32 | u64::from(left.index)
}

fn unpack(packed: u64) -> WaiterRef {
    WaiterRef { index: packed as u32, generation: (packed >> 32) as u32 }
}
