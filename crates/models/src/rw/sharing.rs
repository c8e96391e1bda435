//! Models of sharing: readers share the lock, writers have it alone, and its last holder may free
//! it.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, Atomics as _};
use antiphon_sync::lock::RwForm;
use antiphon_sync::policy::{None, Policy};

use super::lock::{Lock, assert_free, read, unlock_read, unlock_write};
use crate::forms::Sleepy;
use crate::program::Program;
use crate::watched::{Watched, watch};

/// `readers` threads read plain data and `writers` threads write it, `rounds` times each. A lost
/// wake is a deadlock, a writer that is not alone a data race. Reaches `together` if two readers
/// are in at the same time.
pub fn sharing<F: RwForm>(readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        share::<F, None>(scope, readers, writers, rounds);
    })
}

/// [`sharing`] with a watched policy that groups readers with readers and writers with writers.
pub fn sorting_kinds(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        watch(scope).begun.store(1, Relaxed);
        share::<Sleepy, Watched<true>>(scope, readers, writers, 1);
    })
}

fn share<'scope, F: RwForm, Q: Policy>(
    scope: &'scope Scope<'scope, '_>,
    readers: u32,
    writers: u32,
    rounds: u32,
) {
    let lock = scope.share(Lock::<F, Q>::NEW);
    let data = scope.share(Data::new(0));
    let inside = scope.share(Cell::new(0));
    for _ in 0..readers {
        scope.spawn(move || {
            for _ in 0..rounds {
                read(lock);
                look_around(inside, data);
                unlock_read(lock);
            }
        });
    }
    for _ in 0..writers {
        scope.spawn(move || {
            for _ in 0..rounds {
                lock.write();
                data.set(data.get() + 1);
                unlock_write(lock);
            }
        });
    }
    scope.finally(move || {
        assert_eq!(data.get(), writers * rounds);
        assert_free(lock);
    });
}

/// The work of a reader that is in. `inside` is not a word of the model: threads switch only at
/// visible operations, such as the fence.
pub fn look_around(inside: &Cell<u32>, data: &Data<u32>) {
    inside.set(inside.get() + 1);
    if inside.get() > 1 {
        probe("together");
    }
    let _ = data.get();
    Check::fence(std::sync::atomic::Ordering::Acquire);
    inside.set(inside.get() - 1);
}

/// RW-3 of a reader: the writer that comes after the last reader may free the lock while that
/// reader is still in `unlock_read`. Must reach `retired`.
pub fn leaving() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let data = scope.share(Data::new(()));
        let read_once = scope.share(Cell::new(false));
        scope.spawn(move || {
            read(lock);
            data.get();
            read_once.set(true);
            unlock_read(lock);
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
