//! Models of readers that sleep at the gate, on lists by socket: GATE-1 to GATE-3, RW-14.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Platform};
use antiphon_sync::lock::RwForm;

use super::super::lock::{read, unlock_read, unlock_write};
use super::super::sharing::look_around;
use super::turns::Turns;
use super::{Returns, Stays, assert_free, lock};
use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let two = Bounds::PLAIN.sockets(2);
    let slept = &["slept"];
    vec![
        Entry::new("shfl-rw+gate/sleeps-1+1", sleeping::<Stays>(1, 1, false), two)
            .reaches(slept)
            .long(),
        Entry::new("shfl-rw+gate/sleeps-2+1", sleeping::<Stays>(2, 1, false), two)
            .by_lot(20_000)
            .reaches(&["slept", "together"]),
        Entry::new("shfl-rw+gate/sleeps-3+1", sleeping::<Stays>(3, 1, false), two.spurious(1))
            .by_lot(10_000)
            .reaches(&["slept", "together"]),
        Entry::new("shfl-rw+gate/returns-2+1", sleeping::<Returns>(2, 1, false), two)
            .by_lot(20_000)
            .reaches(slept),
        Entry::new("shfl-rw+gate/writes-2+2", sleeping::<Stays>(2, 2, false), two)
            .by_lot(10_000)
            .reaches(slept),
        Entry::new("shfl-rw+gate/downgrades-2+1", sleeping::<Stays>(2, 1, true), two)
            .by_lot(10_000)
            .reaches(slept),
        Entry::new(
            "shfl-rw+gate/gives-up-2+1",
            sleeping::<Turns<{ u32::MAX }, 1, 8>>(2, 1, false),
            two.expiries(2).timeouts(1),
        )
        .by_lot(10_000)
        .reaches(slept),
    ]
}

/// Readers of one socket, and writers of another that may become readers. Must reach that a reader
/// sleeps while a writer has the lock; and `together`: that two do.
fn sleeping<F: RwForm>(readers: u32, writers: u32, downgrades: bool) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let lock = lock::<F>(scope, true);
        let data = scope.share(Data::new(0));
        let inside = scope.share(Cell::new(0));
        for _ in 0..readers {
            scope.spawn_on(0, move || {
                read(lock);
                look_around(inside, data);
                unlock_read(lock);
            });
        }
        for _ in 0..writers {
            scope.spawn_on(1, move || {
                lock.write();
                data.set(data.get() + 1);
                // SAFETY: only read.
                let asleep = unsafe { &Check::indicators()[0].lines[0].asleep };
                let last = crate::arena::arena().resolve_index(asleep.load(Relaxed) & 0x003F_FFFF);
                if let Some(last) = last {
                    probe("slept");
                    if last.next.load(Relaxed) != 0 {
                        probe("together");
                    }
                }
                if downgrades {
                    // SAFETY: acquired above.
                    unsafe { lock.downgrade() };
                    let _ = data.get();
                    unlock_read(lock);
                } else {
                    unlock_write(lock);
                }
            });
        }
        scope.finally(move || {
            assert_eq!(data.get(), writers);
            assert_free(lock);
        });
    })
}
