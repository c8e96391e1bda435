//! Sets of locks for a replayed program: one lock of each kind, named after the mutex.

use antiphon_sim::Machine;
use antiphon_trace::LockKind;

use crate::locks::{FREE, IDEAL, Instance, LOCKS, SimLock};

/// The readers-writer lock of most subjects: it admits a reader that already holds it.
const READERS_WRITER: &str = "shfl-rwlock+recursive";

/// The subject in place of glibc's mutex: of the same kind, with barging and without spinning.
pub const GLIBC: &str = "futex";

/// The set of locks that a replayed program gets.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name of its mutex.
    pub name: &'static str,
    /// The lock in place of mutexes.
    pub mutex: &'static SimLock,
    /// The lock in place of spinlocks.
    pub spin: &'static SimLock,
    /// The lock in place of readers-writer locks.
    pub rwlock: &'static SimLock,
}

impl Subject {
    /// All subjects, the ideal one last: one for each exclusive lock that is taken and released, as
    /// in a recording.
    pub fn all() -> impl Iterator<Item = Self> {
        let mutexes = LOCKS.iter().filter(|lock| !lock.shared && !lock.delegates());
        mutexes.chain([&FREE]).map(Self::of)
    }

    /// The subject of that name; `None` if the name is unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|subject| subject.name == name)
    }

    /// A lock that spins is used for spinlocks, too. CST and the kernel have readers-writer locks
    /// of their own, which a thread may not take twice; no replay does that (see `stage`).
    fn of(mutex: &'static SimLock) -> Self {
        let lock = |name| SimLock::named(name).expect("in the table, as a test sees");
        let (spin, rwlock) = match mutex.name {
            IDEAL => (mutex, mutex),
            GLIBC => (lock("ttas"), lock(READERS_WRITER)),
            "cst-mutex" => (mutex, lock("cst-rwlock")),
            "qspinlock" | "linux-mutex" => (lock("qspinlock"), lock("linux-rwsem")),
            name if name.starts_with("shfl-mutex") => (lock("shfl-spin"), lock(READERS_WRITER)),
            _ => (mutex, lock(READERS_WRITER)),
        };
        Self { name: mutex.name, mutex, spin, rwlock }
    }

    /// Returns whether `antiphon run` can run a program with this subject; glibc's lock counts,
    /// too.
    #[must_use]
    pub fn deploys(&self) -> bool {
        matches!(self.name, GLIBC | "shfl-mutex" | "shfl-mutex+light")
    }

    /// `machine`, with threads configured as the mutex needs.
    pub(crate) fn on(&self, machine: &Machine) -> Machine {
        self.mutex.on(machine)
    }

    pub(crate) fn make(&self, kind: LockKind) -> Instance {
        let lock = match kind {
            LockKind::RwLock => self.rwlock,
            LockKind::Spin => self.spin,
            LockKind::Mutex | LockKind::Condition | LockKind::Rest => self.mutex,
        };
        lock.instance().expect("no subject delegates, as a test sees")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_a_lock_of_each_kind() {
        let all: Vec<_> = Subject::all().collect();
        let delegate = |subject: &Subject| {
            [subject.mutex, subject.spin, subject.rwlock].iter().any(|lock| lock.delegates())
        };
        assert!(!all.iter().any(delegate) && Subject::named("dsm-synch").is_none());
        let taken = LOCKS.iter().filter(|lock| !lock.shared && !lock.delegates());
        assert_eq!(all.len(), 1 + taken.count());
        assert!(all.iter().all(|subject| !subject.spin.shared || subject.name == IDEAL));
        assert!(all.iter().all(|subject| subject.rwlock.shared));
        assert_eq!(all.last().map(|subject| subject.name), Some(IDEAL));
        assert_eq!(all.iter().filter(|subject| subject.deploys()).count(), 3);
        let linux = Subject::named("linux-mutex").expect("a subject");
        assert_eq!((linux.spin.name, linux.rwlock.name), ("qspinlock", "linux-rwsem"));
    }
}
