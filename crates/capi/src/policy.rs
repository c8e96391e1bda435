//! The order in which locks serve their waiters.

use core::ffi::{CStr, c_char, c_int};

use antiphon_linux::Linux;
use antiphon_sync::policy::{self, Chosen};
use libc::EINVAL;

use crate::export::exports;
use crate::mutex::Mutex;
use crate::rw::RwLock;
use crate::spin::Spin;

/// Hands the policy of that name to `set`.
///
/// # Safety
///
/// `name` is a string.
unsafe fn named(name: *const c_char, set: impl FnOnce(Chosen)) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str();
    match name.map(Chosen::named) {
        Ok(Ok(policy)) => {
            set(policy);
            0
        }
        Ok(Err(_)) | Err(_) => EINVAL,
    }
}

exports! {
    /// Sets the policy that sorts the waiters of a mutex.
    fn antiphon_mutex_set_policy(mutex: &Mutex, policy: *const c_char) -> c_int {
        // SAFETY: the caller passes a string.
        unsafe { named(policy, |policy| mutex.0.set_policy(policy)) }
    }

    /// Sets the policy that sorts the waiters of a readers-writer lock.
    fn antiphon_rwlock_set_policy(lock: &RwLock, policy: *const c_char) -> c_int {
        // SAFETY: the caller passes a string.
        unsafe { named(policy, |policy| lock.0.set_policy(policy)) }
    }

    /// Sets the policy that sorts the waiters of a spinlock.
    fn antiphon_spin_set_policy(spin: &Spin, policy: *const c_char) -> c_int {
        // SAFETY: the caller passes a string.
        unsafe { named(policy, |policy| spin.0.set_policy(policy)) }
    }

    /// Sets the rank of the calling thread, which is its urgency.
    fn antiphon_set_priority(rank: c_int) -> c_int {
        let rank = match rank {
            -1 => None,
            rank => match u8::try_from(rank) {
                Ok(rank) => Some(rank),
                Err(_) => return EINVAL,
            },
        };
        policy::set_priority::<Linux>(rank);
        0
    }
}
