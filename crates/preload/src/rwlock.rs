//! `pthread_rwlock_t`: the functions of readers-writer locks. Our lock for those of one process;
//! the C library keeps those that processes share.
//!
//! The entry functions check whether the thread is [`thread::ready`] and the lock is ours; then
//! follow one addition to read, or one exchange and a store of the writer to write. Everything else
//! is out of line. `site` is as in [`crate::mutex`].
//!
//! Return values, in the C library's order of checks:
//!
//! | | in all kinds |
//! |---|---|
//! | a deadline with invalid nanoseconds, or another clock | `EINVAL`, also for a free lock |
//! | the writer reads or writes again | `EDEADLK`, tries `EBUSY` |
//! | a reader writes | waits for ever, or for its deadline; tries `EBUSY` |
//! | a reader reads again | gets the lock; where writers are preferred, it may wait for one |
//! | readers beyond 2²³ | `EAGAIN` (C library: 2²⁸) |
//! | `destroy`, even if the lock is held | 0, without effect |
//! | `unlock` of a lock that no thread holds | `EPERM`; the C library breaks the lock |
//!
//! A writer tells its critical section as the owner of a mutex does ([`crate::mutex`]); readers
//! tell nothing.
//!
//! No function is a cancellation point, here or in the C library.

use core::ffi::{c_int, c_void};

use antiphon_platform::{Clock, Deadline};
use antiphon_sync::lock::Refused;
use libc::{clockid_t, timespec};

use crate::abi;
use crate::abi::rwlock::{RwLock, Way};
use crate::clocks::{self, By};
use crate::mode;
use crate::real::forward;
use crate::recorder::{self, Visit};
use crate::theirs::Call;
use crate::theirs::rwlock as theirs;
use crate::thread;

/// `pthread_rwlock_rdlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
#[inline]
pub(crate) unsafe extern "C" fn rdlock(rwlock: *mut RwLock, site: usize) -> c_int {
    // SAFETY: the caller of `pthread_rwlock_rdlock` gave us a lock.
    let rwlock = unsafe { &*rwlock };
    if thread::ready() != 0 && !rwlock.is_shared() {
        return match rwlock.read_at_once() {
            Ok(()) => 0,
            Err(refused) => refused_to_read(rwlock, refused, None, site),
        };
    }
    lock(rwlock, Way::Read, Call::Lock, site)
}

/// `pthread_rwlock_wrlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
#[inline]
pub(crate) unsafe extern "C" fn wrlock(rwlock: *mut RwLock, site: usize) -> c_int {
    // SAFETY: as in `rdlock`.
    let rwlock = unsafe { &*rwlock };
    if thread::ready() != 0 && !rwlock.is_shared() {
        if !rwlock.write_at_once() {
            return refused_to_write(rwlock, None, site);
        }
        rwlock.own();
        return 0;
    }
    lock(rwlock, Way::Write, Call::Lock, site)
}

/// Defines functions that take a lock in a way, by a call.
macro_rules! takes {
    ($($name:ident($($argument:ident: $type:ty),*) => $way:expr, $call:expr;)*) => {$(
        /// The function of `pthread.h` whose name ends in this one.
        ///
        /// # Safety
        ///
        /// The conditions of POSIX: the objects are the program's, initialised where POSIX requires
        /// it.
        pub(crate) unsafe extern "C" fn $name(
            rwlock: *mut RwLock,
            $($argument: $type,)*
            site: usize,
        ) -> c_int {
            // SAFETY: as in `rdlock`.
            lock(unsafe { &*rwlock }, $way, $call, site)
        }
    )*};
}

takes! {
    tryrdlock() => Way::Read, Call::Try;
    trywrlock() => Way::Write, Call::Try;
    timedrdlock(until: &timespec) => Way::Read, Call::Timed(until);
    timedwrlock(until: &timespec) => Way::Write, Call::Timed(until);
    clockrdlock(clock: clockid_t, until: &timespec) => Way::Read, Call::Clocked(clock, until);
    clockwrlock(clock: clockid_t, until: &timespec) => Way::Write, Call::Clocked(clock, until);
}

/// `pthread_rwlock_unlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
#[inline]
pub(crate) unsafe extern "C" fn unlock(rwlock: *mut RwLock) -> c_int {
    // SAFETY: as in `rdlock`. The lock accesses no memory after its releasing instruction, so the
    // memory may be gone when it returns.
    let rwlock = unsafe { &*rwlock };
    if thread::ready() != 0 && !rwlock.is_shared() {
        // SAFETY: a thread that unlocks a lock holds it; the C library doesn't check this either.
        return unsafe { rwlock.release::<true>() };
    }
    unlock_slowly(rwlock)
}

#[inline(never)]
fn unlock_slowly(rwlock: &RwLock) -> c_int {
    if rwlock.is_theirs() {
        return theirs::unlock(rwlock);
    }
    if mode::mode() == mode::FULL {
        let lock = rwlock.recorded();
        if rwlock.is_written() {
            recorder::holds::releases(lock);
        } else {
            recorder::holds::releases_shared(lock.address);
        }
    }
    // SAFETY: as in `unlock`.
    unsafe { rwlock.release::<false>() }
}

