//! The exported functions of `pthread.h` that programs call.
//!
//! Where the call site is needed, the function is two instructions: it loads the return address,
//! which only machine code can do, as a further argument, and jumps to the Rust function that does
//! the work. So each algorithm is written once, in Rust; the cost is a load that hits the cache and
//! a predicted jump. *Rejected:* entry functions in C with `__builtin_return_address`, which would
//! need a second copy of the fast path.
//!
//! The names are exported without a version (a Rust library's default), which satisfies a reference
//! to any version of the C library's. `__pthread_mutex_lock` and its like are the names by which
//! old libraries call the same functions.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicI32;

use libc::{clockid_t, timespec};

use crate::abi::rwlock::RwLock;
use crate::abi::{Cond, Mutex};
use crate::recorder::events;
use crate::{cond, mutex, priority, rwlock, spin};

/// Defines functions that jump to `$to`, with the return address as argument number `$nth`.
macro_rules! with_site {
    ($($name:ident($($argument:ident: $type:ty),*) = $nth:tt => $to:path;)*) => {$(
        /// The function of this name in `pthread.h`.
        ///
        /// # Safety
        ///
        /// The conditions of POSIX.
        // SAFETY: it jumps to the function `$to`, with the arguments and the stack unchanged.
        #[unsafe(naked)]
        // SAFETY: the C library's name and signature; replacing that function is the purpose.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(concat!("mov ", site!($nth), ", qword ptr [rsp]"), "jmp {}", sym $to);
            #[cfg(target_arch = "aarch64")]
            naked_asm!(concat!("mov ", site!($nth), ", x30"), "b {}", sym $to);
        }
    )*};
}

/// The instruction that loads the return address into an argument's register.
#[cfg(target_arch = "x86_64")]
macro_rules! site {
    (2) => {
        "rsi"
    };
    (3) => {
        "rdx"
    };
    (4) => {
        "rcx"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! site {
    (2) => {
        "x1"
    };
    (3) => {
        "x2"
    };
    (4) => {
        "x3"
    };
}

/// Defines functions that jump to `$to`.
macro_rules! plain {
    ($($name:ident($($argument:ident: $type:ty),*) => $to:path;)*) => {$(
        /// The function of this name in `pthread.h`.
        ///
        /// # Safety
        ///
        /// The conditions of POSIX.
        // SAFETY: it replaces the C library's function of this name, and does what POSIX requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: our caller's promise is the same.
            unsafe { $to($($argument),*) }
        }
    )*};
}

/// Defines functions that jump to `$to` in `shim.c`: no Rust frame is on the stack, so that a
/// cancellation unwinds C code only.
macro_rules! cancellable {
    ($($name:ident($($argument:ident: $type:ty),*) => $to:ident;)*) => {
        // SAFETY: `shim.c` defines the functions with these signatures.
        unsafe extern "C" {
            $(fn $to($($argument: $type),*) -> c_int;)*
        }
        $(
            /// The function of this name in `pthread.h`. A cancellation point.
            ///
            /// # Safety
            ///
            /// The conditions of POSIX.
            // SAFETY: it jumps to the function `$to`, with the arguments and the stack unchanged.
            #[unsafe(naked)]
            // SAFETY: the C library's name and signature; replacing that function is the purpose.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                #[cfg(target_arch = "x86_64")]
                naked_asm!("jmp {}", sym $to);
                #[cfg(target_arch = "aarch64")]
                naked_asm!("b {}", sym $to);
            }
        )*
    };
}

