//! `pthread_rwlock_t`, and our fields in it.
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
//! All zero is free, of the default kind, and the process's own, as `PTHREAD_RWLOCK_INITIALIZER`
//! is. Flags and `shared` stand where the C library has them, so that its initialisers and
//! attributes mean what they meant:
//!
//! | kind | the keeper of the lock |
//! |---|---|
//! | shared between processes, of any flags | the C library, all 56 bytes |
//! | `…_PREFER_READER_NP` (0) | we: readers pass waiting writers |
//! | `…_PREFER_WRITER_NP` (1) | we, as above: a reader may read again, as it may there |
//! | `…_PREFER_WRITER_NONRECURSIVE_NP` (2) | we: readers wait behind a writer that waits |
//!
//! Where the C library keeps the lock, it uses the first 16 bytes beside its own fields; the
//! recorder's are padding there.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use antiphon_linux::Linux;
use antiphon_platform::{Deadline, WaiterId};
use antiphon_record::Kind;
use antiphon_sync::lock::{Recursive, Refused, ShflRwLock};

use crate::mode;
use crate::recorder::holds::{Note, Noted};
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

/// A value of the flags: readers wait behind a writer that waits.
const PREFER_WRITER_NONRECURSIVE: u32 = 2;

/// How a lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

impl Way {
    /// The way's name in a recording.
    pub(crate) fn recorded(self) -> Kind {
        match self {
            Self::Read => Kind::Read,
            Self::Write => Kind::Write,
        }
    }
}

/// `$do` with `$lock` in the form that its kind asks for.
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

    /// Whether several processes use it.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        // Relaxed, as of the flags: written before the lock was handed to other threads.
        self.shared.load(Relaxed) != 0
    }

    /// Whether the C library keeps it, in this process.
    pub(crate) fn is_theirs(&self) -> bool {
        mode::theirs() || self.is_shared()
    }

    #[inline]
    fn prefers_writers(&self) -> bool {
        self.flags.load(Relaxed) == PREFER_WRITER_NONRECURSIVE
    }

    /// Whether the thread of that id holds it to write, whether we or the C library keep it. True
    /// or false for the caller's own exact id only.
    pub(crate) fn is_written_by(&self, id: u32) -> bool {
        // Relaxed: no other thread writes the caller's id or takes it away.
        self.writer.load(Relaxed) == id
    }

    /// The name and the note by which the recorder knows the lock.
    pub(crate) fn recorded(&self) -> Noted<'_> {
        Noted { address: core::ptr::from_ref(self).addr(), note: &self.note }
    }

    /// The last waiter of the queue; of a lock of ours.
    pub(crate) fn last_waiter(&self) -> Option<WaiterId> {
        self.lock.last_waiter()
    }

    /// Gives back the memory that it has taken beside its own, if it is free; of a lock of ours.
    pub(crate) fn gather(&self) {
        self.lock.gather();
    }

    /// Gives it the policy of a site; of a lock of ours.
    #[inline]
    pub(crate) fn settle(&self, site: usize) {
        sites::settle(&self.lock, site);
    }

    /// Takes it to read, if that needs no wait. As the others below, of a lock of ours.
    #[inline]
    pub(crate) fn read_at_once(&self) -> Result<(), Refused> {
        in_form!(self, lock => lock.read_uncontended())
    }

    /// As [`read_at_once`](Self::read_at_once), for a caller that will not wait: a try that fails
    /// has delayed no thread.
    #[inline]
    pub(crate) fn try_read(&self) -> Result<(), Refused> {
        in_form!(self, lock => lock.try_read())
    }

    /// Takes it to read; waits, if there is a deadline till then.
    pub(crate) fn read(&self, deadline: Option<Deadline>) -> Result<(), Refused> {
        in_form!(self, lock => match deadline {
            None => lock.read(),
            Some(deadline) => lock.read_until(deadline),
        })
    }

    /// Takes it to write, if it is free and no waiter has the next turn.
    #[inline]
    pub(crate) fn write_at_once(&self) -> bool {
        self.lock.write_at_once()
    }

    /// Takes it to write, if it is free.
    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        self.lock.try_write()
    }

    /// Takes it to write; waits, if there is a deadline till then. Returns whether the caller has
    /// it.
    pub(crate) fn write(&self, deadline: Option<Deadline>) -> bool {
        in_form!(self, lock => match deadline {
            None => {
                lock.write();
                true
            }
            Some(deadline) => lock.write_until(deadline),
        })
    }

    /// Notes that the caller, which has the lock to write, is the writer.
    #[inline]
    pub(crate) fn own(&self) {
        // Exact, because it decides whether the writer is told that it is the writer.
        self.writer.store(thread::exact_id(), Relaxed);
    }

    /// Whether a thread has it to write. The caller has it in one way or the other, so the answer
    /// is which.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.lock.is_locked_by_writer()
    }

    /// Releases it, in whichever way it was taken; `EPERM` if no thread has it.
    ///
    /// # Safety
    ///
    /// The caller has the lock, or no thread has. Its memory may be gone afterwards.
    #[inline]
    pub(crate) unsafe fn release(&self) -> c_int {
        if self.is_written() {
            self.writer.store(0, Relaxed);
            // SAFETY: while a writer is in, no other thread is, so the caller is that one.
            unsafe { self.lock.unlock_write() };
        } else if self.lock.seems_read() {
            // SAFETY: the caller has it, and not to write.
            unsafe { self.lock.unlock_read() };
        } else {
            return libc::EPERM;
        }
        0
    }
}
