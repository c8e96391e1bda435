//! `pthread_spinlock_t`: a test and test-and-set lock that yields from time to time.
//!
//! There is no queue: a spinlock does not say whether it is shared between processes, and four
//! bytes in shared memory can't identify a waiter. Free and held are encoded as in the C library,
//! so that a process with this library and one without may share a lock. Initialisation and
//! destruction are the C library's for the same reason.
//!
//! Where critical sections are told, so are those of spinlocks, off the fast path: the mode is then
//! not `OURS`.

use core::ffi::c_int;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::{Linux, U32};
use antiphon_platform::Atomic;
use antiphon_record::Kind;
use antiphon_sync::section;

use crate::real::forward;
use crate::{mode, recorder, theirs};

/// On x86 the C library's spinlock is 1 when it is free, and 0 or less when it is held.
#[cfg(target_arch = "x86_64")]
mod code {
    pub(super) const FREE: i32 = 1;
    pub(super) const HELD: i32 = 0;
    pub(super) const fn held(word: i32) -> bool {
        word <= 0
    }
}
#[cfg(not(target_arch = "x86_64"))]
mod code {
    pub(super) const FREE: i32 = 0;
    pub(super) const HELD: i32 = 1;
    pub(super) const fn held(word: i32) -> bool {
        word != 0
    }
}
use code::{FREE, HELD, held};

/// `pthread_spin_lock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn lock(spin: *mut AtomicI32, site: usize) -> c_int {
    // SAFETY: the caller of `pthread_spin_lock` gave us a spinlock.
    let word = unsafe { &*spin };
    if mode::mode() == mode::OURS && take(word) {
        return 0;
    }
    lock_slowly(word, site)
}

#[cold]
#[inline(never)]
fn lock_slowly(word: &AtomicI32, site: usize) -> c_int {
    if mode::theirs() {
        return theirs::lock_spin(word, site);
    }
    let visit = recorder::visit(Kind::Spin, word.as_ptr().addr(), site);
    if !take_told(word) {
        let wait = visit.map(|visit| visit.wait(site));
        loop {
            // SAFETY: `U32` is a transparent atomic word of the same size and alignment.
            let waited = unsafe { &*word.as_ptr().cast::<U32>() };
            waited.wait_while(Relaxed, |word| held(word.cast_signed()));
            if take_told(word) {
                break;
            }
        }
        if let Some(wait) = wait {
            wait.ends(true);
        }
    }
    if let Some(visit) = visit {
        visit.acquired_unheld();
    }
    0
}

/// Takes the lock if it is free.
#[inline(always)]
fn take(word: &AtomicI32) -> bool {
    // Acquire: pairs with the releases in `unlock` and `unlock_slowly`.
    word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
}

/// Does what [`take`] does, and tells the section.
fn take_told(word: &AtomicI32) -> bool {
    section::attempt::<Linux>(|| take(word))
}

/// `pthread_spin_trylock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn trylock(spin: *mut AtomicI32, site: usize) -> c_int {
    // SAFETY: as in `lock`.
    let word = unsafe { &*spin };
    if mode::mode() == mode::OURS {
        return if take(word) { 0 } else { refused(word, site) };
    }
    trylock_slowly(word, site)
}

/// Records a try that was refused.
#[cold]
#[inline(never)]
fn refused(word: &AtomicI32, site: usize) -> c_int {
    if let Some(visit) = recorder::visit(Kind::Spin, word.as_ptr().addr(), site) {
        visit.refused();
    }
    libc::EBUSY
}

#[cold]
#[inline(never)]
fn trylock_slowly(word: &AtomicI32, site: usize) -> c_int {
    if mode::theirs() {
        return theirs::try_spin(word, site);
    }
    if !take_told(word) {
        return refused(word, site);
    }
    if mode::records_all()
        && let Some(visit) = recorder::visit(Kind::Spin, word.as_ptr().addr(), site)
    {
        visit.acquired_unheld();
    }
    0
}

/// `pthread_spin_unlock`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn unlock(spin: *mut AtomicI32) -> c_int {
    if mode::mode() != mode::OURS {
        return unlock_slowly(spin);
    }
    // SAFETY: as in `lock`. Release: pairs with the acquire of the next owner.
    unsafe { &*spin }.store(FREE, Release);
    0
}

#[cold]
#[inline(never)]
fn unlock_slowly(spin: *mut AtomicI32) -> c_int {
    if mode::records_all() {
        recorder::events::releases_at(spin.addr());
    }
    if mode::theirs() {
        return forward!(SPIN_UNLOCK(spin.cast()));
    }
    // SAFETY: the program's spinlock, as in `lock`. Release: pairs with the acquire of the next
    // owner. The memory may be gone afterwards.
    unsafe { &*spin }.store(FREE, Release);
    section::is_over::<Linux>();
    0
}

/// `pthread_spin_init`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn init(spin: *mut AtomicI32, shared: c_int) -> c_int {
    if mode::theirs() {
        return forward!(SPIN_INIT(spin.cast(), shared));
    }
    // SAFETY: the caller promises memory for a spinlock. Relaxed: other threads get the lock later.
    unsafe { &*spin }.store(FREE, Relaxed);
    0
}

/// `pthread_spin_destroy`: our spinlock has nothing to release.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn destroy(spin: *mut AtomicI32) -> c_int {
    if mode::theirs() { forward!(SPIN_DESTROY(spin.cast())) } else { 0 }
}

const _: () = assert!(size_of::<AtomicI32>() == size_of::<U32>() && size_of::<U32>() == 4);
