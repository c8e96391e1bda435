//! Looks up the C library's own functions, for calls that are forwarded to it.
//!
//! The look-up finds the next definition behind ours, in its default version: the version that
//! programs bind to today, and never a condition variable's `GLIBC_2.2.5`, which is another ABI. It
//! reads the objects' own tables ([`objects`]). `dlsym(RTLD_NEXT)` finds old versions in glibc
//! before 2.36, and `dlvsym` skips a library whose functions have no versions, such as a
//! sanitizer's, which then misses a thread.
//!
//! A library behind ours may define functions that work on locks. Where the locks are ours it is
//! skipped: its own look-up would find us ([`lookup`]), and the call would never end.
//!
//! All are looked up when the library is loaded. An earlier call looks up its own function: `dlsym`
//! may allocate and lock, but no path to a lock of ours uses this file.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, timespec};

use crate::{lookup, mode, objects};

/// A function of type `F` in the C library.
pub(crate) struct Real<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

/// Error: this C library has no such function.
#[derive(Debug)]
pub(crate) struct Missing;

impl<F: Copy> Real<F> {
    const fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        Self { name, address: AtomicPtr::new(null_mut()), function: PhantomData }
    }

    /// Returns the function, which the first call looks up.
    ///
    /// # Errors
    ///
    /// [`Missing`]: this C library is older than the function.
    pub(crate) fn get(&self) -> Result<F, Missing> {
        // Relaxed: the address of code, which does not change after the C library is loaded.
        let mut address = self.address.load(Relaxed);
        if address.is_null() {
            address = self.find();
        }
        if address.addr() == ABSENT {
            return Err(Missing);
        }
        // SAFETY: the constant that defines `self` gives the function of this name its C type,
        // which is a pointer by the assertion above.
        Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) })
    }

    /// The function, if it was already looked up and exists.
    pub(crate) fn known(&self) -> Option<F> {
        // Relaxed: as in `get`.
        if self.address.load(Relaxed).is_null() { None } else { self.get().ok() }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let found = if lookup::is_replaced(self.name) && !mode::theirs() {
            objects::c_librarys(self.name)
        } else {
            objects::next(self.name)
        };
        let address = found.map_or_else(
            || {
                // SAFETY: a name that ends in zero.
                crate::sys::errno_kept(|| unsafe {
                    lookup::by_name(libc::RTLD_NEXT, self.name.as_ptr())
                })
            },
            <*const c_void>::cast_mut,
        );
        let address = if address.is_null() { without_provenance_mut(ABSENT) } else { address };
        self.address.store(address, Relaxed);
        address
    }
}

/// A value in place of the address: the function was looked up, and does not exist.
const ABSENT: usize = usize::MAX;

/// The address of a function of the C library, for code that jumps there.
pub(crate) type Entry = *const c_void;

type OnMutex = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;
type OnCond = unsafe extern "C" fn(*mut pthread_cond_t) -> c_int;
type Waits = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type TimedWaits =
    unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int;
type ClockedWaits = unsafe extern "C" fn(
    *mut pthread_cond_t,
    *mut pthread_mutex_t,
    clockid_t,
    *const timespec,
) -> c_int;
type OnRwLock = unsafe extern "C" fn(*mut pthread_rwlock_t) -> c_int;
type TimedRwLock = unsafe extern "C" fn(*mut pthread_rwlock_t, *const timespec) -> c_int;
type ClockedRwLock =
    unsafe extern "C" fn(*mut pthread_rwlock_t, clockid_t, *const timespec) -> c_int;
type OnSpin = unsafe extern "C" fn(*mut c_int) -> c_int;
type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
/// The type of a function that is only jumped to, whatever its arguments are.
pub(crate) type Jump = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const c_void, Start, *mut c_void) -> c_int;
type AttrGet = unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int;

macro_rules! functions {
    ($($name:ident = $symbol:literal: $function:ty;)*) => {
        $(pub(crate) static $name: Real<$function> = Real::new($symbol);)*

        /// Looks up all functions that were not looked up yet.
        pub(crate) fn find_all() {
            // A missing function is an error for its caller only.
            $(let _ = $name.get();)*
        }
    };
}

