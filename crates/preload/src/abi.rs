//! Layout of the C library's mutex and condition variable, and of our fields in them.
//!
//! ```text
//!  pthread_mutex_t, 40 bytes              pthread_cond_t, 48 bytes        pthread_spinlock_t
//!   0 ┌────────────────────────┐           0 ┌────────────────────────┐    0 ┌──────────────┐
//!     │ our mutex              │             │ our condition variable │      │ 1 free (x86) │
//!   8 ├────────────────────────┤             │                        │    4 └──────────────┘
//!     │ owner: the thread's id │          16 ├────────────────────────┤
//!  12 ├────────────────────────┤             │ flags: clock, shared   │
//!     │ recursion count        │          20 ├────────────────────────┤
//!  16 ├────────────────────────┤             │ threads inside a wait  │
//!     │ kind, the C library's  │          24 ├────────────────────────┤
//!  20 ├────────────────────────┤             │ epoch of the process   │
//!     │ (unused)               │          28 ├────────────────────────┤
//!  24 ├────────────────────────┤             │ sequence, if shared    │
//!     │ recorder: held since   │          32 ├────────────────────────┤
//!  32 ├────────────────────────┤             │ recorder: row, tag     │
//!     │ recorder: row, tag     │             │                        │
//!  40 └────────────────────────┘          48 └────────────────────────┘
//! ```
//!
//! An object of zero bytes is unlocked and of the normal kind, as `PTHREAD_MUTEX_INITIALIZER` and
//! `PTHREAD_COND_INITIALIZER` are. The kind is at the C library's offset, so its static
//! initialisers and `pthread_mutexattr_t` keep their meaning:
//!
//! | bits of the kind | the keeper of the lock |
//! |---|---|
//! | 0 normal, 3 adaptive | we |
//! | 1 recursive, 2 error-checking | we, with owner and count |
//! | 0x10 robust, 0x20 inherit, 0x40 protect, 0x80 shared | the C library, all 40 bytes |
//! | 0x100, 0x200 lock elision yes, no | ignored |
//!
//! Users are threads that wait for a condition and will lock the mutex again: `destroy` refuses
//! while there are any. A waiter counts itself in before it unlocks, and out when it has locked
//! again. The C library counts the owner of its mutexes, too, where we have the recursion count.
//!
//! Where the C library keeps the lock, it uses the first 24 bytes: lock word, recursion count,
//! owner, users, kind. In a robust mutex, the recorder's sixteen bytes are the links of the C
//! library's list; all other kinds leave them unused. `rwlock` has the readers-writer lock.

pub(crate) mod rwlock;

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use antiphon_linux::{Linux, light};
use antiphon_platform::{Clock, Deadline, Hints as _};
use antiphon_record::Kind;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::{Condvar, Inside};

use crate::recorder;
use crate::recorder::note::{Note, Noted};
use crate::thread;

/// `pthread_mutex_t`.
#[repr(C)]
pub(crate) struct Mutex {
    pub(crate) lock: ShflMutex<Linux>,
    /// The id of the thread that holds the lock, 0 if none does. Kept for all kinds, decisive for
    /// the recursive and the error-checking one.
    pub(crate) owner: AtomicU32,
    /// The number of times that the owner of a recursive mutex has locked it.
    pub(crate) count: AtomicU32,
    kind: AtomicI32,
    /// For a mutex that we keep: the number of waiters of condition variables that will lock it
    /// again. Written by its owner alone.
    users: AtomicU32,
    note: Note,
}

/// `pthread_cond_t`.
#[repr(C)]
pub(crate) struct Cond {
    pub(crate) waiters: Condvar<Linux>,
    /// `SHARED` and `MONOTONIC`; constant after initialisation.
    pub(crate) flags: AtomicU32,
    /// Number of threads between the beginning and the end of a wait, and the process that they
    /// belong to.
    pub(crate) inside: Inside<Linux>,
    /// Shared only: the number of notifications so far.
    pub(crate) sequence: AtomicU32,
    /// Used by the recorder: the row of the last notification.
    pub(crate) note: Note,
}

/// The C library's words in place of our lock, while it keeps the mutex.
#[repr(C)]
struct Theirs {
    word: AtomicU32,
    count: AtomicU32,
}

const _: () = assert!(size_of::<Theirs>() == core::mem::offset_of!(Mutex, owner));
// On AArch64 the C library's mutex has eight more bytes, which we leave alone.
const _: () = assert!(size_of::<Mutex>() <= size_of::<libc::pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<libc::pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, owner) == 8);
const _: () = assert!(core::mem::offset_of!(Mutex, count) == 12);
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16);
const _: () = assert!(size_of::<Cond>() == size_of::<libc::pthread_cond_t>());
const _: () = assert!(align_of::<Cond>() <= align_of::<libc::pthread_cond_t>());

