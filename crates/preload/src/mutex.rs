//! `pthread_mutex_t`: the functions of mutexes. The plain kinds are our lock, the recursive and
//! error-checking kinds our lock with owner and count; the C library keeps the others.
//!
//! The entry functions test the kind and whether the thread is [`thread::ready`]; for a normal
//! mutex, one exchange and a store of the owner follow. Everything else is in separate functions,
//! out of line. `site` is the return address of the caller ([`crate::entry`]), which recordings and
//! policies by call site use.
//!
//! Return values of each kind, in the C library's order of checks:
//!
//! | kind | lock by the owner | `trylock` by the owner | unlock by another |
//! |---|---|---|---|
//! | normal, adaptive | waits for ever, or for its deadline | `EBUSY` | releases |
//! | recursive | counts; `EAGAIN` at 2³² − 1 | as lock | `EPERM` |
//! | error-checking | `EDEADLK` | `EBUSY` | `EPERM` |
//!
//! A deadline is checked only when the lock would block: an invalid one is then `EINVAL`.
//!
//! Where critical sections are told, no thread is ready: so each acquisition tells one, and its
//! release ends it (SECTION-6 in `antiphon_sync`), and where none is told, this costs nothing. A
//! recursive mutex tells its outermost level. A mutex that the C library keeps tells nothing.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline};
use antiphon_sync::lock::{Moved, ShflMutex};
use libc::{clockid_t, timespec};

use crate::abi::{self, Mutex, Type, Whose};
use crate::clocks::{self, By};
use crate::mode;
use crate::real::forward;
use crate::recorder::{self, Visit};
use crate::sites;
use crate::theirs::{self, Call};
use crate::thread;

/// How long a caller will wait.
#[derive(Clone, Copy)]
enum Patience<'a> {
    None,
    Endless,
    Until(Clock, &'a timespec, By),
}

/// The implementation that keeps the mutex in this process: ours or the C library's.
#[inline]
fn kept(mutex: &Mutex) -> Whose {
    if mode::theirs() { Whose::Theirs } else { mutex.whose() }
}

/// `pthread_mutex_lock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
#[inline]
pub(crate) unsafe extern "C" fn lock(mutex: *mut Mutex, site: usize) -> c_int {
    // SAFETY: the caller of `pthread_mutex_lock` gave us a mutex.
    let mutex = unsafe { &*mutex };
    let me = thread::ready();
    if me != 0 && mutex.kind() == 0 {
        if mutex.take_free() {
            mutex.owner.store(me, Relaxed);
            return 0;
        }
        return lock_taken(mutex, site);
    }
    lock_slowly(mutex, site)
}

/// Locks a normal mutex that was just found taken: another attempt would take the cache line away
/// from its owner. The thread is ready, so the locks are ours.
#[inline(never)]
fn lock_taken(mutex: &Mutex, site: usize) -> c_int {
    if recorder::is_on() || sites::is_on() {
        return take_taken(mutex, Type::Normal, Patience::Endless, site);
    }
    mutex.lock.lock_taken();
    mutex.owner.store(thread::id(), Relaxed);
    0
}

/// Locks a mutex that is not of the normal kind, or for a thread that is not ready.
#[inline(never)]
fn lock_slowly(mutex: &Mutex, site: usize) -> c_int {
    if mode::mode() == mode::OURS
        && let Whose::Ours(kind) = mutex.whose()
    {
        thread::make_ready();
        if !owned(mutex, kind) {
            if !mutex.take_free() {
                return take_taken(mutex, kind, Patience::Endless, site);
            }
            own(mutex, kind);
            return 0;
        }
    }
    lock_otherwise(mutex, site)
}

#[cold]
#[inline(never)]
fn lock_otherwise(mutex: &Mutex, site: usize) -> c_int {
    match kept(mutex) {
        Whose::Ours(kind) => take(mutex, kind, Patience::Endless, site),
        Whose::Theirs => theirs::lock(mutex, Call::Lock, site),
    }
}

