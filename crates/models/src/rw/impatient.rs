//! Models of tries and of waiters that give up.

use antiphon_check::probe;
use antiphon_sync::lock::Refused;

use super::lock::{Lock, assert_free, look, others, unlock_read};
use crate::forms::Sleepy;
use crate::program::{Program, finish, guarded, soon};

/// Readers and writers that wait, beside others that may give up; no thread hangs, and at the end
/// the lock is free and not reserved. Must reach `gave up`.
pub fn giving_up(readers: u32, writers: u32, timed_readers: u32, timed_writers: u32) -> Program {
    let threads = readers + writers + timed_readers + timed_writers;
    Program::new(threads, threads, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        scope.spawn_each(0..readers + timed_readers, move |reader| {
            let had = if reader < readers { lock.read() } else { lock.read_until(soon()) };
            match had {
                Ok(()) => {
                    look(lock, data);
                }
                Err(_) => probe("gave up"),
            }
        });
        scope.spawn_each(0..writers + timed_writers, move |writer| {
            if writer < writers {
                lock.write();
            } else if !lock.write_until(soon()) {
                return probe("gave up");
            }
            finish(lock, data);
        });
        scope.finally(move || {
            assert!(data.get() >= writers);
            assert_free(lock);
        });
    })
}

/// One thread asks for the lock as a reader that would wait, but leaves instead of waiting: its
/// count, which it has taken back, has hidden no wake from the others. Must reach `went`.
pub fn inquiring(readers: u32, writers: u32) -> Program {
    let threads = readers + writers + 1;
    Program::new(threads, threads, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        others(scope, lock, data, readers, writers);
        scope.spawn(move || match lock.read_uncontended() {
            Ok(()) => {
                look(lock, data);
            }
            Err(refused) => {
                assert_eq!(refused, Refused::Busy);
                probe("went");
            }
        });
        scope.finally(move || {
            assert_eq!(lock.read_uncontended(), Ok(()), "a free lock can't be had");
            unlock_read(lock);
            assert_free(lock);
        });
    })
}

/// Tries are exact: a thread that is let in excludes those that it should, and a try succeeds on
/// the lock that is free at the end. Must reach `busy`.
pub fn tries(readers: u32, writers: u32) -> Program {
    let threads = readers + writers + 1;
    Program::new(threads, threads + 1, move |scope| {
        let (lock, data) = guarded::<Lock<Sleepy>>(scope);
        others(scope, lock, data, readers, writers);
        scope.spawn(move || {
            match lock.try_read() {
                Ok(()) => {
                    look(lock, data);
                }
                Err(refused) => {
                    assert_eq!(refused, Refused::Busy);
                    probe("busy");
                }
            }
            if lock.try_write() {
                finish(lock, data);
            }
        });
        scope.finally(move || {
            assert_eq!(lock.try_read(), Ok(()), "a free lock can't be tried");
            assert!(!lock.try_write(), "tried to write with a reader in");
            unlock_read(lock);
            assert!(lock.try_write(), "a free lock can't be tried");
            assert_eq!(lock.try_read(), Err(Refused::Busy));
        });
    })
}
