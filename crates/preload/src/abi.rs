//! The C library's objects, and our fields in them.
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
//! All zero is free, unlocked and of the normal kind, as `PTHREAD_MUTEX_INITIALIZER` and
//! `PTHREAD_COND_INITIALIZER` are. The kind stays where the C library has it, so its static
//! initialisers and `pthread_mutexattr_t` mean what they meant:
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
//! Where the C library keeps the lock, the first 24 bytes are its own: lock word, recursion count,
//! owner, users, kind. The recorder's sixteen are the links of its list of robust mutexes, and
//! unused in all others. `rwlock` has the readers-writer lock.

pub(crate) mod rwlock;

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline, LightUnlock as _};
use antiphon_record::Kind;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::{Condvar, Inside};

use crate::recorder;
use crate::recorder::holds::{Note, Noted};
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
    /// `SHARED`, `MONOTONIC`; constant from initialisation on.
    pub(crate) flags: AtomicU32,
    /// Threads between the begin and the end of a wait, and the process whose they are.
    pub(crate) inside: Inside<Linux>,
    /// Shared only: how many notifications there have been.
    pub(crate) sequence: AtomicU32,
    /// The recorder's: the last row of its notifications.
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

/// [`Cond::flags`]: it may be used by several processes.
pub(crate) const SHARED: u32 = 1;
/// [`Cond::flags`]: deadlines are in the monotonic clock.
pub(crate) const MONOTONIC: u32 = 2;

/// Bits of `__kind` that make a difference to us.
const DECISIVE: i32 = 0xf3;
/// Those of them that say what happens to a thread that locks twice, or unlocks another's mutex.
const TYPE: i32 = 3;

/// Whose a mutex is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Ours, of this kind.
    Ours(Type),
    /// The C library's.
    Theirs,
}

/// The kinds that are ours.
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

    /// Takes the lock if it is free and no waiter has the next turn.
    #[inline]
    pub(crate) fn take_free(&self) -> bool {
        if thread::alone() {
            // SAFETY: the only thread, by the C library's word. Memory that other processes have
            // too needs a mutex that is flagged so, which is not ours; the C library relies on the
            // same.
            unsafe { self.lock.lock_alone() }
        } else {
            self.lock.lock_uncontended()
        }
    }

    /// Releases the lock, and returns what `pthread_mutex_unlock` does: the last steps of both are
    /// then one jump.
    ///
    /// # Safety
    ///
    /// The caller owns the lock. Its memory may be gone afterwards.
    #[inline]
    pub(crate) unsafe fn release(&self) -> c_int {
        // SAFETY: the caller's promise, and as in `take_free`; an attempt that fails releases
        // nothing.
        unsafe {
            if thread::alone() && self.lock.unlock_alone() {
                return 0;
            }
            // In light mode, `release_lightly` finds whether the caller may do without an exchange.
            if Linux::fenced() {
                return self.release_lightly();
            }
            if self.lock.unlock_uncontended() {
                return 0;
            }
            self.release_contended()
        }
    }

    /// [`release`](Self::release), where the light form is in use.
    ///
    /// # Safety
    ///
    /// As of `release`.
    #[inline(never)]
    unsafe fn release_lightly(&self) -> c_int {
        // SAFETY: the caller owns the lock.
        unsafe { self.lock.unlock() };
        0
    }

    /// [`release`](Self::release), where a thread waits.
    ///
    /// # Safety
    ///
    /// As of `release`.
    #[cold]
    #[inline(never)]
    unsafe fn release_contended(&self) -> c_int {
        recorder::look_for_strangers(self.recorded().address, self.lock.last_waiter());
        // SAFETY: the caller owns the lock.
        unsafe { self.lock.unlock() };
        0
    }

    /// Makes it one of that kind, as it stands in memory.
    pub(crate) fn set_kind(&self, kind: i32) {
        self.kind.store(kind, Relaxed);
    }

    /// The thread that has it, by the C library's word.
    pub(crate) fn noted_owner(&self) -> u32 {
        // Relaxed: asked by the owner.
        self.owner.load(Relaxed)
    }

    /// The kind, as far as it makes a difference; 0 is normal.
    #[inline]
    pub(crate) fn kind(&self) -> i32 {
        // Relaxed: written before the mutex was handed to other threads.
        self.kind.load(Relaxed) & DECISIVE
    }

    /// The name and the note by which the recorder knows the mutex.
    #[inline]
    pub(crate) fn recorded(&self) -> Noted<'_> {
        Noted { address: core::ptr::from_ref(self).addr(), note: &self.note }
    }

    /// Whose it is. A destroyed mutex is theirs, and they refuse it.
    pub(crate) fn whose(&self) -> Whose {
        if self.kind() & !TYPE == 0 { Whose::Ours(self.bare_type()) } else { Whose::Theirs }
    }

    /// Its type, whether we or the C library keep it.
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

    /// For a mutex that the C library keeps: whether a thread seems to hold it. Reads its word
    /// only.
    pub(crate) fn looks_held(&self) -> bool {
        const PROTECT: i32 = 0x40;
        // The owner's id, or 1 and 2; of a mutex with a ceiling, what stands below that.
        let held = if self.kind() & PROTECT == 0 { 0x3fff_ffff } else { 0x7_ffff };
        // Relaxed: a guess, which may be wrong the next moment.
        self.theirs().word.load(Relaxed) & held != 0
    }

    /// Whether the thread of that id holds it, whether we or the C library keep it. True or false
    /// for the caller's own id only.
    pub(crate) fn is_owned_by(&self, id: u32) -> bool {
        // Relaxed: no other thread writes the caller's id or takes it away.
        self.owner.load(Relaxed) == id
    }

    /// For a mutex that the C library keeps and the caller holds: whether one unlock releases it.
    pub(crate) fn is_last_level(&self) -> bool {
        // Relaxed: the owner's alone.
        self.bare_type() != Type::Recursive || self.theirs().count.load(Relaxed) == 1
    }

    /// The word in which its users are counted: at `__nusers` (12), if the C library keeps the
    /// mutex.
    fn users(&self) -> &AtomicU32 {
        if self.whose() == Whose::Theirs { &self.count } else { &self.users }
    }

    /// The caller, which owns the mutex and is about to release it, will lock it again.
    pub(crate) fn count_in(&self) {
        // Relaxed: owners alone write it, each after the one before. Nor does the C library need
        // more for its own.
        self.users().store(self.users().load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The caller, which was counted in, owns the mutex again.
    pub(crate) fn count_out(&self) {
        // Relaxed: as above. A mutex that was made anew in the meantime counts no user.
        self.users().store(self.users().load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// For a mutex that we keep: whether a waiter will lock it again.
    pub(crate) fn is_used(&self) -> bool {
        // Relaxed: the thread that destroys the mutex had it after the waiters that it knows of.
        self.users.load(Relaxed) != 0
    }

    /// Marks it destroyed, as the C library does.
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

/// The clock of that id, if deadlines may be given in it.
pub(crate) fn clock(id: libc::clockid_t) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// The deadline at `until`; `None` if its nanoseconds are no fraction of a second. A time before
/// the clock's zero has passed, and one beyond 2554 never comes.
pub(crate) fn deadline(clock: Clock, until: &libc::timespec) -> Option<Deadline> {
    let fraction = u64::try_from(until.tv_nsec).ok().filter(|&ns| ns < 1_000_000_000)?;
    let seconds = u64::try_from(until.tv_sec).ok();
    let ns = seconds.map_or(0, |s| s.saturating_mul(1_000_000_000).saturating_add(fraction));
    Some(Deadline { clock, ns })
}
