//! Locks of any kind as objects in a simulation.

use std::mem::ManuallyDrop;

use antiphon_rivals::cst::CstRwLock;
use antiphon_rivals::numa::CohortRw;
use antiphon_rivals::stock::LinuxRwSem;
use antiphon_sim::{Access, OwnLine, Sim, touch};
use antiphon_sync::lock::{Lock, PerSocket, RwForm, ShflRwLock};
use antiphon_sync::policy::Policy;

use super::delegated::Sections;

/// A lock followed by the words that it guards.
pub trait Guards {
    /// Accesses the six words after the lock, which are on the lock's line if it leaves them room.
    /// Takes simulated time.
    fn beside(&self, access: Access);
}

/// A lock of any kind that is taken and released, in a simulation.
///
/// # Safety
///
/// The implementation keeps exclusion: `unlock` and `unlock_read` release what `lock`, `try_lock`
/// and `read` acquired, with the orderings that exclusion needs.
pub unsafe trait Simulated: Sections {
    /// Takes the lock for writing.
    fn lock(&self);
    /// Takes the lock for writing, if it is free. Returns whether it was taken.
    fn try_lock(&self) -> bool;
    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller has taken it for writing.
    unsafe fn unlock(&self);
    /// Takes the lock for reading; for a lock without a reader mode, the same as `lock`.
    fn read(&self) -> Seat;
    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller got this seat from `read` of this lock.
    unsafe fn unlock_read(&self, seat: Seat);
}

/// A lock object, on cache lines of its own.
pub type Instance = Box<dyn Simulated>;

/// How a reader holds the lock, which it needs to leave.
#[must_use = "a reader leaves by its seat"]
pub struct Seat(pub(super) Way);

/// The record of a reader, by kind of lock.
pub(super) enum Way {
    /// All readers leave in the same way.
    Any,
    PerSocket(antiphon_sync::lock::Seat),
    Cohort(antiphon_rivals::numa::Seat),
    Cst(antiphon_rivals::cst::Seat<Sim>),
}

/// Creates an exclusive lock.
pub(super) fn exclusive<L: Lock>() -> Instance {
    Box::new(Exclusive(Guarding::new(L::NEW)))
}

/// Creates a readers-writer lock.
pub(super) fn shared<L: ReadWrite>() -> Instance {
    Box::new(Shared(Guarding::new(L::NEW)))
}

/// A lock, and words after it. Dropped as bytes: nodes of a lock belong to the simulation, and are
/// freed with it.
#[repr(C)]
pub(super) struct Guarding<L> {
    pub(super) lock: L,
    pub(super) words: [u64; 6],
}

impl<L> Guarding<L> {
    pub(super) fn new(lock: L) -> ManuallyDrop<OwnLine<Self>> {
        ManuallyDrop::new(OwnLine(Self { lock, words: [0; 6] }))
    }
}

struct Exclusive<L>(ManuallyDrop<OwnLine<Guarding<L>>>);

// SAFETY: the lock's own promise; a reader excludes all other threads, too.
unsafe impl<L: Lock> Simulated for Exclusive<L> {
    fn lock(&self) {
        self.0.lock.lock();
    }

    fn try_lock(&self) -> bool {
        self.0.lock.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock.unlock() }
    }

    fn read(&self) -> Seat {
        self.0.lock.lock();
        Seat(Way::Any)
    }

    unsafe fn unlock_read(&self, _seat: Seat) {
        // SAFETY: `read` is `lock`.
        unsafe { self.0.lock.unlock() }
    }
}

impl<L> Guards for Exclusive<L> {
    fn beside(&self, access: Access) {
        touch(&self.0.words, access);
    }
}

/// A readers-writer lock.
///
/// # Safety
///
/// The conditions of [`Simulated`], and `NEW` is a free lock.
pub(super) unsafe trait ReadWrite: 'static {
    const NEW: Self;
    fn write(&self);
    fn try_write(&self) -> bool;
    /// # Safety
    ///
    /// The caller holds the lock for writing.
    unsafe fn unlock_write(&self);
    fn read(&self) -> Way;
    /// # Safety
    ///
    /// `read` of this lock has returned `way` to the caller.
    unsafe fn unlock_read(&self, way: Way);
}

/// A readers-writer lock on cache lines of its own, dropped as bytes.
struct Shared<L>(ManuallyDrop<OwnLine<Guarding<L>>>);

// SAFETY: the lock's own promise.
unsafe impl<L: ReadWrite> Simulated for Shared<L> {
    fn lock(&self) {
        self.0.lock.write();
    }

    fn try_lock(&self) -> bool {
        self.0.lock.try_write()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock.unlock_write() }
    }

    fn read(&self) -> Seat {
        Seat(self.0.lock.read())
    }

    unsafe fn unlock_read(&self, seat: Seat) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock.unlock_read(seat.0) }
    }
}

impl<L> Guards for Shared<L> {
    fn beside(&self, access: Access) {
        touch(&self.0.words, access);
    }
}

/// Implements [`ReadWrite`] by the inherent methods of the same names; the arguments give the
/// methods of readers.
macro_rules! read_write {
    (
        [$($parameters:tt)*] $type:ty,
        |$lock:ident| $read:expr,
        $way:pat => $leave:expr
    ) => {
        // SAFETY: the inherent methods are the lock's own, whose file argues for exclusion.
        unsafe impl<$($parameters)*> ReadWrite for $type {
            const NEW: Self = Self::NEW;

            fn write(&self) {
                self.write();
            }

            fn try_write(&self) -> bool {
                self.try_write()
            }

            unsafe fn unlock_write(&self) {
                // SAFETY: the caller's promise is the same.
                unsafe { self.unlock_write() }
            }

            fn read(&self) -> Way {
                let $lock = self;
                $read
            }

            unsafe fn unlock_read(&self, way: Way) {
                let $lock = self;
                match way {
                    // SAFETY: the caller's promise is the same.
                    $way => unsafe { $leave },
                    _ => unreachable!("a seat of another lock"),
                }
            }
        }
    };
}

const FEW: &str = "a simulation has fewer threads than a lock has room for readers";

read_write!(
    [Q: Policy, F: RwForm] ShflRwLock<Sim, Q, F>,
    |lock| { lock.read().expect(FEW); Way::Any },
    Way::Any => lock.unlock_read()
);
read_write!(
    [Q: Policy, F: RwForm] PerSocket<Sim, Q, F>,
    |lock| Way::PerSocket(lock.read().expect(FEW)),
    Way::PerSocket(seat) => lock.unlock_read(seat)
);
read_write!(
    [] CohortRw<Sim>,
    |lock| Way::Cohort(lock.read()),
    Way::Cohort(seat) => lock.unlock_read(seat)
);
read_write!(
    [] CstRwLock<Sim>,
    |lock| Way::Cst(lock.read()),
    Way::Cst(seat) => lock.unlock_read(seat)
);
read_write!(
    [] LinuxRwSem<Sim>,
    |lock| { lock.read(); Way::Any },
    Way::Any => lock.unlock_read()
);
