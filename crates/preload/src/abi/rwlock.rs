//! Layout of `pthread_rwlock_t`, and of our fields in it.
//!
//! ```text
//!   0 ┌────────────────────────┐
//!     │ our lock               │
//!  16 ├────────────────────────┤
//!     │ (unused)               │
//!  24 ├────────────────────────┤
//!     │ writer: its thread's id│  the C library's `__cur_writer`
//!  28 ├────────────────────────┤
//!     │ shared                 │  the C library's, as are the flags
//!  32 ├────────────────────────┤
//!     │ recorder: held since   │
//!  40 ├────────────────────────┤
//!     │ recorder: row, tag     │
//!  48 ├────────────────────────┤
//!     │ flags: preference      │
//!  52 ├────────────────────────┤
//!     │ (unused)               │
//!  56 └────────────────────────┘
//! ```
//!
//! A lock of zero bytes is free, of the default kind and private to the process, as
//! `PTHREAD_RWLOCK_INITIALIZER` is. `flags` and `shared` are at the C library's offsets, so that
//! its initialisers and attributes keep their meaning:
//!
//! | kind | the keeper of the lock |
//! |---|---|
//! | shared between processes, of any flags | the C library, all 56 bytes |
//! | `…_PREFER_READER_NP` (0) | we: readers pass waiting writers |
//! | `…_PREFER_WRITER_NP` (1) | we, as for 0: a reader may read again, as the C library allows |
//! | `…_PREFER_WRITER_NONRECURSIVE_NP` (2) | we: readers wait behind a waiting writer |
//!
//! Where the C library keeps the lock, it uses the first 16 bytes and its fields named above; the
//! recorder's fields are padding of its.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use antiphon_linux::Linux;
use antiphon_platform::{Deadline, WaiterId};
use antiphon_record::Kind;
use antiphon_sync::lock::{Recursive, Refused, ShflRwLock};

use crate::mode;
use crate::recorder::note::{Note, Noted};
use crate::{sites, thread};

/// `pthread_rwlock_t`.
#[repr(C)]
pub(crate) struct RwLock {
    lock: ShflRwLock<Linux>,
    _unused: [u32; 2],
    /// The id of the thread that holds the lock to write, 0 if none does.
    writer: AtomicU32,
    shared: AtomicI32,
    note: Note,
    flags: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<libc::pthread_rwlock_t>());
const _: () = assert!(align_of::<RwLock>() <= align_of::<libc::pthread_rwlock_t>());
const _: () = assert!(core::mem::offset_of!(RwLock, writer) == 24);
const _: () = assert!(core::mem::offset_of!(RwLock, shared) == 28);
const _: () = assert!(core::mem::offset_of!(RwLock, flags) == 48);

/// A value of `flags`: readers wait behind a waiting writer.
const PREFER_WRITER_NONRECURSIVE: u32 = 2;

/// The mode in which a lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

impl Way {
    /// The name of this mode in a recording.
    pub(crate) fn recorded(self) -> Kind {
        match self {
            Self::Read => Kind::Read,
            Self::Write => Kind::Write,
        }
    }
}

/// Evaluates `$do` with `$lock` in the form that the lock's kind requires.
macro_rules! in_form {
    ($self:ident, $lock:ident => $do:expr) => {
        if $self.prefers_writers() {
            let $lock = &$self.lock;
            $do
        } else {
            let $lock = $self.lock.in_form::<Recursive>();
            $do
        }
    };
}

impl RwLock {
    /// A lock of the default kind.
    pub(crate) const fn new() -> Self {
        Self {
            lock: ShflRwLock::NEW,
            _unused: [0; 2],
            writer: AtomicU32::new(0),
            shared: AtomicI32::new(0),
            note: Note::new(),
            flags: AtomicU32::new(0),
        }
    }

