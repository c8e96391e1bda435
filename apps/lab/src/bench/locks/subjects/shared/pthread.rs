//! Peers from the C library: `pthread_rwlock_t`, by the kind of owner that it prefers.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::bench::locks::subjects::Subject;

/// `PTHREAD_RWLOCK_PREFER_READER_NP`, the default, and
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, which are glibc's and not in POSIX. The kind
/// whose value is in between behaves like the default.
const PREFER_READER: libc::c_int = 0;
const PREFER_WRITER_NONRECURSIVE: libc::c_int = 2;

/// Readers pass a waiting writer.
pub type Default = Pthread<PREFER_READER>;
/// A waiting writer excludes new readers.
pub type WriterPreferred = Pthread<PREFER_WRITER_NONRECURSIVE>;

/// A `pthread_rwlock_t` of kind `KIND`.
pub struct Pthread<const KIND: libc::c_int>(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: a `pthread_rwlock_t` may be used by several threads at a time.
unsafe impl<const KIND: libc::c_int> Sync for Pthread<KIND> {}

impl<const KIND: libc::c_int> Pthread<KIND> {
    #[inline]
    fn under<R>(
        &self,
        lock: unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> libc::c_int,
        section: impl FnOnce() -> R,
    ) -> R {
        // SAFETY: the lock is initialised, and does not move while it is borrowed.
        let error = unsafe { lock(self.0.get()) };
        assert_eq!(error, 0, "neither a deadlock nor too many readers");
        let result = section();
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
        result
    }
}

impl<const KIND: libc::c_int> Subject for Pthread<KIND> {
    fn new() -> Result<Self, String> {
        let mut attributes = MaybeUninit::uninit();
        let mut lock = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised first and destroyed last, and the lock is
        // initialised with them in between. A free lock may be moved, because glibc's does not
        // contain its own address.
        let done = unsafe {
            let done = libc::pthread_rwlockattr_init(attributes.as_mut_ptr()) == 0
                && libc::pthread_rwlockattr_setkind_np(attributes.as_mut_ptr(), KIND) == 0
                && libc::pthread_rwlock_init(lock.as_mut_ptr(), attributes.as_ptr()) == 0;
            libc::pthread_rwlockattr_destroy(attributes.as_mut_ptr());
            done
        };
        if !done {
            return Err("this C library has no such lock; glibc has".to_owned());
        }
        // SAFETY: `pthread_rwlock_init` has succeeded.
        Ok(Self(UnsafeCell::new(unsafe { lock.assume_init() })))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.under(libc::pthread_rwlock_wrlock, section)
    }

    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        self.under(libc::pthread_rwlock_rdlock, section)
    }
}