/// `pthread_rwlock_init`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn init(
    rwlock: *mut RwLock,
    attributes: *const c_void,
    site: usize,
) -> c_int {
    if attributes.is_null() && !mode::theirs() {
        // SAFETY: the caller of `pthread_rwlock_init` gave us memory for a lock.
        unsafe { rwlock.write(RwLock::new()) };
    } else {
        // The C library interprets its attributes, and zeroes all fields but flags and `shared`.
        let code = forward!(RWLOCK_INIT(rwlock.cast(), attributes));
        if code != 0 {
            return code;
        }
    }
    // SAFETY: initialised above.
    let rwlock = unsafe { &*rwlock };
    // Another process would take the address for one of its own.
    if recorder::is_on() && !rwlock.is_shared() {
        rwlock.recorded().note.made(site);
    }
    if !rwlock.is_theirs() {
        rwlock.settle(site);
    }
    0
}

/// `pthread_rwlock_destroy`: as in the C library, nothing is checked. A lock of ours frees the
/// memory in which it counts its readers by socket.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn destroy(rwlock: *mut RwLock) -> c_int {
    // SAFETY: as in `rdlock`.
    let lock = unsafe { &*rwlock };
    if lock.is_theirs() {
        return forward!(RWLOCK_DESTROY(rwlock.cast()));
    }
    lock.gather();
    0
}

/// Takes a lock, for any call off the fast path.
#[inline(never)]
fn lock(rwlock: &RwLock, way: Way, call: Call<'_>, site: usize) -> c_int {
    if rwlock.is_theirs() {
        return theirs::lock(rwlock, way, call, site);
    }
    if mode::mode() == mode::OURS {
        thread::make_ready();
    }
    let by = match way {
        Way::Read => (By::ReadTimed, By::ReadClock),
        Way::Write => (By::WriteTimed, By::WriteClock),
    };
    let timed = match call {
        Call::Lock | Call::Try => None,
        Call::Timed(until) => Some((Some(Clock::Realtime), until, by.0)),
        Call::Clocked(clock, until) => Some((abi::clock(clock), until, by.1)),
    };
    let deadline = match timed {
        None => None,
        Some((clock, until, by)) => {
            match clock.and_then(|clock| clocks::deadline(clock, until, by)) {
                None => return libc::EINVAL,
                deadline => deadline,
            }
        }
    };
    let tried = matches!(call, Call::Try);
    let code = match way {
        Way::Read => match if tried { rwlock.try_read() } else { rwlock.read_at_once() } {
            Ok(()) => 0,
            Err(Refused::Busy) if tried => libc::EBUSY,
            Err(refused) => return refused_to_read(rwlock, refused, deadline, site),
        },
        Way::Write => match if tried { rwlock.try_write() } else { rwlock.write_at_once_told() } {
            true => {
                rwlock.own();
                0
            }
            false if tried => libc::EBUSY,
            false => return refused_to_write(rwlock, deadline, site),
        },
    };
    if code == libc::EBUSY {
        recorder::refused(way.recorded(), rwlock.recorded(), site);
    } else if mode::mode() == mode::FULL {
        acquired_at_once(rwlock, way, site, tried);
    }
    code
}

/// Records, in the full mode, that the caller has taken the lock without a wait.
pub(crate) fn acquired_at_once(rwlock: &RwLock, way: Way, site: usize, tried: bool) {
    let lock = rwlock.recorded();
    match way {
        Way::Read => recorder::holds::shared_at_once(lock, site, tried),
        Way::Write => recorder::holds::alone_at_once(lock, way.recorded(), site, tried),
    }
}

/// Records that the visitor has taken the lock after a wait.
pub(crate) fn acquired(rwlock: &RwLock, way: Way, visit: Visit, site: usize) {
    let lock = rwlock.recorded();
    match way {
        Way::Read => visit.acquired_shared(lock, site),
        Way::Write => visit.acquired_alone(lock, site),
    }
}

/// Returns whether the caller is the writer.
fn owned(rwlock: &RwLock) -> bool {
    rwlock.is_written_by(thread::exact_id())
}

/// Continues after an attempt to read was refused.
#[cold]
#[inline(never)]
fn refused_to_read(
    rwlock: &RwLock,
    refused: Refused,
    deadline: Option<Deadline>,
    site: usize,
) -> c_int {
    match refused {
        Refused::TooManyReaders => return libc::EAGAIN,
        Refused::Busy if owned(rwlock) => return libc::EDEADLK,
        Refused::Busy => {}
    }
    wait(rwlock, Way::Read, site, || match rwlock.read(deadline) {
        Ok(()) => 0,
        Err(Refused::Busy) => libc::ETIMEDOUT,
        Err(Refused::TooManyReaders) => libc::EAGAIN,
    })
}

/// Continues after an attempt to write was refused.
#[cold]
#[inline(never)]
fn refused_to_write(rwlock: &RwLock, deadline: Option<Deadline>, site: usize) -> c_int {
    if owned(rwlock) {
        return libc::EDEADLK;
    }
    wait(rwlock, Way::Write, site, || {
        if !rwlock.write(deadline) {
            return libc::ETIMEDOUT;
        }
        rwlock.own();
        0
    })
}

/// Waits for the lock by `take`, and records the wait.
fn wait(rwlock: &RwLock, way: Way, site: usize, take: impl FnOnce() -> c_int) -> c_int {
    rwlock.settle(site);
    let (lock, last) = (rwlock.recorded(), rwlock.last_waiter());
    let mut code = 0;
    let (had, visit) = recorder::waits(way.recorded(), lock, last, site, || {
        code = take();
        code == 0
    });
    if had && let Some(visit) = visit {
        acquired(rwlock, way, visit, site);
    }
    code
}
