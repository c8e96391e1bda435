//! The C library's readers-writer locks, and the recording of them.
//!
//! An attempt comes first, also for locks that processes share: a lock begins with it, and it
//! affects no priority and no dead owner. A refused attempt is a wait. If the caller is already the
//! writer, or the deadline is invalid, the call goes directly to the C library, which returns at
//! once.
//!
//! No holds are recorded for a lock that processes share, because its bytes don't belong to this
//! process alone.

use core::ffi::c_int;

use crate::abi::rwlock::{RwLock, Way};
use crate::real::forward;
use crate::recorder::{self, events, holds};
use crate::theirs::Call;
use crate::{mode, rwlock, thread};

/// Makes the call to the C library.
fn make(lock: &RwLock, way: Way, call: Call<'_>) -> c_int {
    let lock = pointer(lock);
    match (way, call) {
        (Way::Read, Call::Lock) => forward!(RWLOCK_RDLOCK(lock)),
        (Way::Read, Call::Try) => forward!(RWLOCK_TRYRDLOCK(lock)),
        (Way::Read, Call::Timed(until)) => forward!(RWLOCK_TIMEDRDLOCK(lock, until)),
        (Way::Read, Call::Clocked(clock, until)) => {
            forward!(RWLOCK_CLOCKRDLOCK(lock, clock, until))
        }
        (Way::Write, Call::Lock) => forward!(RWLOCK_WRLOCK(lock)),
        (Way::Write, Call::Try) => forward!(RWLOCK_TRYWRLOCK(lock)),
        (Way::Write, Call::Timed(until)) => forward!(RWLOCK_TIMEDWRLOCK(lock, until)),
        (Way::Write, Call::Clocked(clock, until)) => {
            forward!(RWLOCK_CLOCKWRLOCK(lock, clock, until))
        }
    }
}

/// Takes a lock that the C library keeps by `call`, from `site`.
pub(crate) fn lock(lock: &RwLock, way: Way, call: Call<'_>, site: usize) -> c_int {
    // Before any access to the lock, which a tool that checks all accesses (`aside`) would see.
    if !mode::records() || !recorder::is_on() {
        return make(lock, way, call);
    }
    let tried = matches!(call, Call::Try);
    let waits = call.waits() && !lock.is_written_by(thread::exact_id());
    if !(tried || waits) {
        return make(lock, way, call);
    }
    let first = make(lock, way, Call::Try);
    if first == 0 && mode::records_all() {
        had_at_once(lock, way, site, tried);
    }
    if first != libc::EBUSY {
        return first;
    }
    if tried {
        recorder::refused(way.recorded(), lock.recorded(), site);
        return first;
    }
    let Some(visit) = recorder::visit_noted(way.recorded(), lock.recorded(), site) else {
        return make(lock, way, call);
    };
    let wait = visit.wait(site);
    let code = make(lock, way, call);
    wait.ends(code == 0);
    match code {
        0 if lock.is_shared() => visit.acquired_unheld(),
        0 => rwlock::acquired(lock, way, visit, site),
        _ => {}
    }
    code
}

fn had_at_once(lock: &RwLock, way: Way, site: usize, tried: bool) {
    if !lock.is_shared() {
        rwlock::acquired_at_once(lock, way, site, tried);
    } else if let Some(visit) = recorder::visit(way.recorded(), lock.recorded().address, site) {
        visit.acquired_unheld();
    }
}

/// Unlocks a lock that the C library keeps.
pub(crate) fn unlock(lock: &RwLock) -> c_int {
    if !mode::records_all() {
        return forward!(RWLOCK_UNLOCK(pointer(lock)));
    }
    if lock.is_shared() {
        events::releases_at(lock.recorded().address);
    } else if mode::mode() == mode::OBSERVED {
        let recorded = lock.recorded();
        // The C library decides by the same word.
        if lock.is_written_by(thread::exact_id()) {
            holds::releases(recorded);
        } else {
            holds::releases_shared(recorded.address);
        }
    }
    forward!(RWLOCK_UNLOCK(pointer(lock)))
}

fn pointer(lock: &RwLock) -> *mut libc::pthread_rwlock_t {
    core::ptr::from_ref(lock).cast_mut().cast()
}