/// `pthread_mutex_trylock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn trylock(mutex: *mut Mutex, site: usize) -> c_int {
    // SAFETY: as in `lock`.
    let mutex = unsafe { &*mutex };
    let me = thread::ready();
    if me != 0 && mutex.kind() == 0 {
        if !mutex.lock.try_lock() {
            return refused(mutex, Type::Normal, site);
        }
        mutex.owner.store(me, Relaxed);
        return 0;
    }
    trylock_slowly(mutex, site)
}

#[cold]
#[inline(never)]
fn trylock_slowly(mutex: &Mutex, site: usize) -> c_int {
    match kept(mutex) {
        Whose::Ours(kind) => take(mutex, kind, Patience::None, site),
        Whose::Theirs => theirs::lock(mutex, Call::Try, site),
    }
}

/// `pthread_mutex_timedlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn timedlock(
    mutex: *mut Mutex,
    until: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: as in `lock`, and a deadline.
    let (mutex, until) = unsafe { (&*mutex, &*until) };
    match kept(mutex) {
        Whose::Ours(kind) => {
            let patience = Patience::Until(Clock::Realtime, until, By::MutexTimed);
            take(mutex, kind, patience, site)
        }
        Whose::Theirs => theirs::lock(mutex, Call::Timed(until), site),
    }
}

/// `pthread_mutex_clocklock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn clocklock(
    mutex: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: as in `timedlock`.
    let (mutex, until) = unsafe { (&*mutex, &*until) };
    match (kept(mutex), abi::clock(clock)) {
        (Whose::Theirs, _) => theirs::lock(mutex, Call::Clocked(clock, until), site),
        (_, None) => libc::EINVAL,
        (Whose::Ours(kind), Some(clock)) => {
            take(mutex, kind, Patience::Until(clock, until, By::MutexClock), site)
        }
    }
}

/// `pthread_mutex_unlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
#[inline]
pub(crate) unsafe extern "C" fn unlock(mutex: *mut Mutex) -> c_int {
    // SAFETY: as in `lock`. The lock accesses no memory after its releasing store, so the memory
    // may be gone when it returns.
    let mutex = unsafe { &*mutex };
    if thread::ready() != 0 && mutex.kind() == 0 {
        mutex.owner.store(0, Relaxed);
        // SAFETY: a thread that unlocks a mutex owns it; the C library doesn't check this either.
        return unsafe { mutex.release() };
    }
    unlock_slowly(mutex)
}

#[inline(never)]
fn unlock_slowly(mutex: &Mutex) -> c_int {
    let Whose::Ours(kind) = kept(mutex) else { return unlock_theirs(mutex) };
    if matches!(kind, Type::Recursive | Type::ErrorCheck) {
        if !owned(mutex, kind) {
            return libc::EPERM;
        }
        let count = mutex.count.load(Relaxed);
        if kind == Type::Recursive && count > 1 {
            mutex.count.store(count - 1, Relaxed);
            return 0;
        }
        mutex.count.store(0, Relaxed);
    }
    recorder::holds::releases(mutex.recorded());
    mutex.owner.store(0, Relaxed);
    // SAFETY: as in `unlock`.
    unsafe { mutex.release() }
}

#[cold]
fn unlock_theirs(mutex: &Mutex) -> c_int {
    theirs::unlock(mutex)
}

/// `pthread_mutex_init`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn init(
    mutex: *mut Mutex,
    attributes: *const c_void,
    site: usize,
) -> c_int {
    if attributes.is_null() && !mode::theirs() {
        // SAFETY: the caller of `pthread_mutex_init` gave us memory for a mutex.
        unsafe { mutex.write(Mutex::new()) };
    } else {
        // The C library interprets its attributes, and zeroes all fields but the kind.
        let code = forward!(MUTEX_INIT(mutex.cast(), attributes));
        if code != 0 {
            return code;
        }
    }
    // SAFETY: initialised above.
    let mutex = unsafe { &*mutex };
    if recorder::is_on() && matches!(mutex.whose(), Whose::Ours(_)) {
        mutex.recorded().note.made(site);
    }
    if sites::is_on() && matches!(kept(mutex), Whose::Ours(_)) {
        sites::settle(&mutex.lock, site);
    }
    0
}