/// [`Cond::flags`]: several processes may use the condition variable.
pub(crate) const SHARED: u32 = 1;
/// [`Cond::flags`]: deadlines are in the monotonic clock.
pub(crate) const MONOTONIC: u32 = 2;

/// Bits of `__kind` that make a difference to us.
const DECISIVE: i32 = 0xf3;
/// Bits of `DECISIVE` for the type: what happens to a thread that locks twice, or unlocks a mutex
/// that it doesn't own.
const TYPE: i32 = 3;

/// The implementation that keeps a mutex.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Ours, of this kind.
    Ours(Type),
    /// The C library's.
    Theirs,
}

/// The kinds of mutex that we keep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Normal,
    Adaptive,
    Recursive,
    ErrorCheck,
}

impl Type {
    /// The kind's name in a recording.
    pub(crate) fn recorded(self) -> Kind {
        match self {
            Self::Normal => Kind::Mutex,
            Self::Adaptive => Kind::Adaptive,
            Self::Recursive => Kind::Recursive,
            Self::ErrorCheck => Kind::ErrorCheck,
        }
    }
}

impl Mutex {
    /// A mutex of the default kind.
    pub(crate) const fn new() -> Self {
        Self {
            lock: ShflMutex::NEW,
            owner: AtomicU32::new(0),
            count: AtomicU32::new(0),
            kind: AtomicI32::new(0),
            users: AtomicU32::new(0),
            note: Note::new(),
        }
    }

    /// Takes the lock if it is free and no waiter has the next turn. Tells no section: only for
    /// threads that are ready, and in modes in which nothing is told.
    #[inline]
    pub(crate) fn take_free(&self) -> bool {
        if thread::alone() {
            // SAFETY: the C library says that this is the only thread. Memory that processes share
            // needs a mutex with the shared flag, which is not ours; the C library relies on the
            // same.
            unsafe { self.lock.lock_alone() }
        } else {
            self.lock.lock_uncontended()
        }
    }

    /// [`take_free`](Self::take_free) in any mode.
    pub(crate) fn take_free_told(&self) -> bool {
        if Linux::heeds_sections() { self.lock.lock_uncontended_told() } else { self.take_free() }
    }

    /// Releases the lock and returns the value of `pthread_mutex_unlock`, so that the last step of
    /// that function is a tail call.
    ///
    /// # Safety
    ///
    /// The caller owns the lock. Its memory may be gone afterwards.
    #[inline]
    pub(crate) unsafe fn release(&self) -> c_int {
        // SAFETY: the caller owns the lock, and is the only thread as in `take_free`; an attempt
        // that fails releases nothing.
        unsafe {
            // Where sections are told, no thread counts as alone.
            if thread::alone() && self.lock.unlock_alone() {
                return 0;
            }
            // In light mode, `release_otherwise` checks whether the caller may unlock without an
            // exchange.
            if !light::is_plain() {
                return self.release_otherwise();
            }
            if self.lock.unlock_uncontended() {
                return 0;
            }
            self.release_contended()
        }
    }

    /// [`release`](Self::release) where the light form is in use, or sections are told.
    ///
    /// # Safety
    ///
    /// The caller owns the lock. Its memory may be gone afterwards.
    #[inline(never)]
    unsafe fn release_otherwise(&self) -> c_int {
        // SAFETY: the caller owns the lock.
        unsafe { self.lock.unlock() };
        0
    }

    /// [`release`](Self::release) where a thread waits.
    ///
    /// # Safety
    ///
    /// The caller owns the lock. Its memory may be gone afterwards.
    #[cold]
    #[inline(never)]
    unsafe fn release_contended(&self) -> c_int {
        recorder::look_for_strangers(self.recorded().address, self.lock.last_waiter());
        // SAFETY: the caller owns the lock.
        unsafe { self.lock.unlock() };
        0
    }

    /// Stores the C library's value of the kind.
    pub(crate) fn set_kind(&self, kind: i32) {
        self.kind.store(kind, Relaxed);
    }

    /// The id of the owner, as the C library has noted it.
    pub(crate) fn noted_owner(&self) -> u32 {
        // Relaxed: only the owner calls this.
        self.owner.load(Relaxed)
    }

