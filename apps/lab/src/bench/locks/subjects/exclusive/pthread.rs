//! Peers from the C library: `pthread_mutex_t`, normal and adaptive.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::bench::locks::subjects::Subject;

/// Type of `PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP`, which is glibc's and not in POSIX.
const PTHREAD_MUTEX_ADAPTIVE_NP: libc::c_int = 3;

/// A mutex of the C library's default type.
pub type Normal = Pthread<{ libc::PTHREAD_MUTEX_NORMAL }>;
/// A mutex that spins before it sleeps.
pub type Adaptive = Pthread<PTHREAD_MUTEX_ADAPTIVE_NP>;

/// A `pthread_mutex_t` of type `KIND`.
pub struct Pthread<const KIND: libc::c_int>(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a `pthread_mutex_t` may be used by several threads at a time.
unsafe impl<const KIND: libc::c_int> Sync for Pthread<KIND> {}

impl<const KIND: libc::c_int> Subject for Pthread<KIND> {
    fn new() -> Result<Self, String> {
        let mut attributes = MaybeUninit::uninit();
        let mut mutex = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised first and destroyed last, and the mutex is
        // initialised with them in between. A free mutex of these types may be moved, because
        // glibc's does not contain its own address.
        let done = unsafe {
            let done = libc::pthread_mutexattr_init(attributes.as_mut_ptr()) == 0
                && libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), KIND) == 0
                && libc::pthread_mutex_init(mutex.as_mut_ptr(), attributes.as_ptr()) == 0;
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            done
        };
        if !done {
            return Err("this C library has no such mutex; glibc has".to_owned());
        }
        // SAFETY: `pthread_mutex_init` has succeeded.
        Ok(Self(UnsafeCell::new(unsafe { mutex.assume_init() })))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the mutex is initialised, and does not move while it is borrowed. Neither call
        // can fail for these types: the possible errors concern owners, which these types don't
        // check.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        let result = section();
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        result
    }
}
