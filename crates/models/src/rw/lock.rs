//! The lock type of these models, and the operations that all of them share.

use antiphon_check::{Check, Data, Scope};
use antiphon_sync::lock::{RwForm, ShflRwLock};
use antiphon_sync::policy::{None, Policy};

use crate::forms::Sleepy;

pub type Lock<F = Sleepy, Q = None> = ShflRwLock<Check, Q, F>;

pub fn read<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    assert_eq!(lock.read(), Ok(()));
}

pub fn unlock_read<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    // SAFETY: each caller has acquired the lock for reading.
    unsafe { lock.unlock_read() }
}

pub fn unlock_write<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    // SAFETY: each caller has acquired the lock for writing.
    unsafe { lock.unlock_write() }
}

/// Asserts that at the end no thread is in, and nothing is reserved.
pub fn assert_free<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    assert!(lock.write_uncontended(), "free at the end");
}

/// Plain readers and writers, one round each.
pub fn others<'scope>(
    scope: &'scope Scope<'scope, '_>,
    lock: &'scope Lock,
    data: &'scope Data<u32>,
    readers: u32,
    writers: u32,
) {
    for _ in 0..readers {
        scope.spawn(move || {
            read(lock);
            let _ = data.get();
            unlock_read(lock);
        });
    }
    for _ in 0..writers {
        scope.spawn(move || {
            lock.write();
            data.set(data.get() + 1);
            unlock_write(lock);
        });
    }
}