with_site! {
    pthread_mutex_lock(_mutex: *mut Mutex) = 2 => mutex::lock;
    __pthread_mutex_lock(_mutex: *mut Mutex) = 2 => mutex::lock;
    pthread_mutex_trylock(_mutex: *mut Mutex) = 2 => mutex::trylock;
    __pthread_mutex_trylock(_mutex: *mut Mutex) = 2 => mutex::trylock;
    pthread_mutex_timedlock(_mutex: *mut Mutex, _until: *const timespec) = 3 => mutex::timedlock;
    pthread_mutex_clocklock(_mutex: *mut Mutex, _clock: clockid_t, _until: *const timespec)
        = 4 => mutex::clocklock;
    pthread_rwlock_rdlock(_rwlock: *mut RwLock) = 2 => rwlock::rdlock;
    __pthread_rwlock_rdlock(_rwlock: *mut RwLock) = 2 => rwlock::rdlock;
    pthread_rwlock_tryrdlock(_rwlock: *mut RwLock) = 2 => rwlock::tryrdlock;
    __pthread_rwlock_tryrdlock(_rwlock: *mut RwLock) = 2 => rwlock::tryrdlock;
    pthread_rwlock_timedrdlock(_rwlock: *mut RwLock, _until: *const timespec)
        = 3 => rwlock::timedrdlock;
    pthread_rwlock_clockrdlock(_rwlock: *mut RwLock, _clock: clockid_t, _until: *const timespec)
        = 4 => rwlock::clockrdlock;
    pthread_rwlock_wrlock(_rwlock: *mut RwLock) = 2 => rwlock::wrlock;
    __pthread_rwlock_wrlock(_rwlock: *mut RwLock) = 2 => rwlock::wrlock;
    pthread_rwlock_trywrlock(_rwlock: *mut RwLock) = 2 => rwlock::trywrlock;
    __pthread_rwlock_trywrlock(_rwlock: *mut RwLock) = 2 => rwlock::trywrlock;
    pthread_rwlock_timedwrlock(_rwlock: *mut RwLock, _until: *const timespec)
        = 3 => rwlock::timedwrlock;
    pthread_rwlock_clockwrlock(_rwlock: *mut RwLock, _clock: clockid_t, _until: *const timespec)
        = 4 => rwlock::clockwrlock;
    pthread_mutex_init(_mutex: *mut Mutex, _attributes: *const c_void) = 3 => mutex::init;
    __pthread_mutex_init(_mutex: *mut Mutex, _attributes: *const c_void) = 3 => mutex::init;
    pthread_rwlock_init(_rwlock: *mut RwLock, _attributes: *const c_void) = 3 => rwlock::init;
    __pthread_rwlock_init(_rwlock: *mut RwLock, _attributes: *const c_void) = 3 => rwlock::init;
    pthread_cond_signal(_cond: *mut Cond) = 2 => cond::signal;
    pthread_cond_broadcast(_cond: *mut Cond) = 2 => cond::broadcast;
    pthread_spin_lock(_spin: *mut AtomicI32) = 2 => spin::lock;
    pthread_spin_trylock(_spin: *mut AtomicI32) = 2 => spin::trylock;
}

plain! {
    pthread_mutex_unlock(mutex: *mut Mutex) => mutex::unlock;
    __pthread_mutex_unlock(mutex: *mut Mutex) => mutex::unlock;
    pthread_mutex_destroy(mutex: *mut Mutex) => mutex::destroy;
    __pthread_mutex_destroy(mutex: *mut Mutex) => mutex::destroy;
    pthread_rwlock_unlock(rwlock: *mut RwLock) => rwlock::unlock;
    __pthread_rwlock_unlock(rwlock: *mut RwLock) => rwlock::unlock;
    pthread_rwlock_destroy(rwlock: *mut RwLock) => rwlock::destroy;
    __pthread_rwlock_destroy(rwlock: *mut RwLock) => rwlock::destroy;
    pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const c_void,
        start: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void
    ) => events::create;
    pthread_setschedparam(
        thread: libc::pthread_t,
        policy: c_int,
        parameter: *const libc::sched_param
    ) => priority::set_thread;
    pthread_setschedprio(thread: libc::pthread_t, value: c_int) => priority::set_thread_priority;
    sched_setscheduler(
        process: libc::pid_t,
        policy: c_int,
        parameter: *const libc::sched_param
    ) => priority::set;
    sched_setparam(process: libc::pid_t, parameter: *const libc::sched_param)
        => priority::set_parameter;
    pthread_cond_init(cond: *mut Cond, attributes: *const c_void) => cond::init;
    pthread_cond_destroy(cond: *mut Cond) => cond::destroy;
    pthread_spin_init(spin: *mut AtomicI32, shared: c_int) => spin::init;
    pthread_spin_destroy(spin: *mut AtomicI32) => spin::destroy;
    pthread_spin_unlock(spin: *mut AtomicI32) => spin::unlock;
}

cancellable! {
    pthread_join(_thread: libc::pthread_t, _result: *mut *mut c_void) => antiphon_join;
    pthread_cond_wait(_cond: *mut c_void, _mutex: *mut c_void) => antiphon_cond_wait;
    pthread_cond_timedwait(_cond: *mut c_void, _mutex: *mut c_void, _until: *const timespec)
        => antiphon_cond_timedwait;
    pthread_cond_clockwait(
        _cond: *mut c_void, _mutex: *mut c_void, _clock: clockid_t, _until: *const timespec
    ) => antiphon_cond_clockwait;
}
