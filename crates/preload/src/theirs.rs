//! The C library's own locks, and the recording of them.
//!
//! The C library's functions do all the work, and the program gets their results. The recorder
//! detects in one of two ways that a thread waits for a mutex:
//!
//! - Process-private, not robust, without a protocol: `pthread_mutex_trylock` comes first. A lock
//!   begins in the same way, and a refused attempt is a wait, as with our locks. No wait is missed.
//! - All others: the lock word is read first. An attempt may raise a priority or find a dead owner,
//!   and must not be made twice. If the lock is taken between this read and the call, the wait is
//!   missed; if it is released there, a short wait is counted.
//!
//! A recursive or error-checking mutex that the caller already owns, and an invalid deadline, go
//! directly to the C library, which returns without a wait. A spinlock is tried first.
//!
//! At the end of `pthread_cond_wait` the C library locks the mutex again itself. So a wait for a
//! condition includes the wait for its mutex, which counts as acquired without one.
//!
//! A hold is noted in the last sixteen bytes of the mutex, as for ours: the C library uses them in
//! robust mutexes only. No holds are recorded for mutexes of the second sort, as where our locks
//! are in use.

pub(crate) mod rwlock;

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicI32;

use antiphon_record::Kind;
use libc::{clockid_t, timespec};

use crate::abi::{self, Mutex, Type, Whose};
use crate::real::forward;
use crate::recorder::{self, Visit, events, holds};
use crate::{mode, thread};

/// One of the functions that take a lock, with its other arguments.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    Lock,
    Try,
    Timed(&'a timespec),
    Clocked(clockid_t, &'a timespec),
}

impl Call<'_> {
    fn make(self, mutex: &Mutex) -> c_int {
        let mutex = pointer(mutex);
        match self {
            Self::Lock => forward!(MUTEX_LOCK(mutex)),
            Self::Try => forward!(MUTEX_TRYLOCK(mutex)),
            Self::Timed(until) => forward!(MUTEX_TIMEDLOCK(mutex, until)),
            Self::Clocked(clock, until) => forward!(MUTEX_CLOCKLOCK(mutex, clock, until)),
        }
    }

    /// Returns whether the call waits for a lock that is not free.
    pub(crate) fn waits(self) -> bool {
        match self {
            Self::Lock => true,
            Self::Try => false,
            Self::Timed(until) => is_fraction(until),
            Self::Clocked(clock, until) => abi::clock(clock).is_some() && is_fraction(until),
        }
    }
}

/// Locks a mutex that the C library keeps by `call`, from `site`.
pub(crate) fn lock(mutex: &Mutex, call: Call<'_>, site: usize) -> c_int {
    if !mode::records() || asks(mutex) && owned(mutex) {
        return call.make(mutex);
    }
    match mutex.whose() {
        Whose::Ours(kind) => lock_plain(mutex, kind, call, site),
        Whose::Theirs => lock_foreign(mutex, call, site),
    }
}

/// Locks a mutex of a kind that is tried first.
fn lock_plain(mutex: &Mutex, kind: Type, call: Call<'_>, site: usize) -> c_int {
    let kind = kind.recorded();
    let first = if call.waits() { Call::Try } else { call }.make(mutex);
    if first == 0 {
        holds::alone_at_once(mutex.recorded(), kind, site, matches!(call, Call::Try));
    }
    if first != libc::EBUSY {
        return first;
    }
    if !call.waits() {
        recorder::refused(kind, mutex.recorded(), site);
        return first;
    }
    let Some(visit) = recorder::visit_noted(kind, mutex.recorded(), site) else {
        return call.make(mutex);
    };
    let wait = visit.wait(site);
    let code = call.make(mutex);
    wait.ends(code == 0);
    if code == 0 {
        visit.acquired_alone(mutex.recorded(), site);
    }
    code
}

/// Locks a mutex that the C library keeps in every mode.
fn lock_foreign(mutex: &Mutex, call: Call<'_>, site: usize) -> c_int {
    let waits = call.waits() && mutex.looks_held();
    if !waits && !mode::records_all() {
        return call.make(mutex);
    }
    let Some(visit) = recorder::visit(Kind::Foreign, pointer(mutex).addr(), site) else {
        return call.make(mutex);
    };
    let wait = waits.then(|| visit.wait(site));
    let code = call.make(mutex);
    let had = matches!(code, 0 | libc::EOWNERDEAD);
    if let Some(wait) = wait {
        wait.ends(had);
    }
    if had {
        visit.acquired_unheld();
    }
    code
}

/// Unlocks a mutex that the C library keeps.
pub(crate) fn unlock(mutex: &Mutex) -> c_int {
    if !mode::records_all() {
        return forward!(MUTEX_UNLOCK(pointer(mutex)));
    }
    let plain = matches!(mutex.whose(), Whose::Ours(_));
    if !plain {
        events::releases_at(pointer(mutex).addr());
    } else if mode::mode() == mode::OBSERVED && may_release(mutex) && mutex.is_last_level() {
        holds::releases(mutex.recorded());
    }
    forward!(MUTEX_UNLOCK(pointer(mutex)))
}

