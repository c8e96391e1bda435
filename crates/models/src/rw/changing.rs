//! Models of downgrades and upgrades: no other writer comes in between.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, probe};
use antiphon_platform::{Atomic, Atomics};

use super::lock::{Lock, assert_free, look, others, read, unlock_read, visit};
use super::preferred::words;
use crate::forms::Sleepy;
use crate::program::{Program, finish, guarded, section, soon, unlock};

/// One thread writes, becomes a reader and still finds what it has written; beside it, others read
/// and write. Reaches `together` if another reader is in with the former writer.
pub fn downgrading(readers: u32, writers: u32) -> Program {
    let threads = readers + writers + 1;
    Program::new(threads, threads + 1, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        let left = scope.share(<Check as Atomics>::U8::ZERO);
        scope.spawn(move || {
            lock.write();
            let mine = data.get() + 1;
            data.set(mine);
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            // Relaxed: a thread ordered after the unlock sees it.
            left.store(1, Relaxed);
            unlock_read(lock);
        });
        scope.spawn_each(0..readers, move |_| {
            read(lock);
            if data.get() == 1 && left.load(Relaxed) == 0 && writers == 0 {
                probe("together");
            }
            unlock_read(lock);
        });
        scope.spawn_each(0..writers, move |_| section(lock, data));
        scope.finally(move || {
            assert_eq!(data.get(), writers + 1);
            assert_free(lock);
        });
    })
}

/// A writer that becomes a reader and waits for another reader to come in: that reader is let in,
/// asleep or not.
pub fn downgrading_for_a_reader() -> Program {
    Program::new(2, 3, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let came = scope.share(<Check as Atomics>::U8::ZERO);
        scope.spawn(move || {
            lock.write();
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            came.wait_while(Relaxed, |came| came == 0);
            unlock_read(lock);
        });
        scope.spawn(move || {
            read(lock);
            came.store(1, Relaxed);
            unlock_read(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// One thread must give up its upgrade, and waits for a reader to come in: that reader is let in,
/// although it may have been kept out meanwhile.
pub fn upgrading_in_vain() -> Program {
    Program::new(2, 4, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let came = scope.share(<Check as Atomics>::U8::ZERO);
        scope.spawn(move || {
            lock.upgradable();
            assert_eq!(lock.try_read(), Ok(()), "no writer is in or waits");
            // SAFETY: acquired above.
            assert!(!unsafe { lock.upgrade_until(soon()) }, "the writer beside a reader");
            came.wait_while(Relaxed, |came| came == 0);
            unlock_read(lock);
            // SAFETY: acquired above.
            unsafe { lock.unlock_upgradable() };
        });
        scope.spawn(move || {
            read(lock);
            came.store(1, Relaxed);
            unlock_read(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// A writer waits behind a reader, which comes in beside the former writer: whichever of these two
/// readers leaves last wakes the writer.
pub fn downgrading_in_line() -> Program {
    Program::new(3, 4, |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        let words = words(lock);
        lock.write();
        scope.spawn(move || {
            // The writer has taken the second existing node.
            words.tail.wait_while(Relaxed, |tail| tail as u16 != 2);
            // SAFETY: acquired above.
            unsafe { lock.downgrade() };
            look(lock, data);
        });
        scope.spawn(move || visit(lock, data));
        scope.spawn(move || {
            words.tail.wait_while(Relaxed, |tail| tail == 0);
            lock.write();
            data.set(1);
            unlock(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}

/// `upgraders` threads read, and then upgrade and write; beside them, others read and write.
pub fn upgrading(upgraders: u32, readers: u32, writers: u32) -> Program {
    let threads = upgraders + readers + writers;
    Program::new(threads, threads + upgraders, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        scope.spawn_each(0..upgraders, move |_| {
            lock.upgradable();
            let seen = data.get();
            // SAFETY: acquired above.
            unsafe { lock.upgrade() };
            assert_eq!(data.get(), seen, "a writer came in between");
            data.set(seen + 1);
            unlock(lock);
        });
        others(scope, lock, data, readers, writers);
        scope.finally(move || {
            assert_eq!(data.get(), upgraders + writers);
            assert_free(lock);
        });
    })
}

/// One thread may give up its upgrade, and then is still a reader. Must reach `gave up`.
pub fn upgrading_in_time(readers: u32, writers: u32) -> Program {
    let threads = readers + writers + 1;
    Program::new(threads, threads + 1, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        scope.spawn(move || {
            lock.upgradable();
            // SAFETY: acquired above.
            if unsafe { lock.upgrade_until(soon()) } {
                finish(lock, data);
            } else {
                probe("gave up");
                let _ = data.get();
                // SAFETY: acquired above.
                unsafe { lock.unlock_upgradable() };
            }
        });
        others(scope, lock, data, readers, writers);
        scope.finally(move || assert_free(lock));
    })
}

/// A writer becomes an upgradable reader, the writer again if no other reader is in, and then a
/// plain reader, beside other readers and one more upgradable reader.
pub fn downgrading_again(readers: u32) -> Program {
    Program::new(readers + 1, readers + 4, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        scope.spawn(move || {
            lock.write();
            data.set(1);
            // SAFETY: the caller holds the lock in the mode that each call requires, here and
            // below.
            unsafe { lock.downgrade_to_upgradable() };
            assert_eq!(data.get(), 1);
            // SAFETY: held upgradable.
            if unsafe { lock.try_upgrade() } {
                data.set(2);
                // SAFETY: held for writing.
                unsafe { lock.downgrade_to_upgradable() };
            }
            // SAFETY: held upgradable.
            unsafe { lock.downgrade_upgradable() };
            look(lock, data);
        });
        scope.spawn_each(0..readers, move |_| {
            lock.upgradable();
            let _ = data.get();
            // SAFETY: acquired above.
            unsafe { lock.unlock_upgradable() };
        });
        scope.finally(move || assert_free(lock));
    })
}

/// RW-5 beside a thread that upgrades.
pub fn upgrading_recursively() -> Program {
    Program::new(2, 4, |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        scope.spawn(move || {
            lock.upgradable();
            // SAFETY: acquired above.
            unsafe { lock.upgrade() };
            data.set(1);
            unlock(lock);
        });
        scope.spawn(move || {
            read(lock);
            assert_eq!(lock.read_recursive(), Ok(()));
            look(lock, data);
            unlock_read(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}
