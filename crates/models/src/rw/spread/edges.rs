//! Minimal models of the defects that a review of readers counted by socket has found: RW-7, RW-10
//! to RW-12.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Platform};

use super::super::lock::{Lock, look, read, unlock_read};
use super::super::preferred::words;
use super::{Gathers, Returns, Stays, assert_free, guarded, lock, mode, note, section};
use crate::arena::arena;
use crate::program::{Program, finish, unlock};

/// RW-7: a reader that was counted in the lock's word leaves, while a second switches the crowd to
/// counting by socket, leaves, and returns to write, and a third comes through the word, from a
/// socket that has no line yet. The writer is in beside none of them. Must reach `wrote`.
pub fn moving() -> Program {
    Program::new(3, 4, |scope| {
        let (lock, data) = guarded::<Gathers>(scope, false);
        read(lock);
        scope.spawn_on(0, move || look(lock, data));
        // Limits the executions to those that the model tests.
        let moved = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn_on(0, move || {
            read(lock);
            unlock_read(lock);
            let by_line = mode(lock) == 1;
            moved.store(1 + u32::from(by_line), Relaxed);
            if by_line && lock.write_at_once() {
                probe("wrote");
                finish(lock, data);
            }
        });
        scope.spawn_on(1, move || {
            let by_line = moved.wait_while(Relaxed, |moved| moved == 0) == 2;
            if by_line && lock.try_read() == Ok(()) {
                look(lock, data);
            }
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-7: a reader whose count was moved to a line still knows that it reads.
pub fn knowing() -> Program {
    Program::new(2, 4, |scope| {
        let lock = lock::<Gathers>(scope, false);
        read(lock);
        scope.spawn_on(1, move || {
            assert!(lock.is_locked() && lock.seems_read(), "the caller reads");
            note(lock);
            unlock_read(lock);
        });
        scope.spawn_on(0, move || {
            read(lock);
            unlock_read(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-10: a reader has the name of an indicator that the lock has given back; an attempt to count
/// readers by socket names it again and gives up, because of a reader that upgrades.
pub fn reading_late() -> Program {
    Program::new(3, 4, |scope| {
        let (lock, other) = (lock::<Returns>(scope, false), lock::<Stays>(scope, true));
        let data = scope.share(Data::new(0));
        read(lock);
        unlock_read(lock);
        assert_eq!((mode(lock), mode(other)), (1, 1), "the other one has the first indicator");
        lock.gather();
        let rested = || words(lock).rest.store(0, Relaxed);
        rested();
        // The lock's readers are counted on the second indicator; the first is free, and
        // remembered.
        read(lock);
        unlock_read(lock);
        assert_eq!((mode(lock), words(lock).lines.load(Relaxed)), (1, 2));
        other.gather();
        scope.spawn_on(0, move || late(lock, data));
        scope.spawn_on(1, move || {
            lock.write();
            unlock(lock);
            rested();
            lock.upgradable();
            // SAFETY: just acquired upgradable.
            unsafe { lock.upgrade() };
            finish(lock, data);
        });
        scope.spawn_on(0, move || {
            if lock.read_uncontended() == Ok(()) {
                look(lock, data);
            }
        });
        scope.finally(move || assert!(!lock.is_locked()));
    })
}

/// The steps of a reader that has read the first indicator's name in the lock, which by now uses
/// another indicator.
fn late(lock: &Lock<Returns>, data: &Data<u32>) {
    // SAFETY: the code below takes only the steps of a reader that counts itself on a line.
    let line = unsafe { &Check::indicators()[0].lines[0] };
    line.entered.fetch_add(1, Relaxed);
    Check::fence(SeqCst);
    let state = words(lock).state.load(Acquire);
    let name = words(lock).lines.load(Relaxed);
    if state >> 6 & 3 == 1 && name == 1 {
        probe("in");
        look(lock, data);
    } else {
        line.entered.fetch_sub(1, Relaxed);
        Check::fence(SeqCst);
        // LINE-3: a writer that has counted this reader may sleep by now.
        let left = line.left.load(Relaxed);
        if left & 1 != 0
            && let Some(writer) = arena().reference(u32::from((left >> 8) as u16))
        {
            Check::unpark(writer);
        }
    }
}

/// On a free lock, a try to read or a concurrent try to write succeeds.
pub fn both_trying() -> Program {
    Program::new(2, 2, |scope| {
        let lock = lock::<Stays>(scope, true);
        let had = scope.share(Cell::new(0));
        scope.spawn_on(0, move || {
            if lock.try_read() == Ok(()) {
                had.set(had.get() + 1);
                probe("read");
                unlock_read(lock);
            }
        });
        scope.spawn_on(1, move || {
            if lock.try_write() {
                had.set(had.get() + 1);
                probe("wrote");
                unlock(lock);
            }
        });
        scope.finally(move || assert!(had.get() > 0, "a free lock is to be had"));
    })
}

/// RW-11: a writer that is about to be in, a reader that blocks it for a moment, and a second
/// reader that takes the first for one beside which it may come in, so that the writer must drain
/// again.
pub fn trying_beside() -> Program {
    Program::new(3, 3, |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        scope.spawn_on(0, move || {
            if lock.try_read() == Ok(()) {
                look(lock, data);
            }
        });
        scope.spawn_on(1, move || {
            let drained = words(lock).state.load(Relaxed) & 1 != 0;
            if drained && lock.try_read_recursive() == Ok(()) {
                probe("beside");
                look(lock, data);
            }
        });
        scope.spawn(move || {
            if lock.write_at_once() {
                probe("wrote");
                finish(lock, data);
            }
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-12: a reader forks while a writer waited for it, at either stage; in the child that writer
/// belongs to another process. Readers and writers go on.
pub fn abandoned(verifying: bool, upgrades: bool) -> Program {
    Program::new(3, 3, move |scope| {
        let (lock, data) = guarded::<Stays>(scope, true);
        read(lock);
        let (writer, modes, upgrading) = (1, 0b11 << 6, 1 << 5);
        let found = if verifying { writer | 0b10 << 6 | upgrading } else { writer | modes };
        let mark = 2 | u64::from(upgrades) << 15;
        words(lock).state.store(found | mark << 24, Relaxed);
        scope.spawn_on(0, move || look(lock, data));
        scope.spawn_on(1, move || {
            let had = lock.try_read();
            assert!(had.is_ok() || !upgrades, "no writer is there");
            if had.is_ok() {
                look(lock, data);
            }
        });
        scope.spawn_on(1, move || {
            if upgrades {
                // As for readers counted in one place: the upgradable reader is in for good.
                assert!(!lock.try_write());
            } else if !verifying {
                section(lock, data);
            } else if lock.try_write() {
                finish(lock, data);
            }
        });
        scope.finally(move || {
            if !upgrades {
                assert_free(lock);
            }
        });
    })
}