/// `pthread_mutex_destroy`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn destroy(mutex: *mut Mutex) -> c_int {
    // SAFETY: as in `lock`.
    let mutex = unsafe { &*mutex };
    if kept(mutex) == Whose::Theirs {
        return forward!(MUTEX_DESTROY(pointer(mutex)));
    }
    if mutex.lock.is_locked() || mutex.is_used() {
        return libc::EBUSY;
    }
    mutex.bury();
    0
}

/// Locks a mutex of ours that is taken, not normal, or recorded.
fn take(mutex: &Mutex, kind: Type, patience: Patience<'_>, site: usize) -> c_int {
    if owned(mutex, kind) {
        return take_again(mutex, kind, patience);
    }
    let tries = matches!(patience, Patience::None);
    let had = if tries { mutex.lock.try_lock() } else { mutex.take_free_told() };
    if !had {
        return take_taken(mutex, kind, patience, site);
    }
    own(mutex, kind);
    if mode::mode() == mode::FULL {
        recorder::holds::alone_at_once(mutex.recorded(), kind.recorded(), site, tries);
    }
    0
}

/// Locks a mutex of ours that was just found taken by another thread.
fn take_taken(mutex: &Mutex, kind: Type, patience: Patience<'_>, site: usize) -> c_int {
    let deadline = match patience {
        Patience::None => return refused(mutex, kind, site),
        Patience::Endless => None,
        Patience::Until(clock, until, by) => match clocks::deadline(clock, until, by) {
            // The C library checks the seconds first here.
            None if until.tv_sec < 0 => return libc::ETIMEDOUT,
            None => return libc::EINVAL,
            deadline => deadline,
        },
    };
    let (had, visit) = wait(mutex, kind, deadline, site);
    if !had {
        return libc::ETIMEDOUT;
    }
    own(mutex, kind);
    if let Some(visit) = visit {
        visit.acquired_alone(mutex.recorded(), site);
    }
    0
}

/// Records that `trylock` has found the mutex taken; returns what it returns.
fn refused(mutex: &Mutex, kind: Type, site: usize) -> c_int {
    recorder::refused(kind.recorded(), mutex.recorded(), site);
    libc::EBUSY
}

/// Returns whether the mutex is recursive or error-checking and the caller holds it.
#[inline]
fn owned(mutex: &Mutex, kind: Type) -> bool {
    // Relaxed: only the caller's own id matters, and no other thread writes that.
    matches!(kind, Type::Recursive | Type::ErrorCheck)
        && mutex.owner.load(Relaxed) == thread::exact_id()
}

/// Stores the caller, which has taken the lock, as the owner of the mutex.
#[inline]
fn own(mutex: &Mutex, kind: Type) {
    // Exact where that matters: there `owned` has already called `exact_id`.
    mutex.owner.store(thread::id(), Relaxed);
    if kind == Type::Recursive {
        mutex.count.store(1, Relaxed);
    }
}

/// Waits for the lock. Returns whether it was taken before the deadline, and the visit for the
/// recording.
fn wait(
    mutex: &Mutex,
    kind: Type,
    deadline: Option<Deadline>,
    site: usize,
) -> (bool, Option<Visit>) {
    recorded(mutex, kind, site, || match deadline {
        None => {
            mutex.lock.lock_taken();
            true
        }
        Some(deadline) => mutex.lock.lock_until(deadline),
    })
}

/// Like [`wait`], but `lock` waits for the lock.
fn recorded(
    mutex: &Mutex,
    kind: Type,
    site: usize,
    lock: impl FnOnce() -> bool,
) -> (bool, Option<Visit>) {
    sites::settle(&mutex.lock, site);
    recorder::waits(kind.recorded(), mutex.recorded(), mutex.lock.last_waiter(), site, lock)
}

