//! Models of writers that wait for each other in the indicator: HEIR-1 to HEIR-8.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, AtomicInteger, Budget, Indicator, Platform};
use antiphon_sync::lock::{Form, RwForm};

use super::super::lock::{read, unlock_read};
use super::super::preferred::words;
use super::super::sharing::look_around;
use super::{Lock, assert_free, guarded, lock, mode, section};
use crate::bounds::NUMA;
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, finish, retire, unlock};

/// Waiters spin, so that the lock is handed to them; one reader is a crowd, and stays one until
/// `IDLE` writers have found few readers. The backstop is `BACKSTOP_NS`. `WRITERS` writers behind a
/// head are also a crowd.
pub struct Turns<const IDLE: u32, const BACKSTOP_NS: u64, const WRITERS: u32>;

impl<const IDLE: u32, const BACKSTOP_NS: u64, const WRITERS: u32> Form
    for Turns<IDLE, BACKSTOP_NS, WRITERS>
{
    const GROUP: u32 = 3;
    const PATIENCE_NS: u32 = u32::MAX;
    const LOOK: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(1);
    const HEAD_SPIN: Budget = Budget::ns(1);
    const LINGER: Budget = Budget::ns(1);
    const COHORT: u16 = 1;
    const BACKSTOP_NS: u64 = BACKSTOP_NS;
}

impl<const IDLE: u32, const BACKSTOP_NS: u64, const WRITERS: u32> RwForm
    for Turns<IDLE, BACKSTOP_NS, WRITERS>
{
    const REST: u32 = 0;
    const CROWD: u32 = 0;
    const WRITERS: u32 = WRITERS;
    const TURNS: u8 = 2;
    const IDLE: u32 = IDLE;
}

/// Readers stay counted by socket.
type Handed = Turns<{ u32::MAX }, 0, 8>;
/// The first writer outside a turn switches readers to being counted in the lock's word.
type Fickle = Turns<0, 0, 8>;
/// [`Handed`] with waiters that give up.
type Backed = Turns<{ u32::MAX }, 1, 8>;
/// [`Handed`] with crowds of writers.
type Written = Turns<4, 0, 1>;

pub fn entries() -> Vec<Entry> {
    let inherited = &["inherited"];
    Subject("shfl-rw+turns").models([
        model("excludes-0+2", taking_turns::<Handed>(0, 2), NUMA).reaches(inherited).long(),
        model("excludes-0+3", taking_turns::<Handed>(0, 3), NUMA).by_lot(5_000).reaches(inherited),
        model("shares-1+2", taking_turns::<Handed>(1, 2), NUMA).by_lot(10_000).reaches(inherited),
        model("asleep-1+3", taking_turns::<Handed>(1, 3), NUMA.expiries(1).spurious(1))
            .by_lot(10_000)
            .reaches(inherited),
        model("returning-1+2", taking_turns::<Fickle>(1, 2), NUMA)
            .by_lot(10_000)
            .reaches(inherited),
        model("backstop-1+2", taking_turns::<Backed>(1, 2), NUMA.expiries(1).timeouts(1))
            .by_lot(10_000)
            .reaches(inherited),
        model("reuses-1+2", reusing(), NUMA).by_lot(10_000),
        model("destroyed-0+2", destroying(), NUMA).by_lot(10_000).reaches(&["retired"]),
        model("downgrades-1+2", downgrading(), NUMA).by_lot(10_000).reaches(inherited),
        model("shuts-1+3", shutting(1, 3), NUMA).by_lot(20_000).reaches(&["shut"]),
        model("moves-0+4", shutting(0, 4), NUMA).by_lot(10_000).reaches(&["shut", "inherited"]),
        model("moves-asleep-0+4", shutting(0, 4), NUMA.expiries(1).spurious(1))
            .by_lot(10_000)
            .reaches(&["shut"]),
        model("inherited-0+2", inheriting(false), NUMA).by_lot(5_000),
        model("inherited-in-turn-0+2", inheriting(true), NUMA).by_lot(5_000),
    ])
}

fn indicator() -> &'static Indicator<Check> {
    // SAFETY: only read, or set before the threads begin.
    unsafe { &Check::indicators()[0] }
}

/// Passes a probe if the caller, a writer, has got the lock from another writer.
fn note_turn() {
    if indicator().owner.turn.load(Relaxed) & 0xFFFF == 2 {
        probe("inherited");
    }
}

/// Readers and writers that come at the same time. Must reach that a writer inherits the lock.
fn taking_turns<F: RwForm>(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let (lock, data) = guarded::<F>(scope, true);
        readers_come(scope, readers, lock, data);
        for writer in 0..writers {
            scope.spawn_on(writer % 2, move || {
                lock.write();
                note_turn();
                finish(lock, data);
            });
        }
        all_have_written(scope, writers, lock, data);
    })
}

