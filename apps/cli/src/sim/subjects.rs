//! The locks that can be simulated, by name: the one table of them.
//!
//! A case is written once for all of them: it sees a lock as [`Simulated`], and the way to it
//! through a table of functions costs no simulated time.

use std::mem::ManuallyDrop;

use antiphon_sim::{Machine, OwnLine, Sim};
use antiphon_sync::lock::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sync::lock::cst::{CstMutex, CstRwLock};
use antiphon_sync::lock::numa::{
    Ahmcs, CBoMcs, CTktMcs, Cna, CohortRw, Hbo, Hclh, Hmcs, Malthusian,
};
use antiphon_sync::lock::stock::{LinuxMutex, LinuxRwSem, QSpinLock};
use antiphon_sync::lock::{
    GroupReaders, GroupWriters, Lock, PerSocket, Published, Recursive, RwForm, ShflMutex,
    ShflRwLock, ShflSpin,
};
use antiphon_sync::policy::{self, Distance, Numa, Policy, Priority, Then, WakeUp};

use super::noted::Noted;
use crate::bench::Family;

/// A lock of any kind, in a simulation.
pub trait Simulated {
    /// Takes it for writing.
    fn lock(&self);
    /// Takes it for writing, if it is free.
    fn try_lock(&self) -> bool;
    /// Gives it back.
    ///
    /// # Safety
    ///
    /// The caller has taken it.
    unsafe fn unlock(&self);
    /// Does `section` while it is read-locked; while it is locked, if it has no readers.
    fn read(&self, section: &mut dyn FnMut());
}

/// One of a subject, on lines of its own.
pub type Instance = Box<dyn Simulated>;

/// A lock by its name.
#[derive(Clone, Copy)]
pub struct Subject {
    /// As other verbs have it.
    pub name: &'static str,
    /// Who may be in together.
    pub family: Family,
    /// In each place where the lock is.
    pub bytes: usize,
    /// Whether its threads use the light half of the asymmetric fence.
    light: bool,
    make: fn() -> Instance,
}

impl Subject {
    /// A free one.
    pub fn instance(&self) -> Instance {
        (self.make)()
    }

    /// `machine`, with threads as this lock wants them.
    pub fn on(&self, machine: &Machine) -> Machine {
        Machine { light: self.light, ..machine.clone() }
    }

    const fn light(self) -> Self {
        Self { light: true, ..self }
    }
}

/// The subject of that name.
pub fn named(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}

/// The names of a family, in the order of the table.
pub fn names(family: Family) -> Vec<&'static str> {
    let of = |subject: &&Subject| subject.family == family;
    SUBJECTS.iter().filter(of).map(|subject| subject.name).collect()
}

type Sorted = Noted<Numa>;

/// All of them.
pub const SUBJECTS: [Subject; 34] = [
    mutex::<ShflMutex<Sim, Sorted>>("shfl-mutex"),
    mutex::<ShflMutex<Sim, Sorted>>("shfl-mutex+light").light(),
    mutex::<ShflMutex<Sim, Sorted, Published>>("shfl-mutex+published"),
    mutex::<ShflMutex<Sim, Noted<policy::None>>>("shfl-mutex+none"),
    mutex::<ShflMutex<Sim, Noted<Distance>>>("shfl-mutex+distance"),
    mutex::<ShflMutex<Sim, Noted<Then<Priority, Numa>>>>("shfl-mutex+priority"),
    mutex::<ShflMutex<Sim, Noted<Then<Numa, WakeUp>>>>("shfl-mutex+wake-up"),
    mutex::<ShflSpin<Sim, Sorted>>("shfl-spin"),
    mutex::<Tas<Sim>>("tas"),
    mutex::<Ttas<Sim>>("ttas"),
    mutex::<Ticket<Sim>>("ticket"),
    mutex::<Mcs<Sim>>("mcs"),
    mutex::<McsStp<Sim>>("mcs-stp"),
    mutex::<Clh<Sim>>("clh"),
    mutex::<Futex<Sim>>("futex"),
    mutex::<Hbo<Sim>>("hbo"),
    mutex::<Hclh<Sim>>("hclh"),
    mutex::<CBoMcs<Sim>>("cohort-bo-mcs"),
    mutex::<CTktMcs<Sim>>("cohort-tkt-mcs"),
    mutex::<Malthusian<Sim>>("malthusian"),
    mutex::<Hmcs<Sim>>("hmcs"),
    mutex::<Ahmcs<Sim>>("ahmcs"),
    mutex::<Cna<Sim>>("cna"),
    mutex::<CstMutex<Sim>>("cst-mutex"),
    mutex::<QSpinLock<Sim>>("qspinlock"),
    mutex::<LinuxMutex<Sim>>("linux-mutex"),
    rwlock::<ShflRwLock<Sim, Sorted>>("shfl-rwlock"),
    rwlock::<ShflRwLock<Sim, Sorted, Recursive>>("shfl-rwlock+recursive"),
    rwlock::<ShflRwLock<Sim, Noted<GroupReaders>>>("shfl-rwlock+group-readers"),
    rwlock::<ShflRwLock<Sim, Noted<GroupWriters>>>("shfl-rwlock+group-writers"),
    rwlock::<PerSocket<Sim, Sorted>>("shfl-rwlock+per-socket"),
    rwlock::<CohortRw<Sim>>("cohort-rw"),
    rwlock::<CstRwLock<Sim>>("cst-rwlock"),
    rwlock::<LinuxRwSem<Sim>>("linux-rwsem"),
];