/// The lock that a waiter of a condition variable, which holds the mutex, will take before it
/// returns. `None` if it will not wait for the lock: the C library keeps the mutex, the caller
/// doesn't own it, or the caller still owns it during the wait (a recursive mutex that it has
/// locked more than once).
///
/// # Safety
///
/// The mutex is the program's, and outlives the wait.
pub(crate) unsafe fn lock_to_come<'a>(mutex: *mut Mutex) -> Option<&'a ShflMutex<Linux>> {
    // SAFETY: the caller's promise.
    let mutex = unsafe { &*mutex };
    match mutex.whose() {
        Whose::Ours(Type::Normal | Type::Adaptive) => Some(&mutex.lock),
        Whose::Ours(kind) if owned(mutex, kind) && mutex.count.load(Relaxed) <= 1 => {
            Some(&mutex.lock)
        }
        _ => None,
    }
}

/// Unlocks the mutex of a waiter, which is a user of it until [`lock_again`] or [`lock_moved`].
/// Returns the code, and whether the waiter is counted as a user.
///
/// # Safety
///
/// The mutex is the program's.
pub(crate) unsafe fn unlock_to_wait(mutex: *mut Mutex) -> (c_int, bool) {
    // SAFETY: the caller's promise.
    let object = unsafe { &*mutex };
    let counted = match object.whose() {
        // The waiter must own the mutex, which is not checked.
        Whose::Ours(Type::Normal | Type::Adaptive) => true,
        Whose::Ours(kind) => owned(object, kind),
        // The C library stores the owner in mutexes of all its kinds.
        Whose::Theirs => object.is_owned_by(thread::exact_id()),
    };
    if counted {
        object.count_in();
    }
    // SAFETY: the caller promises that this is the program's mutex.
    (unsafe { unlock(mutex) }, counted)
}

/// Locks the mutex of a waiter again; `counted` as returned by [`unlock_to_wait`].
///
/// # Safety
///
/// The mutex is the program's.
pub(crate) unsafe fn lock_again(mutex: *mut Mutex, counted: bool, site: usize) -> c_int {
    // SAFETY: the caller's promise.
    let code = unsafe { lock(mutex, site) };
    // On any other code the caller doesn't own the mutex, and may not write its count.
    if counted && matches!(code, 0 | libc::EOWNERDEAD) {
        // SAFETY: the caller promises that this is the program's mutex.
        unsafe { &*mutex }.count_out();
    }
    code
}

/// Locks a mutex into whose queue the caller was moved.
///
/// # Safety
///
/// The mutex is the one whose [`lock_to_come`] the waiter has passed.
pub(crate) unsafe fn lock_moved(
    mutex: *mut Mutex,
    moved: Moved,
    counted: bool,
    site: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let mutex = unsafe { &*mutex };
    // A mutex that was wrongly destroyed meanwhile is not ours any more; its queue must still
    // proceed.
    let kind = if let Whose::Ours(kind) = mutex.whose() { kind } else { Type::Normal };
    let lock = || {
        mutex.lock.lock_moved(moved);
        true
    };
    let (_, visit) = recorded(mutex, kind, site, lock);
    own(mutex, kind);
    if counted {
        mutex.count_out();
    }
    if let Some(visit) = visit {
        visit.acquired_alone(mutex.recorded(), site);
    }
    0
}

/// Locks a mutex that the caller already owns.
fn take_again(mutex: &Mutex, kind: Type, patience: Patience<'_>) -> c_int {
    if kind == Type::ErrorCheck {
        return if matches!(patience, Patience::None) { libc::EBUSY } else { libc::EDEADLK };
    }
    // Relaxed: only the owner accesses the count.
    let Some(count) = mutex.count.load(Relaxed).checked_add(1) else { return libc::EAGAIN };
    mutex.count.store(count, Relaxed);
    0
}

fn pointer(mutex: &Mutex) -> *mut libc::pthread_mutex_t {
    core::ptr::from_ref(mutex).cast_mut().cast()
}