/// Spawns readers that come beside the writers, each on its socket.
fn readers_come<'scope, F: RwForm>(
    scope: &'scope Scope<'scope, '_>,
    readers: u32,
    lock: &'scope Lock<F>,
    data: &'scope Data<u32>,
) {
    let inside = scope.share(Cell::new(0));
    for reader in 0..readers {
        scope.spawn_on(reader % 2, move || {
            read(lock);
            look_around(inside, data);
            unlock_read(lock);
        });
    }
}

/// Asserts that at the end each writer has had the lock, and it is free.
fn all_have_written<'scope, F: RwForm>(
    scope: &'scope Scope<'scope, '_>,
    writers: u32,
    lock: &'scope Lock<F>,
    data: &'scope Data<u32>,
) {
    scope.finally(move || {
        assert_eq!(data.get(), writers);
        assert_free(lock);
    });
}

/// RW-15, HEIR-8: writers that wait in the queue are a crowd, which moves to the indicator, and
/// readers come meanwhile. Must reach that the lock was `shut`.
fn shutting(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let (lock, data) = guarded::<Written>(scope, false);
        assert!(lock.try_write());
        scope.spawn_on(0, move || finish(lock, data));
        readers_come(scope, readers, lock, data);
        for writer in 1..writers {
            scope.spawn_on(writer % 2, move || {
                lock.write();
                if mode(lock) == 2 {
                    probe("shut");
                    note_turn();
                }
                finish(lock, data);
            });
        }
        all_have_written(scope, writers, lock, data);
    })
}

/// HEIR-1: a lock gives its indicator back while writers come, and another lock takes it. No writer
/// of the first lock waits in the other's mutex.
fn reusing() -> Program {
    Program::new(3, 5, |scope| {
        let (first, other) = (lock::<Fickle>(scope, true), lock::<Handed>(scope, false));
        let data = scope.share([Data::new(0), Data::new(0)]);
        scope.spawn_on(0, move || {
            section(first, &data[0]);
            read(other);
            let _ = data[1].get();
            unlock_read(other);
        });
        scope.spawn_on(1, move || section(first, &data[0]));
        scope.spawn_on(0, move || {
            section(other, &data[1]);
            section(other, &data[1]);
        });
        scope.finally(move || {
            assert_eq!([data[0].get(), data[1].get()], [2, 2]);
            assert_free(first);
            assert_free(other);
        });
    })
}

/// HEIR-4: the last writer to have the lock gives its indicator back, and frees it, while the other
/// may still be in `unlock_write`. Must reach `retired`.
fn destroying() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = guarded::<Handed>(scope, true);
        for socket in 0..2 {
            scope.spawn_on(socket, move || {
                lock.write();
                let had = data.get() + 1;
                data.set(had);
                unlock(lock);
                if had == 2 {
                    lock.gather();
                    assert_eq!(mode(lock), 0, "the indicator is lost");
                    retire(lock);
                }
            });
        }
    })
}

/// A writer that got the lock by a turn becomes a reader.
fn downgrading() -> Program {
    Program::new(3, 3, |scope| {
        let (lock, data) = guarded::<Handed>(scope, true);
        scope.spawn_on(0, move || {
            lock.write();
            note_turn();
            let mine = data.get() + 1;
            data.set(mine);
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            unlock_read(lock);
        });
        for socket in 0..2 {
            scope.spawn_on(socket, move || section(lock, data));
        }
        scope.finally(move || {
            assert_eq!(data.get(), 3);
            assert_free(lock);
        });
    })
}

/// HEIR-5: the child of a fork, whose parent had writers in the mutex. The forking thread has the
/// lock, by a turn or not, and releases it; another thread writes.
fn inheriting(by_turn: bool) -> Program {
    Program::new(2, 2, move |scope| {
        let (lock, data) = guarded::<Handed>(scope, true);
        assert!(lock.try_write());
        // Epoch 2 is that of another process.
        let Indicator { writers, owner, .. } = indicator();
        writers.comers.0.store(2 << 32 | 2, Relaxed);
        writers.mutex.locked.store(1, Relaxed);
        writers.mutex.head.store(1 << 15 | 1, Relaxed);
        writers.mutex.tail.fetch_or(2 << 22 | 2, Relaxed);
        owner.turn.store(if by_turn { 2 << 16 | 1 } else { 0 }, Relaxed);
        assert_eq!(words(lock).state.load(Relaxed) & 1, 1);
        scope.spawn_on(0, move || finish(lock, data));
        scope.spawn_on(1, move || {
            section(lock, data);
            section(lock, data);
        });
        scope.finally(move || {
            assert_eq!(data.get(), 3);
            assert_free(lock);
        });
    })
}
