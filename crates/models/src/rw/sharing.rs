//! Models of sharing: readers share the lock, writers have it alone, and its last holder may free
//! it.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, Atomics as _};
use antiphon_sync::lock::RwForm;
use antiphon_sync::policy::{None, Policy};

use super::lock::{Lock, assert_free, read, unlock_read};
use crate::forms::Sleepy;
use crate::program::{Program, guarded, left_for_good, section};
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
    let (lock, data) = guarded::<Lock<F, Q>>(scope);
    let inside = scope.share(Cell::new(0));
    scope.spawn_each(0..readers, move |_| {
        for _ in 0..rounds {
            read(lock);
            look_around(inside, data);
            unlock_read(lock);
        }
    });
    scope.spawn_each(0..writers, move |_| (0..rounds).for_each(|_| section(lock, data)));
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
    left_for_good::<Lock>(
        |scope| scope.share(Lock::NEW),
        |lock, inside| {
            read(lock);
            inside();
            unlock_read(lock);
        },
    )
}