/// A mutex of that name.
pub const fn mutex<L: Lock>(name: &'static str) -> Subject {
    let make = || -> Instance { Box::new(Exclusive(ManuallyDrop::new(OwnLine(L::NEW)))) };
    let bytes = size_of::<L>();
    Subject { name, family: Family::Exclusive, bytes, light: false, make }
}

const fn rwlock<L: ReadWrite>(name: &'static str) -> Subject {
    let make = || -> Instance { Box::new(Shared(ManuallyDrop::new(OwnLine(L::NEW)))) };
    let bytes = size_of::<L>();
    Subject { name, family: Family::Shared, bytes, light: false, make }
}

/// Dropped as bytes: nodes that a lock has belong to the simulation, and go with that.
struct Exclusive<L>(ManuallyDrop<OwnLine<L>>);

impl<L: Lock> Simulated for Exclusive<L> {
    fn lock(&self) {
        self.0.lock();
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock() }
    }

    fn read(&self, section: &mut dyn FnMut()) {
        self.0.lock();
        section();
        // SAFETY: locked above.
        unsafe { self.0.unlock() }
    }
}

/// A readers-writer lock, with what its readers leave by.
trait ReadWrite: 'static {
    type Seat;
    const NEW: Self;
    fn write(&self);
    fn try_write(&self) -> bool;
    /// # Safety
    ///
    /// The caller has it for writing.
    unsafe fn unlock_write(&self);
    fn read(&self) -> Self::Seat;
    /// # Safety
    ///
    /// The caller came by this seat.
    unsafe fn unlock_read(&self, seat: Self::Seat);
}

/// As [`Exclusive`].
struct Shared<L>(ManuallyDrop<OwnLine<L>>);

impl<L: ReadWrite> Simulated for Shared<L> {
    fn lock(&self) {
        self.0.write();
    }

    fn try_lock(&self) -> bool {
        self.0.try_write()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock_write() }
    }

    fn read(&self, section: &mut dyn FnMut()) {
        let seat = self.0.read();
        section();
        // SAFETY: read-locked above.
        unsafe { self.0.unlock_read(seat) }
    }
}

/// [`ReadWrite`] by the inherent methods of the same names.
macro_rules! read_write {
    ([$($parameters:tt)*] $lock:ty, $seat:ty, $read:expr, $leave:expr) => {
        impl<$($parameters)*> ReadWrite for $lock {
            type Seat = $seat;
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

            fn read(&self) -> $seat {
                $read(self)
            }

            unsafe fn unlock_read(&self, seat: $seat) {
                $leave(self, seat);
            }
        }
    };
}

const FEW: &str = "a simulation has fewer threads than a lock has room for readers";

read_write!(
    [Q: Policy, F: RwForm] ShflRwLock<Sim, Q, F>,
    (),
    |lock: &Self| Self::read(lock).expect(FEW),
    // SAFETY: the caller's promise is the same.
    |lock: &Self, ()| unsafe { Self::unlock_read(lock) }
);
read_write!(
    [Q: Policy, F: RwForm] PerSocket<Sim, Q, F>,
    antiphon_sync::lock::Seat,
    |lock: &Self| Self::read(lock).expect(FEW),
    // SAFETY: the caller's promise is the same.
    |lock: &Self, seat| unsafe { Self::unlock_read(lock, seat) }
);
read_write!(
    [] CohortRw<Sim>,
    antiphon_sync::lock::numa::Seat,
    |lock: &Self| Self::read(lock),
    // SAFETY: the caller's promise is the same.
    |lock: &Self, seat| unsafe { Self::unlock_read(lock, seat) }
);
read_write!(
    [] CstRwLock<Sim>,
    antiphon_sync::lock::cst::Seat<Sim>,
    |lock: &Self| Self::read(lock),
    // SAFETY: the caller's promise is the same.
    |lock: &Self, seat| unsafe { Self::unlock_read(lock, seat) }
);
read_write!(
    [] LinuxRwSem<Sim>,
    (),
    |lock: &Self| Self::read(lock),
    // SAFETY: the caller's promise is the same.
    |lock: &Self, ()| unsafe { Self::unlock_read(lock) }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_lock() {
        for (place, subject) in SUBJECTS.iter().enumerate() {
            assert!(SUBJECTS[..place].iter().all(|other| other.name != subject.name));
            assert!(subject.bytes > 0 && named(subject.name).is_some());
        }
        assert_eq!(named("shfl-mutex").map(|subject| subject.bytes), Some(8));
        assert!(names(Family::Shared).contains(&"cohort-rw") && named("fast").is_none());
    }
}
