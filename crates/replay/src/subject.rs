//! The locks that a program can be given, by name.

use antiphon_sim::{OwnLine, Sim};
use antiphon_sync::lock::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sync::lock::numa::{Ahmcs, CBoMcs, CTktMcs, Cna, Hbo, Hclh, Hmcs, Malthusian};
use antiphon_sync::lock::{Lock, Recursive, ShflMutex, ShflRwLock, ShflSpin};
use antiphon_sync::policy::Numa;
use antiphon_trace::LockKind;

use crate::ideal::Ideal;

/// A lock as the threads of a replay use it.
///
/// # Safety
///
/// What excludes what is the implementation's to keep: as [`Lock`] says, and that of `read` and
/// `unlock_read`, which let in several at a time or are the same as the others.
pub(crate) unsafe trait Taken {
    fn lock(&self);
    fn read(&self);
    /// # Safety
    ///
    /// The caller has it by `lock`.
    unsafe fn unlock(&self);
    /// # Safety
    ///
    /// The caller has it by `read`.
    unsafe fn unlock_read(&self);
}

/// A lock that knows no readers.
struct Exclusive<L>(OwnLine<L>);

// SAFETY: the lock's own promise; a reader keeps everybody out, too.
unsafe impl<L: Lock> Taken for Exclusive<L> {
    fn lock(&self) {
        self.0.lock();
    }

    fn read(&self) {
        self.0.lock();
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock() };
    }

    unsafe fn unlock_read(&self) {
        // SAFETY: `read` is `lock`.
        unsafe { self.0.unlock() };
    }
}

type Rw = ShflRwLock<Sim, Numa, Recursive>;

struct ReadersWriter(OwnLine<Rw>);

// SAFETY: the lock's own promise.
unsafe impl Taken for ReadersWriter {
    fn lock(&self) {
        self.0.write();
    }

    fn read(&self) {
        // Refused: more readers than any simulation has threads.
        self.0.read().expect("fewer readers than a lock can count");
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock_write() };
    }

    unsafe fn unlock_read(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock_read() };
    }
}

type Make = fn() -> Box<dyn Taken>;

fn exclusive<L: Lock>() -> Box<dyn Taken> {
    Box::new(Exclusive(OwnLine(L::NEW)))
}

fn readers_writer() -> Box<dyn Taken> {
    Box::new(ReadersWriter(OwnLine(Rw::NEW)))
}

fn ideal() -> Box<dyn Taken> {
    Box::new(Ideal::default())
}

/// What all subjects but the ideal have for readers-writer locks.
pub const READERS_WRITER: &str = "shfl-rwlock+recursive";

/// What a replayed program gets for its locks.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name of what its mutexes are.
    pub name: &'static str,
    /// The name of what its spinlocks are.
    pub spin: &'static str,
    /// Whether `antiphon run` can put it under a program, or takes it away: glibc's own.
    pub deploys: bool,
    /// Whether unlocking needs no locked instruction.
    light: bool,
    mutex: Make,
    spinlock: Make,
}

/// The name of the lock that costs nothing, of every kind.
pub const IDEAL: &str = "ideal";

/// The subject that plays glibc's mutex: of the same kind, barging and asleep at once.
pub const GLIBC: &str = "futex";

const fn spin(name: &'static str, make: Make) -> Subject {
    Subject { name, spin: name, deploys: false, light: false, mutex: make, spinlock: make }
}

const fn ours(name: &'static str, light: bool) -> Subject {
    Subject {
        name,
        spin: "shfl-spin",
        deploys: true,
        light,
        mutex: exclusive::<ShflMutex<Sim, Numa>>,
        spinlock: exclusive::<ShflSpin<Sim, Numa>>,
    }
}

/// All subjects, the ideal one last. A lock that spins is used for spinlocks, too.
pub const SUBJECTS: [Subject; 19] = [
    ours("shfl-mutex", false),
    ours("shfl-mutex+light", true),
    Subject {
        name: GLIBC,
        spin: "ttas",
        deploys: true,
        light: false,
        mutex: exclusive::<Futex<Sim>>,
        spinlock: exclusive::<Ttas<Sim>>,
    },
    spin("shfl-spin", exclusive::<ShflSpin<Sim, Numa>>),
    spin("tas", exclusive::<Tas<Sim>>),
    spin("ttas", exclusive::<Ttas<Sim>>),
    spin("ticket", exclusive::<Ticket<Sim>>),
    spin("mcs", exclusive::<Mcs<Sim>>),
    spin("clh", exclusive::<Clh<Sim>>),
    spin("mcs-stp", exclusive::<McsStp<Sim>>),
    spin("cna", exclusive::<Cna<Sim>>),
    spin("hbo", exclusive::<Hbo<Sim>>),
    spin("hclh", exclusive::<Hclh<Sim>>),
    spin("hmcs", exclusive::<Hmcs<Sim>>),
    spin("ahmcs", exclusive::<Ahmcs<Sim>>),
    spin("cohort-bo-mcs", exclusive::<CBoMcs<Sim>>),
    spin("cohort-tkt-mcs", exclusive::<CTktMcs<Sim>>),
    spin("malthusian", exclusive::<Malthusian<Sim>>),
    spin(IDEAL, ideal),
];

impl Subject {
    /// The subject of that name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// Whether unlocking needs no locked instruction: then the machine has to allow it.
    pub(crate) fn light(&self) -> bool {
        self.light
    }

    pub(crate) fn make(&self, kind: LockKind) -> Box<dyn Taken> {
        match kind {
            LockKind::RwLock if self.name == IDEAL => ideal(),
            LockKind::RwLock => readers_writer(),
            LockKind::Spin => (self.spinlock)(),
            LockKind::Mutex | LockKind::Condition | LockKind::Rest => (self.mutex)(),
        }
    }
}