/// Returns whether the mutex is of a type that checks its owner.
fn asks(mutex: &Mutex) -> bool {
    matches!(mutex.bare_type(), Type::Recursive | Type::ErrorCheck)
}

fn owned(mutex: &Mutex) -> bool {
    mutex.is_owned_by(thread::exact_id())
}

/// Returns whether the C library will let the caller release the mutex, as far as is known.
fn may_release(mutex: &Mutex) -> bool {
    matches!(mutex.whose(), Whose::Ours(Type::Normal | Type::Adaptive)) || owned(mutex)
}

/// The C library's `pthread_spin_lock`, recorded.
pub(crate) fn lock_spin(spin: &AtomicI32, site: usize) -> c_int {
    let visit = if mode::records_all() { visit_spin(spin, site) } else { None };
    let Some(visit) = visit else { return forward!(SPIN_LOCK(spin.as_ptr())) };
    let mut code = forward!(SPIN_TRYLOCK(spin.as_ptr()));
    if code == libc::EBUSY {
        let wait = visit.wait(site);
        code = forward!(SPIN_LOCK(spin.as_ptr()));
        wait.ends(code == 0);
    }
    if code == 0 {
        visit.acquired_unheld();
    }
    code
}

/// The C library's `pthread_spin_trylock`, recorded.
pub(crate) fn try_spin(spin: &AtomicI32, site: usize) -> c_int {
    let code = forward!(SPIN_TRYLOCK(spin.as_ptr()));
    let visit = if mode::records_all() { visit_spin(spin, site) } else { None };
    match (code, visit) {
        (0, Some(visit)) => visit.acquired_unheld(),
        (libc::EBUSY, Some(visit)) => visit.refused(),
        _ => {}
    }
    code
}

fn visit_spin(spin: &AtomicI32, site: usize) -> Option<Visit> {
    recorder::visit(Kind::Spin, spin.as_ptr().addr(), site)
}

/// A wait for a condition variable of the C library. `shim.c` declares the same size, as words.
pub(crate) struct Observed {
    mutex: *mut Mutex,
    site: usize,
    /// Whether the mutex is released during the wait.
    releases: bool,
    wait: recorder::Wait,
}

const _: () = assert!(size_of::<Observed>() <= 10 * 8 && align_of::<Observed>() <= 8);

/// Records that a wait begins. Returns 0 if the wait is not recorded or will not take place; then
/// nothing has changed.
///
/// # Safety
///
/// `room` is memory for an `Observed` that no other thread uses; the other arguments are those that
/// the program gave to `pthread_cond_wait` or one of its variants. The C library's function has not
/// been called yet.
// SAFETY: `shim.c` declares this name and signature, and no other object uses this prefix.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_observed_begin(
    room: *mut MaybeUninit<Observed>,
    cond: *const c_void,
    mutex: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    site: usize,
) -> c_int {
    if mode::mode() != mode::OBSERVED {
        return 0;
    }
    // SAFETY: the program's mutex, and null or its deadline.
    let (object, until) = unsafe { (&*mutex, until.as_ref()) };
    let sound = abi::clock(clock).is_some() && until.is_none_or(is_fraction);
    if !sound || !may_release(object) {
        return 0;
    }
    let Some(visit) = recorder::visit(Kind::Condition, cond.addr(), site) else { return 0 };
    let releases = object.is_last_level();
    if matches!(object.whose(), Whose::Theirs) {
        events::releases_at(mutex.addr());
    } else if releases {
        holds::releases(object.recorded());
    }
    // SAFETY: `shim.c` passes memory for it.
    unsafe { &mut *room }.write(Observed { mutex, site, releases, wait: visit.wait(site) });
    1
}

/// Records the end of the wait, with the C library's code; -1 if the thread is cancelled, and owns
/// the mutex again for its cleanups.
///
/// # Safety
///
/// `antiphon_observed_begin` has written `observed`, and no other thread uses it; the mutex still
/// exists.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_observed_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_observed_end(observed: *const Observed, code: c_int) {
    const CANCELLED: c_int = -1;
    // SAFETY: the caller's promise.
    let observed = unsafe { &*observed };
    observed.wait.ends(code == 0);
    let has_mutex = matches!(code, 0 | CANCELLED | libc::ETIMEDOUT | libc::EOWNERDEAD);
    if !has_mutex || !observed.releases {
        return;
    }
    // SAFETY: the program's mutex, which this thread owns.
    let mutex = unsafe { &*observed.mutex };
    if let Whose::Ours(kind) = mutex.whose() {
        holds::alone_at_once(mutex.recorded(), kind.recorded(), observed.site, false);
    } else if let Some(visit) = recorder::visit(Kind::Foreign, observed.mutex.addr(), observed.site)
    {
        visit.acquired_unheld();
    }
}

/// Returns whether the nanoseconds are less than a second, as the C library requires.
fn is_fraction(until: &timespec) -> bool {
    (0..1_000_000_000).contains(&until.tv_nsec)
}

fn pointer(mutex: &Mutex) -> *mut libc::pthread_mutex_t {
    core::ptr::from_ref(mutex).cast_mut().cast()
}
