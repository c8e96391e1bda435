//! Models of the NUMA-aware comparison locks, on two sockets, exhaustively within the stated
//! bounds.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, WaiterId};
use antiphon_rivals::classic::{Ticket, Ttas};
use antiphon_rivals::numa::{Ahmcs, Cna, Cohort, Hbo, Hclh, Hmcs, Malthusian};
use antiphon_sync::lock::Lock;

use crate::arena::arena;
use crate::bounds::{NUMA, PLAIN};
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::{Program, contend, destruction, tries};

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

/// The models of one lock. On two sockets, threads 1 and 3 are on one, thread 2 on the other.
fn each<L: Lock>(subject: &'static str) -> Vec<Entry> {
    Subject(subject).models([
        model("excludes-2x2", exclusion::<L>(2, 2), NUMA),
        model("excludes-3x1", exclusion::<L>(3, 1), NUMA),
        model("shares-a-socket-2x2", exclusion::<L>(2, 2), PLAIN),
        model("larger-3x2", exclusion::<L>(3, 2), NUMA).by_lot(500),
        model("larger-4x2", exclusion::<L>(4, 2), NUMA).by_lot(500),
        model("tries-1+1", tries::<L>(1), NUMA).reaches(&["busy"]),
        model("destroyed-1+1", destruction::<L>(), NUMA).reaches(&["retired"]),
        model("destroyed-on-a-socket-1+1", destruction::<L>(), PLAIN).reaches(&["retired"]),
        // One thread must wait until the other is dead and its node is found.
        model("exhausted-2x1", exclusion::<L>(2, 1), NUMA.nodes(1).mortal(1)),
    ])
}

pub fn entries() -> Vec<Entry> {
    // One hand-over within a socket, then it is the other socket's turn; no thread backs off.
    type BackingOff = Cohort<Check, Ttas<Check, 0>, 2, 1>;
    type InTurn = Cohort<Check, Ticket<Check>, 2, 1>;
    // Without a spin, all waiters sleep; with a `LOT` of two the eldest comes back every second
    // time.
    type Sleepy = Malthusian<Check, 0>;
    type Fair = Malthusian<Check, 0, 2>;
    // One spurious wake, and one shortened spin for each thread.
    let any = NUMA.spurious(1).expiries(1);
    all_of([
        // A waiter that is set aside stays there.
        each::<Cna<Check>>("cna"),
        // Every second time a waiter that was set aside comes back.
        each::<Cna<Check, 1>>("cna+fair"),
        each::<BackingOff>("c-bo-mcs"),
        each::<InTurn>("c-tkt-mcs"),
        each::<Hmcs<Check, 2, 1>>("hmcs"),
        // After a thread that was alone in its socket, the next thread skips the socket's queue.
        each::<Ahmcs<Check, 2, 1, 1>>("ahmcs"),
        each::<Hbo<Check, 1, 1>>("hbo"),
        each::<Hclh<Check, 2>>("hclh"),
        each::<Sleepy>("malthusian"),
        each::<Fair>("malthusian+fair"),
        Subject("malthusian").models([
            model("spurious-2x2", exclusion::<Sleepy>(2, 2), any),
            model("shipped-2x2", exclusion::<Malthusian<Check>>(2, 2), any),
            model("spurious-3x2", exclusion::<Fair>(3, 2), any).by_lot(500),
        ]),
    ])
}
