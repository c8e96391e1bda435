//! Models of tries and of waiters that give up.

use antiphon_check::{Data, probe};
use antiphon_sync::lock::Refused;

use super::lock::{Lock, assert_free, others, unlock_read, unlock_write};
use crate::forms::Sleepy;
use crate::program::{Program, soon};

/// Readers and writers that wait, beside others that may give up; no thread hangs, and at the end
/// the lock is free and not reserved. Must reach `gave up`.
pub fn giving_up(readers: u32, writers: u32, timed_readers: u32, timed_writers: u32) -> Program {
    let threads = readers + writers + timed_readers + timed_writers;
    Program::new(threads, threads, move |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        for reader in 0..readers + timed_readers {
            scope.spawn(move || {
                let had = if reader < readers { lock.read() } else { lock.read_until(soon()) };
                match had {
                    Ok(()) => {
                        let _ = data.get();
                        unlock_read(lock);
                    }
                    Err(_) => probe("gave up"),
                }
            });
        }
        for writer in 0..writers + timed_writers {
            scope.spawn(move || {
                if writer < writers {
                    lock.write();
                } else if !lock.write_until(soon()) {
                    return probe("gave up");
                }
                data.set(data.get() + 1);
                unlock_write(lock);
            });
        }
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
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        others(scope, lock, data, readers, writers);
        scope.spawn(move || match lock.read_uncontended() {
            Ok(()) => {
                let _ = data.get();
                unlock_read(lock);
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
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        others(scope, lock, data, readers, writers);
        scope.spawn(move || {
            match lock.try_read() {
                Ok(()) => {
                    let _ = data.get();
                    unlock_read(lock);
                }
                Err(refused) => {
                    assert_eq!(refused, Refused::Busy);
                    probe("busy");
                }
            }
            if lock.try_write() {
                data.set(data.get() + 1);
                unlock_write(lock);
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
