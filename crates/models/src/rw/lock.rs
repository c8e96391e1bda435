//! The lock type of these models, and the operations that all of them share.

use antiphon_check::{Check, Data, Scope};
use antiphon_sync::lock::{RwForm, ShflRwLock};
use antiphon_sync::policy::{None, Policy};

use crate::forms::Sleepy;
use crate::program::section;

pub type Lock<F = Sleepy, Q = None> = ShflRwLock<Check, Q, F>;

pub fn read<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    assert_eq!(lock.read(), Ok(()));
}

pub fn unlock_read<Q: Policy, F: RwForm>(lock: &Lock<F, Q>) {
    // SAFETY: each caller has acquired the lock for reading.
    unsafe { lock.unlock_read() }
}

/// Reads the data that the lock guards, as a reader.
pub fn visit<Q: Policy, F: RwForm>(lock: &Lock<F, Q>, data: &Data<u32>) {
    read(lock);
    look(lock, data);
}

/// The rest of [`visit`], for a caller that is in.
pub fn look<Q: Policy, F: RwForm>(lock: &Lock<F, Q>, data: &Data<u32>) {
    let _ = data.get();
    unlock_read(lock);
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
    scope.spawn_each(0..readers, move |_| visit(lock, data));
    scope.spawn_each(0..writers, move |_| section(lock, data));
}
