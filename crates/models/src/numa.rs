//! Models of the NUMA-aware comparison locks, on two sockets, exhaustively within the stated
//! bounds.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, WaiterId};
use antiphon_rivals::classic::{Ticket, Ttas};
use antiphon_rivals::numa::{Ahmcs, Cna, Cohort, Hbo, Hclh, Hmcs, Malthusian};
use antiphon_sync::lock::Lock;

use crate::arena::arena;
use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::{Program, contend, destruction, tries};

/// Threads 1 and 3 are on one socket, thread 2 is on the other.
const TWO: Bounds = Bounds::PLAIN.sockets(2);

/// [`exclusion`](crate::program::exclusion); and at the end no node is in use: a free lock owns
/// none, and none was lost.
fn exclusion<L: Lock>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        contend::<L>(scope, threads, rounds);
        scope.finally(|| {
            // With few nodes, the count of requested nodes exceeds theirs.
            for node in (1..=arena().high_water())
                .filter_map(WaiterId::from_bits)
                .filter_map(|id| arena().resolve_any(id))
            {
                let generation = node.generation.load(Relaxed);
                assert!(generation.is_multiple_of(2), "a node was lost");
            }
        });
    })
}

/// The models of each of these locks.
macro_rules! each {
    ($($subject:literal: $lock:ty;)+) => {
        vec![$(
            Entry::new(concat!($subject, "/excludes-2x2"), exclusion::<$lock>(2, 2), TWO),
            Entry::new(concat!($subject, "/excludes-3x1"), exclusion::<$lock>(3, 1), TWO),
            Entry::new(concat!($subject, "/shares-a-socket-2x2"),
                exclusion::<$lock>(2, 2), Bounds::PLAIN),
            Entry::new(concat!($subject, "/larger-3x2"), exclusion::<$lock>(3, 2), TWO)
                .by_lot(500),
            Entry::new(concat!($subject, "/larger-4x2"), exclusion::<$lock>(4, 2), TWO)
                .by_lot(500),
            Entry::new(concat!($subject, "/tries-1+1"), tries::<$lock>(1), TWO)
                .reaches(&["busy"]),
            Entry::new(concat!($subject, "/destroyed-1+1"), destruction::<$lock>(), TWO)
                .reaches(&["retired"]),
            Entry::new(concat!($subject, "/destroyed-on-a-socket-1+1"),
                destruction::<$lock>(), Bounds::PLAIN).reaches(&["retired"]),
            // One thread must wait until the other is dead and its node is found.
            Entry::new(concat!($subject, "/exhausted-2x1"),
                exclusion::<$lock>(2, 1), TWO.nodes(1).mortal(1)),
        )+]
    };
}

pub fn entries() -> Vec<Entry> {
    // One hand-over within a socket, then it is the other socket's turn; no thread backs off.
    type BackingOff = Cohort<Check, Ttas<Check, 0>, 2, 1>;
    type InTurn = Cohort<Check, Ticket<Check>, 2, 1>;
    // Without a spin, all waiters sleep; with a `LOT` of two the eldest comes back every second
    // time.
    type Sleepy = Malthusian<Check, 0>;
    type Fair = Malthusian<Check, 0, 2>;
    let mut entries = each! {
        // A waiter that is set aside stays there.
        "cna": Cna<Check>;
        // Every second time a waiter that was set aside comes back.
        "cna+fair": Cna<Check, 1>;
        "c-bo-mcs": BackingOff;
        "c-tkt-mcs": InTurn;
        "hmcs": Hmcs<Check, 2, 1>;
        // After a thread that was alone in its socket, the next thread skips the socket's queue.
        "ahmcs": Ahmcs<Check, 2, 1, 1>;
        "hbo": Hbo<Check, 1, 1>;
        "hclh": Hclh<Check, 2>;
        "malthusian": Sleepy;
        "malthusian+fair": Fair;
    };
    // One spurious wake, and one shortened spin for each thread.
    let any = TWO.spurious(1).expiries(1);
    entries.extend([
        Entry::new("malthusian/spurious-2x2", exclusion::<Sleepy>(2, 2), any),
        Entry::new("malthusian/shipped-2x2", exclusion::<Malthusian<Check>>(2, 2), any),
        Entry::new("malthusian/spurious-3x2", exclusion::<Fair>(3, 2), any).by_lot(500),
    ]);
    entries
}
