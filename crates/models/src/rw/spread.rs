//! Models of switching readers to counting by socket when they are a crowd, and back: RW-7 to
//! RW-14, LINE-1 to LINE-6.

mod edges;
mod sleepers;
mod turns;

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Data, Scope, probe};
use antiphon_platform::{Atomic, Budget};
use antiphon_sync::lock::{Form, Recursive, Refused, RwForm};

use edges::{abandoned, both_trying, knowing, moving, reading_late, trying_beside};

use super::lock::{Lock, look, read, unlock_read, visit};
use super::preferred::words;
use super::sharing::look_around;
use crate::bounds::NUMA;
use crate::entry::{Entry, Subject, model};
use crate::program::{GAVE_UP, Program, finish, left_for_good, section, soon, unlock};

/// Waiters sleep, or spin for `SPIN` nanoseconds; more than `CROWD` readers are a crowd. After
/// `IDLE` writers that few readers have preceded, readers are counted in the lock's word again.
pub struct Crowd<const SPIN: u32, const IDLE: u32, const CROWD: u32>;

impl<const SPIN: u32, const IDLE: u32, const CROWD: u32> Form for Crowd<SPIN, IDLE, CROWD> {
    const GROUP: u32 = 3;
    const PATIENCE_NS: u32 = u32::MAX;
    const LOOK: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(SPIN);
    const HEAD_SPIN: Budget = Budget::ns(SPIN);
    const LINGER: Budget = Budget::NONE;
    const BACKSTOP_NS: u64 = 0;
}

impl<const SPIN: u32, const IDLE: u32, const CROWD: u32> RwForm for Crowd<SPIN, IDLE, CROWD> {
    const REST: u32 = 0;
    const CROWD: u32 = CROWD;
    const TURNS: u8 = 2;
    const IDLE: u32 = IDLE;
}

/// Readers stay counted by socket.
type Stays = Crowd<0, { u32::MAX }, 0>;
/// [`Stays`] with crowds of two readers.
type Gathers = Crowd<0, { u32::MAX }, 1>;
/// The first writer that leaves switches readers to being counted in the lock's word.
type Returns = Crowd<0, 0, 0>;

pub fn entries() -> Vec<Entry> {
    let any = NUMA.spurious(1).expiries(1).crowded(1);
    let timed = NUMA.timeouts(1);
    let by_line = &["by a line"];
    let mut entries = Subject("shfl-rw+crowd").models([
        model("looks-2+1", looking::<Stays>(true, true), NUMA).reaches(&["busy"]),
        model("looks-gathering-2+1", looking::<Gathers>(false, true), NUMA).reaches(&["busy"]),
        model("looks-returning-1+1", looking::<Returns>(true, false), NUMA).reaches(&["busy"]),
        model("moves-2+1", moving(), NUMA).reaches(&["wrote"]),
        model("knows-1+1", knowing(), NUMA).reaches(by_line),
        model("reads-late-2+1", reading_late(), NUMA).by_lot(10_000).reaches(&["in"]),
        model("tries-both-1+1", both_trying(), NUMA).reaches(&["read", "wrote"]),
        model("recurses-trying-2+1", trying_beside(), NUMA).reaches(&["beside", "wrote"]).long(),
        model("recurses-trying-by-lot-2+1", trying_beside(), NUMA)
            .by_lot(20_000)
            .reaches(&["beside", "wrote"]),
        model("abandoned-2+1", abandoned(false, false), NUMA).by_lot(10_000),
        model("abandoned-late-2+1", abandoned(true, false), NUMA).by_lot(5_000),
        model("abandoned-upgrading-2+1", abandoned(false, true), NUMA).by_lot(5_000),
        model("shares-1+1", sharing::<Stays>(1, 1, 1, true), NUMA).reaches(by_line).long(),
        model("shares-returning-1+1", sharing::<Returns>(1, 1, 2, true), NUMA)
            .reaches(&["by a line", "centrally"])
            .long(),
        model("shares-returning-2+1", sharing::<Returns>(2, 1, 2, true), NUMA)
            .by_lot(5_000)
            .reaches(&["by a line", "centrally"]),
        model("shares-2+1", sharing::<Stays>(2, 1, 1, true), NUMA).reaches(by_line).long(),
        model("shares-by-lot-2+1", sharing::<Stays>(2, 1, 1, true), NUMA)
            .by_lot(5_000)
            .reaches(by_line),
        model("shares-1+2", sharing::<Stays>(1, 2, 1, true), NUMA).by_lot(5_000).reaches(by_line),
        model("shares-any-platform-1+1", sharing::<Crowd<1, { u32::MAX }, 0>>(1, 1, 1, true), any)
            .by_lot(5_000)
            .reaches(by_line),
        model("shares-2+2", sharing::<Returns>(2, 2, 2, true), NUMA.spurious(1))
            .by_lot(10_000)
            .reaches(&["by a line", "centrally"]),
        model("gathers-1+1", sharing::<Stays>(1, 1, 1, false), NUMA).reaches(by_line),
        model("gathers-2+1", sharing::<Stays>(2, 1, 1, false), NUMA)
            .by_lot(10_000)
            .reaches(by_line),
        model("exhausted-1+1", sharing::<Stays>(1, 1, 1, true), NUMA.nodes(0)),
        model("hands-over-2+1", handing_over(), NUMA).by_lot(5_000),
        model("recurses-1+1", recursion::<Stays>(true), NUMA)
            .by_lot(10_000)
            .reaches(&["beside a writer"]),
        model("recurses-by-form-1+1", recursion::<Recursive<Stays>>(false), NUMA)
            .by_lot(10_000)
            .reaches(&["beside a writer"]),
        model("times-out-1+1", giving_up(), timed).by_lot(5_000).reaches(GAVE_UP),
        model("tries-1+1", trying(0), NUMA).by_lot(5_000).reaches(&["busy"]),
        model("tries-beside-1+1+1", trying(1), NUMA).by_lot(5_000).reaches(&["busy"]),
        model("downgrades-1+1", downgrading(), NUMA).by_lot(5_000),
        model("upgrades-1+1", upgrading(), timed).by_lot(10_000).reaches(GAVE_UP),
        model("reuses-1+1+1", reusing(), NUMA).by_lot(10_000),
        model("left-for-good-1+1", leaving(), NUMA).by_lot(5_000).reaches(&["retired"]),
    ]);
    entries.extend(turns::entries());
    entries.extend(sleepers::entries());
    entries
}

