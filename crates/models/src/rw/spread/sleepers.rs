//! Models of readers that sleep at the gate, on lists by socket: GATE-1 to GATE-3, RW-14.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, probe};
use antiphon_platform::{Atomic, AtomicInteger, Platform};
use antiphon_sync::lock::RwForm;

use super::super::lock::{look, read, unlock_read, visit};
use super::super::sharing::look_around;
use super::turns::Turns;
use super::{Returns, Stays, assert_free, guarded};
use crate::bounds::NUMA;
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, unlock};

pub fn entries() -> Vec<Entry> {
    let slept = &["slept"];
    Subject("shfl-rw+gate").models([
        model("sleeps-1+1", sleeping::<Stays>(1, 1, false), NUMA).reaches(slept).long(),
        model("sleeps-2+1", sleeping::<Stays>(2, 1, false), NUMA)
            .by_lot(20_000)
            .reaches(&["slept", "together"]),
        model("sleeps-3+1", sleeping::<Stays>(3, 1, false), NUMA.spurious(1))
            .by_lot(10_000)
            .reaches(&["slept", "together"]),
        model("returns-2+1", sleeping::<Returns>(2, 1, false), NUMA).by_lot(20_000).reaches(slept),
        model("writes-2+2", sleeping::<Stays>(2, 2, false), NUMA).by_lot(10_000).reaches(slept),
        model("flagged-1+1", flagged(), NUMA).by_lot(20_000).reaches(slept),
        model("downgrades-2+1", sleeping::<Stays>(2, 1, true), NUMA).by_lot(10_000).reaches(slept),
        model(
            "gives-up-2+1",
            sleeping::<Turns<{ u32::MAX }, 1, 8>>(2, 1, false),
            NUMA.expiries(2).timeouts(1),
        )
        .by_lot(10_000)
        .reaches(slept),
    ])
}

/// In `joined`: readers sleep at the gate.
const ASLEEP: u32 = 1 << 31;

/// Reaches `slept` if a reader of the first socket is on its list, and `together` if two are.
fn look_for_sleepers() {
    // SAFETY: only read.
    let asleep = unsafe { &Check::indicators()[0].lines[0].asleep };
    let last = crate::arena::arena().resolve_index(asleep.load(Relaxed) & 0x003F_FFFF);
    if let Some(last) = last {
        probe("slept");
        if last.next.load(Relaxed) != 0 {
            probe("together");
        }
    }
}

/// GATE-1: a reader sets `ASLEEP` although it was set when the reader came, if the list that it
/// joins was taken after the flag was cleared. The flag is set in the beginning, as it is where a
/// reader has left its list untold. Must reach that the reader sleeps during the second section.
fn flagged() -> Program {
    Program::new(2, 3, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        assert!(lock.try_write());
        // SAFETY: the flag may be set at any time; then lists are taken in vain.
        unsafe { &Check::indicators()[0] }.joined.fetch_or(ASLEEP, Relaxed);
        scope.spawn_on(0, move || visit(lock, data));
        scope.spawn_on(1, move || {
            unlock(lock);
            lock.write();
            data.set(1);
            look_for_sleepers();
            unlock(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// Readers of one socket, and writers of another that may become readers. Must reach that a reader
/// sleeps while a writer has the lock; and `together`: that two do.
fn sleeping<F: RwForm>(readers: u32, writers: u32, downgrades: bool) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let (lock, data) = guarded::<F>(scope, true);
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
                look_for_sleepers();
                if downgrades {
                    // SAFETY: acquired above.
                    unsafe { lock.downgrade() };
                    look(lock, data);
                } else {
                    unlock(lock);
                }
            });
        }
        scope.finally(move || {
            assert_eq!(data.get(), writers);
            assert_free(lock);
        });
    })
}
