//! Models of the readers-writer cohort lock, on two sockets.

use std::cell::Cell;

use antiphon_check::{Check, Data, probe};
use antiphon_rivals::classic::{Ticket, Ttas};
use antiphon_rivals::numa::{CohortRw, Oblivious, Seat};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::{Program, destruction, exclusion};

/// One hand-over within a socket; a reader loses patience at the first release that it sees.
type Lock<G> = CohortRw<Check, G, 2, 1, 1>;
type InTurn = Lock<Ticket<Check>>;
type BackingOff = Lock<Ttas<Check, 0>>;

pub fn entries() -> Vec<Entry> {
    let two = Bounds::PLAIN.sockets(2);
    vec![
        Entry::new("c-rw-wp/excludes-2x1", exclusion::<InTurn>(2, 1), two),
        Entry::new("c-rw-wp/shares-1+1", sharing::<Ticket<Check>>(1, 1), two),
        Entry::new("c-rw-wp/shares-1+2", sharing::<Ticket<Check>>(1, 2), two).by_lot(1_000),
        Entry::new("c-rw-wp/shares-2+1", sharing::<Ticket<Check>>(2, 1), two).by_lot(1_000),
        Entry::new("c-rw-wp/backing-off-1+1", sharing::<Ttas<Check, 0>>(1, 1), two),
        Entry::new("c-rw-wp/backing-off-shares-2+1", sharing::<Ttas<Check, 0>>(2, 1), two)
            .by_lot(1_000),
        Entry::new("c-rw-wp/tries-1+1", trying(), two).reaches(&["busy", "refused"]),
        Entry::new("c-rw-wp/destroyed-1+1", destruction::<BackingOff>(), two).reaches(&["retired"]),
        Entry::new("c-rw-wp/left-for-good-1+1", leaving(), two).reaches(&["retired"]),
    ]
}

fn leave<G: Oblivious>(lock: &Lock<G>, seat: Seat) {
    // SAFETY: each caller has got its seat from a read.
    unsafe { lock.unlock_read(seat) }
}

fn unlock_write<G: Oblivious>(lock: &Lock<G>) {
    // SAFETY: each caller has acquired the lock for writing.
    unsafe { lock.unlock_write() }
}

/// `readers` threads read plain data and `writers` threads write it. A writer that is not alone is
/// a data race.
fn sharing<G: Oblivious>(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let lock = scope.share(Lock::<G>::NEW);
        let data = scope.share(Data::new(0));
        for reader in 0..readers {
            scope.spawn_on(reader % 2, move || {
                let seat = lock.read();
                let _ = data.get();
                leave(lock, seat);
            });
        }
        for _ in 0..writers {
            scope.spawn(move || {
                lock.write();
                data.set(data.get() + 1);
                unlock_write(lock);
            });
        }
        scope.finally(move || {
            assert_eq!(data.get(), writers);
            assert!(lock.try_write(), "free at the end");
        });
    })
}

/// A reader and a writer that do not wait. Must reach `busy` and `refused`.
fn trying() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(InTurn::NEW);
        let data = scope.share(Data::new(0));
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
                unlock_write(lock);
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
    Program::new(2, 2, |scope| {
        let lock = scope.share(InTurn::NEW);
        let data = scope.share(Data::new(()));
        let read_once = scope.share(Cell::new(false));
        scope.spawn(move || {
            // Uses a try: a read that waits accesses the lock between its own steps, but not after
            // them.
            if let Some(seat) = lock.try_read() {
                data.get();
                read_once.set(true);
                leave(lock, seat);
            }
        });
        scope.spawn(move || {
            lock.write();
            data.set(());
            let last = read_once.get();
            unlock_write(lock);
            if last {
                antiphon_check::retire(lock);
                probe("retired");
            }
        });
    })
}
