//! `lock_api::ReentrantMutex`, and the identity that tells threads apart.

use std::cell::Cell;

use antiphon::{ReentrantMutex, raw::ThreadIdentity};
use lock_api::{GetThreadId, RawMutex, ReentrantMutexGuard};

use super::{SHORT, elsewhere};

pub fn its_owner_comes_in_again_and_nobody_else<R, G>()
where
    R: RawMutex + Send + Sync,
    G: GetThreadId + Send + Sync,
{
    let mutex = lock_api::ReentrantMutex::<R, G, _>::new(Cell::new(0));
    let first = mutex.lock();
    let second = mutex.try_lock().expect("we own it");
    first.set(1);
    assert_eq!(second.get(), 1);
    drop(first);
    assert!(mutex.is_owned_by_current_thread());
    elsewhere(|| assert!(!mutex.is_owned_by_current_thread() && mutex.try_lock().is_none()));
    let part = ReentrantMutexGuard::map(second, |cell| cell);
    assert!(elsewhere(|| mutex.try_lock().is_none()));
    drop(part);
    elsewhere(|| mutex.try_lock().expect("unlocked as often as locked").set(2));
    assert_eq!(mutex.into_inner().get(), 2);
}

#[test]
fn a_timed_attempt_ends() {
    let mutex = ReentrantMutex::new(());
    let _first = mutex.lock();
    assert!(mutex.try_lock_for(SHORT).is_some());
    assert!(elsewhere(|| mutex.try_lock_for(SHORT).is_none()));
}

#[test]
fn a_thread_stays_the_same_and_differs_from_others() {
    let identity = ThreadIdentity::INIT;
    let here = identity.nonzero_thread_id();
    assert_ne!(here, elsewhere(|| identity.nonzero_thread_id()));
    assert_eq!(here, identity.nonzero_thread_id());
}

/// The thread that survives a fork has another kernel id, but is the same owner.
#[test]
fn who_owns_it_owns_it_in_a_forked_child() {
    let mutex = ReentrantMutex::new(());
    let guard = mutex.lock();
    // SAFETY: the child calls nothing but the mutex, which may be used there, and `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let again = mutex.try_lock().is_some();
            drop(guard);
            let free = !mutex.is_locked();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(if again && free { 0 } else { 1 }) }
        }
        child => {
            let mut status = -1;
            // SAFETY: our own child, and room for its status.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
}
