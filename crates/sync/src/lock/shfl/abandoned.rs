//! The nodes that were left behind when timed waits ended early: two a thread, and a few thousand
//! in all.
//!
//! A waiter that gives up can't take its node out of the queue; the head does, when it comes by
//! (QUEUE-3). Till then the node is lost to its thread. A thread that has left two waits without a
//! node from then on, until one of them was reclaimed: a million timed-out waits on one held lock
//! cost two nodes a thread and not a million. A thread that has ended leaves its two behind too, so
//! their number is bounded for the whole process as well: a server that makes a thread for each
//! request, all of which give up on one lock, stays small.

use core::sync::atomic::Ordering::Relaxed;

use crate::arena;
use antiphon_platform::{Atomic, Platform, WaiterRef};

/// How many nodes all threads may leave behind, about: 256 KiB of them.
const IN_ALL: i32 = 4096;

/// Whether the calling thread may begin a wait that it may have to give up.
pub(super) fn may_leave_one<P: Platform>() -> bool {
    // Below zero for a moment, if a node is reclaimed before it is counted.
    thread_may_leave_one::<P>() && arena::<P>().left_behind().cast_signed() < IN_ALL
}

/// As [`may_leave_one`], for a wait that has no deadline and is given up only if the head of its
/// queue does not run.
pub(super) fn thread_may_leave_one<P: Platform>() -> bool {
    P::local(|local| {
        local.abandoned.iter().any(|slot| {
            let packed = slot.load(Relaxed);
            packed == 0 || !still_there::<P>(unpack(packed))
        })
    })
}

/// Notes a node that was left behind.
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
        // Only a signal handler that gave up a wait in the middle of another comes here; the node
        // is the queue's all the same.
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
