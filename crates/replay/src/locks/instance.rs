//! A lock in a simulation, whatever it is.

use std::mem::ManuallyDrop;

use antiphon_rivals::cst::CstRwLock;
use antiphon_rivals::numa::CohortRw;
use antiphon_rivals::stock::LinuxRwSem;
use antiphon_sim::{Access, OwnLine, Sim, touch};
use antiphon_sync::lock::{Lock, PerSocket, RwForm, ShflRwLock};
use antiphon_sync::policy::Policy;

use super::delegated::Sections;

/// A lock with words declared behind it.
pub trait Guards {
    /// Accesses the six words that are declared behind it, which are on its line if it leaves
    /// them room. Takes its time.
    fn beside(&self, access: Access);
}

/// A lock of any kind that is taken and given back, in a simulation.
///
/// # Safety
///
/// The implementation keeps exclusion: `unlock` and `unlock_read` release what `lock`, `try_lock`
/// and `read` acquired, with the orderings that exclusion needs.
pub unsafe trait Simulated: Sections {
    /// Takes it for writing.
    fn lock(&self);
    /// Takes it for writing, if it is free.
    fn try_lock(&self) -> bool;
    /// Gives it back.
    ///
    /// # Safety
    ///
    /// The caller has taken it for writing.
    unsafe fn unlock(&self);
    /// Takes it for reading; as `lock`, if it has no readers.
    fn read(&self) -> Seat;
    /// Gives it back.
    ///
    /// # Safety
    ///
    /// The caller got this seat from `read` of this lock.
    unsafe fn unlock_read(&self, seat: Seat);
}

/// One of a lock, on lines of its own.
pub type Instance = Box<dyn Simulated>;

/// How a reader is in: what it leaves by.
#[must_use = "a reader leaves by its seat"]
pub struct Seat(pub(super) Way);

/// The way that each lock records it.
pub(super) enum Way {
    /// All leave alike.
    Any,
    PerSocket(antiphon_sync::lock::Seat),
    Cohort(antiphon_rivals::numa::Seat),
    Cst(antiphon_rivals::cst::Seat<Sim>),
}

/// Makes one of a lock that only one has.
pub(super) fn exclusive<L: Lock>() -> Instance {
    Box::new(Exclusive(Guarding::new(L::NEW)))
}

/// Makes one of a readers-writer lock.
pub(super) fn shared<L: ReadWrite>() -> Instance {
    Box::new(Shared(Guarding::new(L::NEW)))
}

/// A lock, and words behind it. Dropped as bytes: nodes that a lock has belong to the simulation,
/// and go with that.
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

// SAFETY: the lock's own promise; a reader keeps all other threads out, too.
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
/// As [`Simulated`], and `NEW` is a free lock.
pub(super) unsafe trait ReadWrite: 'static {
    const NEW: Self;
    fn write(&self);
    fn try_write(&self) -> bool;
    /// # Safety
    ///
    /// The caller has it for writing.
    unsafe fn unlock_write(&self);
    fn read(&self) -> Way;
    /// # Safety
    ///
    /// The caller is in by this way.
    unsafe fn unlock_read(&self, way: Way);
}

/// As [`Exclusive`].
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

/// [`ReadWrite`] by the inherent methods of the same names; how one reads, and how one leaves by
/// which way.
macro_rules! read_write {
    (
        [$($parameters:tt)*] $type:ty,
        |$lock:ident| $read:expr,
        $way:pat => $leave:expr
    ) => {
        // SAFETY: the inherent methods are the lock's own; each file argues for them.
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