    /// Returns whether several processes use the lock.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        // Relaxed: `shared` and `flags` are written before other threads get the lock.
        self.shared.load(Relaxed) != 0
    }

    /// Returns whether the C library keeps the lock, in this process.
    pub(crate) fn is_theirs(&self) -> bool {
        mode::theirs() || self.is_shared()
    }

    #[inline]
    fn prefers_writers(&self) -> bool {
        self.flags.load(Relaxed) == PREFER_WRITER_NONRECURSIVE
    }

    /// Returns whether the thread `id` is the writer, whether we or the C library keep the lock.
    /// Reliable only for the caller's own exact id.
    pub(crate) fn is_written_by(&self, id: u32) -> bool {
        // Relaxed: no other thread writes the caller's id or takes it away.
        self.writer.load(Relaxed) == id
    }

    /// The address and the note by which the recorder identifies the lock.
    pub(crate) fn recorded(&self) -> Noted<'_> {
        Noted { address: core::ptr::from_ref(self).addr(), note: &self.note }
    }

    /// The last waiter of the queue. Only for a lock that we keep.
    pub(crate) fn last_waiter(&self) -> Option<WaiterId> {
        self.lock.last_waiter()
    }

    /// Frees the memory that the lock uses outside of its own, if it is not locked. Only for a lock
    /// that we keep.
    pub(crate) fn gather(&self) {
        self.lock.gather();
    }

    /// Sets the policy of a call site. Only for a lock that we keep.
    #[inline]
    pub(crate) fn settle(&self, site: usize) {
        sites::settle(&self.lock, site);
    }

    /// Locks to read, if that needs no wait. Only for a lock that we keep, as the functions below.
    #[inline]
    pub(crate) fn read_at_once(&self) -> Result<(), Refused> {
        in_form!(self, lock => lock.read_uncontended())
    }

    /// [`read_at_once`](Self::read_at_once) for a caller that will not wait: a failed attempt
    /// delays no other thread.
    #[inline]
    pub(crate) fn try_read(&self) -> Result<(), Refused> {
        in_form!(self, lock => lock.try_read())
    }

    /// Locks to read. Waits, at most until the deadline if there is one.
    pub(crate) fn read(&self, deadline: Option<Deadline>) -> Result<(), Refused> {
        in_form!(self, lock => match deadline {
            None => lock.read(),
            Some(deadline) => lock.read_until(deadline),
        })
    }

    /// Locks to write, if the lock is free and not reserved for a waiter. Tells no section: only
    /// for threads that are ready.
    #[inline]
    pub(crate) fn write_at_once(&self) -> bool {
        self.lock.write_at_once()
    }

    /// [`write_at_once`](Self::write_at_once) in any mode.
    pub(crate) fn write_at_once_told(&self) -> bool {
        self.lock.write_at_once_told()
    }

    /// Locks to write, if the lock is free.
    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        self.lock.try_write()
    }

    /// Locks to write. Waits, at most until the deadline if there is one. Returns whether the
    /// caller has the lock.
    pub(crate) fn write(&self, deadline: Option<Deadline>) -> bool {
        in_form!(self, lock => match deadline {
            None => {
                lock.write();
                true
            }
            Some(deadline) => lock.write_until(deadline),
        })
    }

    /// Stores the caller's id as the writer's. The caller holds the lock to write.
    #[inline]
    pub(crate) fn own(&self) {
        // The exact id, because `EDEADLK` for the writer depends on it.
        self.writer.store(thread::exact_id(), Relaxed);
    }

    /// Returns whether a thread holds the lock to write. The caller holds it, so the result is the
    /// caller's mode.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.lock.is_locked_by_writer()
    }

    /// Releases the lock, read or write; returns `EPERM` if no thread holds it. `READY`: the caller
    /// is a thread that is ready, and so tells no section.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, or no thread does. Its memory may be gone afterwards.
    #[inline]
    pub(crate) unsafe fn release<const READY: bool>(&self) -> c_int {
        if self.is_written() {
            self.writer.store(0, Relaxed);
            // SAFETY: a writer excludes all other threads, so the caller is the writer.
            unsafe {
                if !(READY && self.lock.unlock_write_uncontended()) {
                    self.lock.unlock_write();
                }
            }
        } else if self.lock.seems_read() {
            // SAFETY: the caller holds the lock, and not to write.
            unsafe { self.lock.unlock_read() };
        } else {
            return libc::EPERM;
        }
        0
    }
}