    /// The kind, as far as it makes a difference; 0 is normal.
    #[inline]
    pub(crate) fn kind(&self) -> i32 {
        // Relaxed: written before the mutex was handed to other threads.
        self.kind.load(Relaxed) & DECISIVE
    }

    /// The address and the note by which the recorder identifies the mutex.
    #[inline]
    pub(crate) fn recorded(&self) -> Noted<'_> {
        Noted { address: core::ptr::from_ref(self).addr(), note: &self.note }
    }

    /// The implementation that keeps the mutex. A destroyed mutex counts as the C library's, which
    /// refuses it.
    pub(crate) fn whose(&self) -> Whose {
        if self.kind() & !TYPE == 0 { Whose::Ours(self.bare_type()) } else { Whose::Theirs }
    }

    /// The type of the mutex, whether we or the C library keep it.
    pub(crate) fn bare_type(&self) -> Type {
        match self.kind() & TYPE {
            0 => Type::Normal,
            1 => Type::Recursive,
            2 => Type::ErrorCheck,
            _ => Type::Adaptive,
        }
    }

    fn theirs(&self) -> &Theirs {
        // SAFETY: our lock stands first, is as large by the assertion above, and is made of
        // atomics, as this is.
        unsafe { &*core::ptr::from_ref(self).cast::<Theirs>() }
    }

    /// For a mutex that the C library keeps: whether a thread seems to hold it. Reads the lock word
    /// only.
    pub(crate) fn looks_held(&self) -> bool {
        const PROTECT: i32 = 0x40;
        // The owner's id, or 1 and 2; in a mutex with a ceiling, the bits below the ceiling.
        let held = if self.kind() & PROTECT == 0 { 0x3fff_ffff } else { 0x7_ffff };
        // Relaxed: a guess, which may be wrong the next moment.
        self.theirs().word.load(Relaxed) & held != 0
    }

    /// Returns whether the thread `id` holds the mutex, whether we or the C library keep it.
    /// Reliable only for the caller's own id.
    pub(crate) fn is_owned_by(&self, id: u32) -> bool {
        // Relaxed: no other thread writes the caller's id or takes it away.
        self.owner.load(Relaxed) == id
    }

    /// For a mutex that the C library keeps and the caller holds: returns whether one unlock
    /// releases it.
    pub(crate) fn is_last_level(&self) -> bool {
        // Relaxed: only the owner writes the count.
        self.bare_type() != Type::Recursive || self.theirs().count.load(Relaxed) == 1
    }

    /// The word that counts the users of the mutex: `__nusers` at offset 12, if the C library keeps
    /// it.
    fn users(&self) -> &AtomicU32 {
        if self.whose() == Whose::Theirs { &self.count } else { &self.users }
    }

    /// Counts the caller as a user: it owns the mutex, is about to release it, and will lock it
    /// again.
    pub(crate) fn count_in(&self) {
        // Relaxed: only owners write the count, one after the other. The C library does the same
        // for its own mutexes.
        self.users().store(self.users().load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Ends the count of the caller as a user: it owns the mutex again.
    pub(crate) fn count_out(&self) {
        // Relaxed: only owners write the count. A mutex that was initialised again meanwhile counts
        // no user.
        self.users().store(self.users().load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// For a mutex that we keep: returns whether a waiter will lock it again.
    pub(crate) fn is_used(&self) -> bool {
        // Relaxed: the thread that destroys the mutex has owned it after the waiters that it knows
        // of.
        self.users.load(Relaxed) != 0
    }

    /// Marks the mutex as destroyed, with the C library's value.
    pub(crate) fn bury(&self) {
        self.kind.store(-1, Relaxed);
    }
}

impl Cond {
    /// A condition variable with these flags.
    pub(crate) const fn new(flags: u32) -> Self {
        Self {
            waiters: Condvar::NEW,
            flags: AtomicU32::new(flags),
            inside: Inside::NEW,
            sequence: AtomicU32::new(0),
            note: Note::new(),
        }
    }
}

/// The clock `id`, if deadlines may use it.
pub(crate) fn clock(id: libc::clockid_t) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// The deadline at `until`; `None` if `tv_nsec` is not less than a second. A time before the
/// clock's zero has passed; a time after the year 2554 never comes.
pub(crate) fn deadline(clock: Clock, until: &libc::timespec) -> Option<Deadline> {
    let fraction = u64::try_from(until.tv_nsec).ok().filter(|&ns| ns < 1_000_000_000)?;
    let seconds = u64::try_from(until.tv_sec).ok();
    let ns = seconds.map_or(0, |s| s.saturating_mul(1_000_000_000).saturating_add(fraction));
    Some(Deadline { clock, ns })
}
