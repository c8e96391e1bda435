//! Models of the readers-writer cohort lock, on two sockets.

use antiphon_check::{Check, probe};
use antiphon_rivals::classic::{Ticket, Ttas};
use antiphon_rivals::numa::{CohortRw, Oblivious, Seat};

use crate::bounds::NUMA;
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, destruction, exclusion, guarded, left_for_good, section, unlock};

/// One hand-over within a socket; a reader loses patience at the first release that it sees.
type Lock<G> = CohortRw<Check, G, 2, 1, 1>;
type InTurn = Lock<Ticket<Check>>;
type BackingOff = Lock<Ttas<Check, 0>>;

pub fn entries() -> Vec<Entry> {
    Subject("c-rw-wp").models([
        model("excludes-2x1", exclusion::<InTurn>(2, 1), NUMA),
        model("shares-1+1", sharing::<Ticket<Check>>(1, 1), NUMA),
        model("shares-1+2", sharing::<Ticket<Check>>(1, 2), NUMA).by_lot(1_000),
        model("shares-2+1", sharing::<Ticket<Check>>(2, 1), NUMA).by_lot(1_000),
        model("backing-off-1+1", sharing::<Ttas<Check, 0>>(1, 1), NUMA),
        model("backing-off-shares-2+1", sharing::<Ttas<Check, 0>>(2, 1), NUMA).by_lot(1_000),
        model("tries-1+1", trying(), NUMA).reaches(&["busy", "refused"]),
        model("destroyed-1+1", destruction::<BackingOff>(), NUMA).reaches(&["retired"]),
        model("left-for-good-1+1", leaving(), NUMA).reaches(&["retired"]),
    ])
}

fn leave<G: Oblivious>(lock: &Lock<G>, seat: Seat) {
    // SAFETY: each caller has got its seat from a read.
    unsafe { lock.unlock_read(seat) }
}

/// `readers` threads read plain data and `writers` threads write it. A writer that is not alone is
/// a data race.
fn sharing<G: Oblivious>(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let (lock, data) = guarded::<Lock<G>>(scope);
        for reader in 0..readers {
            scope.spawn_on(reader % 2, move || {
                let seat = lock.read();
                let _ = data.get();
                leave(lock, seat);
            });
        }
        scope.spawn_each(0..writers, move |_| section(lock, data));
        scope.finally(move || {
            assert_eq!(data.get(), writers);
            assert!(lock.try_write(), "free at the end");
        });
    })
}

/// A reader and a writer that do not wait. Must reach `busy` and `refused`.
fn trying() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = guarded::<InTurn>(scope);
        scope.spawn(move || match lock.try_read() {
            Some(seat) => {
                let _ = data.get();
                leave(lock, seat);
            }
            None => probe("refused"),
        });
        scope.spawn(move || {
            if lock.try_write() {
                data.set(1);
                unlock(lock);
            } else {
                probe("busy");
            }
        });
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// The writer that comes after the last reader may free the lock while that reader is still in
/// `unlock_read`. Must reach `retired`.
fn leaving() -> Program {
    left_for_good(
        |scope| scope.share(InTurn::NEW),
        |lock, inside| {
            // Uses a try: a read that waits accesses the lock between its own steps, but not after
            // them.
            if let Some(seat) = lock.try_read() {
                inside();
                leave(lock, seat);
            }
        },
    )
}