/// Returns where the lock's readers are counted: 0 for in its word.
fn mode<F: RwForm>(lock: &Lock<F>) -> u64 {
    words(lock).state.load(Relaxed) >> 6 & 3
}

/// Passes a probe that tells how the caller, a reader, is counted.
fn note<F: RwForm>(lock: &Lock<F>) {
    probe(if mode(lock) == 0 { "centrally" } else { "by a line" });
}

/// Shares a lock; its readers are counted by socket if it is `spread`.
fn lock<'scope, F: RwForm>(scope: &'scope Scope<'scope, '_>, spread: bool) -> &'scope Lock<F> {
    let lock = scope.share(Lock::<F>::NEW);
    if spread {
        read(lock);
        unlock_read(lock);
        assert_eq!(mode(lock), 1, "one reader is a crowd");
    }
    lock
}

/// [`lock`], and data that it guards.
fn guarded<'scope, F: RwForm>(
    scope: &'scope Scope<'scope, '_>,
    spread: bool,
) -> (&'scope Lock<F>, &'scope Data<u32>) {
    (lock(scope, spread), scope.share(Data::new(0)))
}

/// Asserts that at the end no thread is in.
fn assert_free<F: RwForm>(lock: &Lock<F>) {
    assert!(!lock.is_locked(), "somebody is left behind");
    assert!(lock.try_write(), "free at the end");
    unlock(lock);
    lock.gather();
    assert_eq!(mode(lock), 0, "a free lock gives back what it has taken");
    assert!(lock.write_uncontended(), "as one that was never read");
}

/// Readers, on the two sockets in turn, and writers.
fn sharing<F: RwForm>(readers: u32, writers: u32, rounds: u32, spread: bool) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let (lock, data) = guarded::<F>(scope, spread);
        let inside = scope.share(Cell::new(0));
        for reader in 0..readers {
            scope.spawn_on(reader % 2, move || {
                for _ in 0..rounds {
                    read(lock);
                    note(lock);
                    look_around(inside, data);
                    unlock_read(lock);
                }
            });
        }
        scope.spawn_each(0..writers, move |_| (0..rounds).for_each(|_| section(lock, data)));
        scope.finally(move || {
            assert_eq!(data.get(), writers * rounds);
            assert_free(lock);
        });
    })
}

/// LINE-2: one thread unlocks on another socket what another thread has locked, beside a reader
/// there.
fn handing_over() -> Program {
    Program::new(3, 3, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        read(lock);
        scope.spawn_on(1, move || look(lock, data));
        scope.spawn_on(1, move || visit(lock, data));
        scope.spawn(move || section(lock, data));
        scope.finally(move || {
            assert_eq!(data.get(), 1);
            assert_free(lock);
        });
    })
}

