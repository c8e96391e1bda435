//! The C library's own functions, for what stays its own.
//!
//! `RTLD_NEXT` finds the definition behind ours. Several functions have two versions in the C
//! library; the version that is asked for first is the one that today's programs bind to, then come
//! older ones (a condition variable's `GLIBC_2.2.5` is another ABI and is asked for last), then
//! whatever there is.
//!
//! All are looked up when the library is loaded. A call that comes before looks up its own: `dlsym`
//! may allocate and lock, but no path to a lock of ours comes through here.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use libc::{clockid_t, timespec};

use crate::abi::rwlock::RwLock;
use crate::abi::{Cond, Mutex};

// SAFETY: the signatures of `dlvsym(3)` and `dlsym(3)`, which `shim.c` defines.
unsafe extern "C" {
    /// `dlvsym` in the version that every C library has (`shim.c`).
    fn antiphon_dlvsym(
        handle: *mut c_void,
        name: *const c_char,
        version: *const c_char,
    ) -> *mut c_void;
    /// `dlsym`, likewise.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A function of type `F` in the C library.
pub(crate) struct Real<F> {
    name: &'static CStr,
    versions: &'static [&'static CStr],
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

/// Nothing like it in this C library.
#[derive(Debug)]
pub(crate) struct Missing;

impl<F: Copy> Real<F> {
    const fn new(name: &'static CStr, versions: &'static [&'static CStr]) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        Self { name, versions, address: AtomicPtr::new(null_mut()), function: PhantomData }
    }

    /// The function.
    ///
    /// # Errors
    ///
    /// [`Missing`]: this C library is older than the function.
    pub(crate) fn get(&self) -> Result<F, Missing> {
        // Relaxed: it is code, there since the C library was loaded.
        let mut address = self.address.load(Relaxed);
        if address.is_null() {
            address = self.find();
        }
        if address.is_null() {
            return Err(Missing);
        }
        // SAFETY: the constant that made `self` gives the function of this name its C type, which
        // is a pointer by the assertion above.
        Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) })
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        crate::sys::errno_kept(|| {
            let versioned = self.versions.iter().map(|version| {
                // SAFETY: both are strings that end in zero.
                unsafe { antiphon_dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) }
            });
            let mut address = null_mut();
            for found in versioned {
                address = found;
                if !address.is_null() {
                    break;
                }
            }
            if address.is_null() {
                // SAFETY: as above.
                address = unsafe { dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            }
            self.address.store(address, Relaxed);
            address
        })
    }
}

/// Where a function of the C library begins, for who jumps there.
pub(crate) type Entry = *const c_void;

type OnMutex = unsafe extern "C" fn(*mut Mutex) -> c_int;
type OnCond = unsafe extern "C" fn(*mut Cond) -> c_int;
type OnRwLock = unsafe extern "C" fn(*mut RwLock) -> c_int;
type TimedRwLock = unsafe extern "C" fn(*mut RwLock, *const timespec) -> c_int;
type ClockedRwLock = unsafe extern "C" fn(*mut RwLock, clockid_t, *const timespec) -> c_int;
type OnSpin = unsafe extern "C" fn(*mut c_int) -> c_int;
type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
/// Of a function that is jumped to, whatever its arguments.
type Jump = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const c_void, Start, *mut c_void) -> c_int;
type AttrGet = unsafe extern "C" fn(*const c_void, *mut c_int) -> c_int;