functions! {
    MUTEX_INIT = c"pthread_mutex_init":
        unsafe extern "C" fn(*mut pthread_mutex_t, *const c_void) -> c_int;
    MUTEX_DESTROY = c"pthread_mutex_destroy": OnMutex;
    MUTEX_LOCK = c"pthread_mutex_lock": OnMutex;
    MUTEX_TRYLOCK = c"pthread_mutex_trylock": OnMutex;
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock":
        unsafe extern "C" fn(*mut pthread_mutex_t, *const timespec) -> c_int;
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock":
        unsafe extern "C" fn(*mut pthread_mutex_t, clockid_t, *const timespec) -> c_int;
    MUTEX_UNLOCK = c"pthread_mutex_unlock": OnMutex;
    RWLOCK_INIT = c"pthread_rwlock_init":
        unsafe extern "C" fn(*mut pthread_rwlock_t, *const c_void) -> c_int;
    RWLOCK_DESTROY = c"pthread_rwlock_destroy": OnRwLock;
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock": OnRwLock;
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock": OnRwLock;
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock": TimedRwLock;
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock": ClockedRwLock;
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock": OnRwLock;
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock": OnRwLock;
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock": TimedRwLock;
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock": ClockedRwLock;
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock": OnRwLock;
    COND_INIT = c"pthread_cond_init":
        unsafe extern "C" fn(*mut pthread_cond_t, *const c_void) -> c_int;
    COND_DESTROY = c"pthread_cond_destroy": OnCond;
    COND_SIGNAL = c"pthread_cond_signal": OnCond;
    COND_BROADCAST = c"pthread_cond_broadcast": OnCond;
    COND_WAIT = c"pthread_cond_wait": Waits;
    COND_TIMEDWAIT = c"pthread_cond_timedwait": TimedWaits;
    COND_CLOCKWAIT = c"pthread_cond_clockwait": ClockedWaits;
    CONDATTR_GETCLOCK = c"pthread_condattr_getclock": AttrGet;
    CONDATTR_GETPSHARED = c"pthread_condattr_getpshared": AttrGet;
    VFORK = c"vfork": unsafe extern "C" fn() -> libc::pid_t;
    SYSCALL = c"syscall": unsafe extern "C" fn() -> c_long;
    PRCTL = c"prctl": Jump;
    CLONE = c"clone": unsafe extern "C" fn() -> c_int;
    DLOPEN = c"dlopen": Open;
    DLMOPEN = c"dlmopen":
        unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void;
    MMAP = c"mmap":
        unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
    MUNMAP = c"munmap": unsafe extern "C" fn(*mut c_void, usize) -> c_int;
    MREMAP = c"mremap":
        unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    SHMAT = c"shmat": unsafe extern "C" fn(c_int, *const c_void, c_int) -> *mut c_void;
    EXECVE = c"execve": Jump;
    EXECV = c"execv": Jump;
    EXECL = c"execl": Jump;
    EXECLE = c"execle": Jump;
    EXECVP = c"execvp": Jump;
    EXECLP = c"execlp": Jump;
    EXECVPE = c"execvpe": Jump;
    FEXECVE = c"fexecve": Jump;
    EXECVEAT = c"execveat": Jump;
    POSIX_SPAWN = c"posix_spawn": Jump;
    POSIX_SPAWNP = c"posix_spawnp": Jump;
    THREAD_CREATE = c"pthread_create": Create;
    THREAD_JOIN = c"pthread_join":
        unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;
    ATTR_GETSCHEDPOLICY = c"pthread_attr_getschedpolicy": AttrGet;
    SETSCHEDPARAM = c"pthread_setschedparam":
        unsafe extern "C" fn(libc::pthread_t, c_int, *const libc::sched_param) -> c_int;
    SETSCHEDPRIO = c"pthread_setschedprio":
        unsafe extern "C" fn(libc::pthread_t, c_int) -> c_int;
    SCHED_SETSCHEDULER = c"sched_setscheduler":
        unsafe extern "C" fn(libc::pid_t, c_int, *const libc::sched_param) -> c_int;
    SCHED_SETPARAM = c"sched_setparam":
        unsafe extern "C" fn(libc::pid_t, *const libc::sched_param) -> c_int;
    SPIN_INIT = c"pthread_spin_init": unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
    SPIN_DESTROY = c"pthread_spin_destroy": OnSpin;
    SPIN_LOCK = c"pthread_spin_lock": OnSpin;
    SPIN_TRYLOCK = c"pthread_spin_trylock": OnSpin;
    SPIN_UNLOCK = c"pthread_spin_unlock": OnSpin;
}

/// Defines functions for `shim.c` that return a function of the C library, null if it does not
/// exist.
macro_rules! for_shim {
    ($($name:ident = $function:ident;)*) => {$(
        // SAFETY: `shim.c` declares this name and signature, and no other object uses this prefix.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Entry {
            $function.get().map_or(core::ptr::null(), |function| function as Entry)
        }
    )*};
}

for_shim! {
    antiphon_real_cond_wait = COND_WAIT;
    antiphon_real_cond_timedwait = COND_TIMEDWAIT;
    antiphon_real_cond_clockwait = COND_CLOCKWAIT;
    antiphon_real_join = THREAD_JOIN;
}

/// The C library's `__libc_single_threaded`, null before 2.32. The program may have a copy of the
/// variable, so the search starts at the program, not behind us.
pub(crate) fn single_threaded() -> *mut u8 {
    let name = c"__libc_single_threaded";
    crate::sys::errno_kept(|| {
        // SAFETY: a name that ends in zero.
        unsafe { lookup::by_name(libc::RTLD_DEFAULT, name.as_ptr()) }.cast()
    })
}

/// Calls a function of the C library; `ENOSYS` if it does not exist.
macro_rules! forward {
    ($real:ident($($argument:expr),*)) => {
        match $crate::real::$real.get() {
            // SAFETY: the arguments are those that our caller gave to the function of this name.
            Ok(function) => unsafe { function($($argument),*) },
            Err($crate::real::Missing) => libc::ENOSYS,
        }
    };
}
pub(crate) use forward;