/// A reader that is in leaves, another checks whether it may come in, and a writer tries. Each of
/// them completes a switch of the mode if needed. Must reach `busy`.
fn looking<F: RwForm>(spread: bool, held: bool) -> Program {
    Program::new(2 + u32::from(held), 3, move |scope| {
        let (lock, data) = guarded::<F>(scope, spread);
        if held {
            read(lock);
            scope.spawn_on(0, move || look(lock, data));
        }
        scope.spawn_on(1, move || match lock.read_uncontended() {
            Ok(()) => {
                look(lock, data);
            }
            Err(refused) => assert_eq!(refused, Refused::Busy),
        });
        scope.spawn(move || {
            if lock.try_write() {
                finish(lock, data);
            } else {
                probe("busy");
            }
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-11: a reader can read-lock again although a writer waits. Must reach that case.
fn recursion<F: RwForm>(explicit: bool) -> Program {
    Program::new(2, 4, move |scope| {
        let (lock, data) = guarded::<F>(scope, true);
        scope.spawn_on(0, move || {
            read(lock);
            let again = if explicit { lock.read_recursive() } else { lock.read() };
            assert_eq!(again, Ok(()));
            assert_eq!(lock.try_read_recursive(), Ok(()));
            if words(lock).state.load(Relaxed) & 1 != 0 {
                probe("beside a writer");
            }
            for _ in 0..3 {
                look(lock, data);
            }
        });
        scope.spawn_on(1, move || section(lock, data));
        scope.finally(move || assert_free(lock));
    })
}

/// A writer that gives up while a reader is in by a line, and a reader that comes again.
fn giving_up() -> Program {
    Program::new(2, 3, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        scope.spawn_on(0, move || {
            for _ in 0..2 {
                visit(lock, data);
            }
        });
        scope.spawn(move || {
            if !lock.write_until(soon()) {
                return probe("gave up");
            }
            finish(lock, data);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// One thread tries beside a reader and writers. Must reach `busy`.
fn trying(writers: u32) -> Program {
    Program::new(2 + writers, 3 + writers, move |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        scope.spawn_on(0, move || visit(lock, data));
        scope.spawn_each(0..writers, move |_| section(lock, data));
        scope.spawn_on(1, move || {
            if lock.try_write() {
                finish(lock, data);
            } else {
                probe("busy");
            }
            match lock.try_read() {
                Ok(()) => {
                    look(lock, data);
                }
                Err(refused) => assert!(writers > 0 && refused == Refused::Busy),
            }
        });
        scope.finally(move || assert_free(lock));
    })
}

/// A writer becomes a reader, beside another reader.
fn downgrading() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        scope.spawn_on(0, move || {
            lock.write();
            data.set(data.get() + 1);
            let mine = data.get();
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            unlock_read(lock);
        });
        scope.spawn(move || section(lock, data));
        scope.finally(move || {
            assert_eq!(data.get(), 2);
            assert_free(lock);
        });
    })
}

/// A reader becomes the writer, in time or not, beside a reader that is in by a line. Must reach
/// `gave up`.
fn upgrading() -> Program {
    Program::new(2, 3, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        scope.spawn_on(0, move || visit(lock, data));
        scope.spawn_on(1, move || {
            lock.upgradable();
            let mine = data.get();
            // SAFETY: acquired above.
            if unsafe { lock.upgrade_until(soon()) } {
                data.set(mine + 1);
                // SAFETY: the upgrade above has succeeded.
                unsafe { lock.downgrade_to_upgradable() };
            } else {
                probe("gave up");
            }
            // SAFETY: an upgradable reader either way.
            unsafe { lock.downgrade_upgradable() };
            look(lock, data);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-10, LINE-4: a lock gives its indicator back, another lock takes it, and a late reader of the
/// first lock counts itself there.
fn reusing() -> Program {
    Program::new(3, 4, |scope| {
        let (lock, other) = (lock::<Returns>(scope, true), lock::<Stays>(scope, false));
        let data = scope.share(Data::new(0));
        scope.spawn_on(0, move || {
            read(lock);
            unlock_read(lock);
        });
        scope.spawn_on(0, move || {
            lock.write();
            unlock(lock);
            visit(other, data);
        });
        scope.spawn_on(1, move || section(other, data));
        scope.finally(move || {
            assert_free(lock);
            assert_free(other);
        });
    })
}

/// RW-3 of a reader by a line: the writer that comes after it may free the lock while that reader
/// is still in `unlock_read`. Must reach `retired`.
fn leaving() -> Program {
    left_for_good(
        |scope| lock::<Stays>(scope, true),
        |lock, inside| {
            read(lock);
            inside();
            unlock_read(lock);
        },
    )
}