const OLD: &[&CStr] = &[c"GLIBC_2.2.5", c"GLIBC_2.17"];
const MOVED: &[&CStr] = &[c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"];
const DLMOPENED: &[&CStr] = &[c"GLIBC_2.34", c"GLIBC_2.3.4", c"GLIBC_2.17"];
const COND: &[&CStr] = &[c"GLIBC_2.3.2", c"GLIBC_2.17"];
const CLOCKED: &[&CStr] = &[c"GLIBC_2.34", c"GLIBC_2.30"];
const EXECVPED: &[&CStr] = &[c"GLIBC_2.11", c"GLIBC_2.17"];
const EXECVEATED: &[&CStr] = &[c"GLIBC_2.34"];
const SPAWNED: &[&CStr] = &[c"GLIBC_2.15", c"GLIBC_2.17"];
const CONDATTR_CLOCK: &[&CStr] = &[c"GLIBC_2.34", c"GLIBC_2.3.3", c"GLIBC_2.17"];

macro_rules! functions {
    ($($name:ident = $symbol:literal: $function:ty, $versions:ident;)*) => {
        $(pub(crate) static $name: Real<$function> = Real::new($symbol, $versions);)*

        /// Looks up what has not been looked up yet.
        pub(crate) fn find_all() {
            // What is missing is missed by who calls it.
            $(let _ = $name.get();)*
        }
    };
}

functions! {
    MUTEX_INIT = c"pthread_mutex_init":
        unsafe extern "C" fn(*mut Mutex, *const c_void) -> c_int, OLD;
    MUTEX_DESTROY = c"pthread_mutex_destroy": OnMutex, OLD;
    MUTEX_LOCK = c"pthread_mutex_lock": OnMutex, OLD;
    MUTEX_TRYLOCK = c"pthread_mutex_trylock": OnMutex, MOVED;
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock":
        unsafe extern "C" fn(*mut Mutex, *const timespec) -> c_int, MOVED;
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock":
        unsafe extern "C" fn(*mut Mutex, clockid_t, *const timespec) -> c_int, CLOCKED;
    MUTEX_UNLOCK = c"pthread_mutex_unlock": OnMutex, OLD;
    RWLOCK_INIT = c"pthread_rwlock_init":
        unsafe extern "C" fn(*mut RwLock, *const c_void) -> c_int, MOVED;
    RWLOCK_DESTROY = c"pthread_rwlock_destroy": OnRwLock, MOVED;
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock": OnRwLock, MOVED;
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock": OnRwLock, MOVED;
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock": TimedRwLock, MOVED;
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock": ClockedRwLock, CLOCKED;
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock": OnRwLock, MOVED;
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock": OnRwLock, MOVED;
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock": TimedRwLock, MOVED;
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock": ClockedRwLock, CLOCKED;
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock": OnRwLock, MOVED;
    COND_INIT = c"pthread_cond_init": unsafe extern "C" fn(*mut Cond, *const c_void) -> c_int, COND;
    COND_DESTROY = c"pthread_cond_destroy": OnCond, COND;
    COND_SIGNAL = c"pthread_cond_signal": OnCond, COND;
    COND_BROADCAST = c"pthread_cond_broadcast": OnCond, COND;
    COND_WAIT = c"pthread_cond_wait": unsafe extern "C" fn(*mut Cond, *mut Mutex) -> c_int, COND;
    COND_TIMEDWAIT = c"pthread_cond_timedwait":
        unsafe extern "C" fn(*mut Cond, *mut Mutex, *const timespec) -> c_int, COND;
    COND_CLOCKWAIT = c"pthread_cond_clockwait":
        unsafe extern "C" fn(*mut Cond, *mut Mutex, clockid_t, *const timespec) -> c_int, CLOCKED;
    CONDATTR_GETCLOCK = c"pthread_condattr_getclock": AttrGet, CONDATTR_CLOCK;
    CONDATTR_GETPSHARED = c"pthread_condattr_getpshared": AttrGet, MOVED;
    VFORK = c"vfork": unsafe extern "C" fn() -> libc::pid_t, OLD;
    SYSCALL = c"syscall": unsafe extern "C" fn() -> c_long, OLD;
    PRCTL = c"prctl": Jump, OLD;
    CLONE = c"clone": unsafe extern "C" fn() -> c_int, OLD;
    DLOPEN = c"dlopen": Open, MOVED;
    DLMOPEN = c"dlmopen":
        unsafe extern "C" fn(c_long, *const c_char, c_int) -> *mut c_void, DLMOPENED;
    EXECVE = c"execve": Jump, OLD;
    EXECV = c"execv": Jump, OLD;
    EXECL = c"execl": Jump, OLD;
    EXECLE = c"execle": Jump, OLD;
    EXECVP = c"execvp": Jump, OLD;
    EXECLP = c"execlp": Jump, OLD;
    EXECVPE = c"execvpe": Jump, EXECVPED;
    FEXECVE = c"fexecve": Jump, OLD;
    EXECVEAT = c"execveat": Jump, EXECVEATED;
    POSIX_SPAWN = c"posix_spawn": Jump, SPAWNED;
    POSIX_SPAWNP = c"posix_spawnp": Jump, SPAWNED;
    THREAD_CREATE = c"pthread_create": Create, MOVED;
    THREAD_JOIN = c"pthread_join":
        unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int, MOVED;
    SPIN_INIT = c"pthread_spin_init": unsafe extern "C" fn(*mut c_int, c_int) -> c_int, MOVED;
    SPIN_DESTROY = c"pthread_spin_destroy": OnSpin, MOVED;
    SPIN_LOCK = c"pthread_spin_lock": OnSpin, MOVED;
    SPIN_TRYLOCK = c"pthread_spin_trylock": OnSpin, MOVED;
    SPIN_UNLOCK = c"pthread_spin_unlock": OnSpin, MOVED;
}

/// The C library's `__libc_single_threaded`, null before 2.32. The program may have a copy of the
/// variable, so this looks from the program on, not behind us.
pub(crate) fn single_threaded() -> *mut u8 {
    let name = c"__libc_single_threaded";
    crate::sys::errno_kept(|| {
        // SAFETY: a name that ends in zero.
        unsafe { dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.cast()
    })
}

/// Calls a function of the C library; `ENOSYS` if it has none of that name.
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
