//! The table of all locks that can be simulated, by name, for cases and for replays.
//!
//! A case or a replay is written once for all locks: it uses a lock as [`Simulated`], and the
//! dynamic dispatch costs no simulated time. Code with plain critical sections only uses a lock as
//! [`Sections`], which delegation locks implement as well.
//!
//! | module | contents |
//! |---|---|
//! | `instance` | locks that are taken and released, in a simulation |
//! | `delegated` | locks that critical sections are handed to |
//! | `ideal` | the lock that costs nothing |
//! | `noted` | policies whose steps are counted |

mod delegated;
mod ideal;
mod instance;
mod noted;

use antiphon_rivals::cst::CstRwLock;
use antiphon_rivals::numa::CohortRw;
use antiphon_rivals::stock::LinuxRwSem;
use antiphon_sim::{Machine, Sim};
use antiphon_sync::lock::{
    Central, GroupReaders, GroupWriters, Lock, PerSocket, Published, Recursive, ShflMutex,
    ShflRwLock, ShflSpin,
};
use antiphon_sync::policy::{self, Distance, Numa, Priority, Then, WakeUp};

pub use delegated::Sections;
use delegated::{Combining, Server, combining, served};
use ideal::Ideal;
pub use instance::{Guards, Instance, Seat, Simulated};
use instance::{ReadWrite, exclusive, shared};
use noted::Noted;

/// A lock by its name.
#[derive(Clone, Copy, Debug)]
pub struct SimLock {
    /// The name in the command's arguments.
    pub name: &'static str,
    /// Whether several readers may hold the lock at a time.
    pub shared: bool,
    /// Size of one lock object, in bytes.
    pub bytes: usize,
    /// Number of threads that each lock needs only to run the sections of others, on a CPU of their
    /// own.
    pub servers: usize,
    /// Whether its threads use the light half of the asymmetric fence.
    light: bool,
    make: Make,
}

/// How a lock is created.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// The lock is taken and released.
    Taken(fn() -> Instance),
    /// Critical sections are handed to it.
    Delegated(fn() -> Box<dyn Sections>),
}

impl SimLock {
    /// The lock of that name; `None` if the name is unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LOCKS.iter().find(|lock| lock.name == name)
    }

    /// An exclusive lock.
    #[must_use]
    pub const fn mutex<L: Lock>(name: &'static str) -> Self {
        Self::of(name, size_of::<L>(), Make::Taken(exclusive::<L>))
    }

    const fn rwlock<L: ReadWrite>(name: &'static str) -> Self {
        Self { shared: true, ..Self::of(name, size_of::<L>(), Make::Taken(shared::<L>)) }
    }

    const fn of(name: &'static str, bytes: usize, make: Make) -> Self {
        Self { name, shared: false, bytes, servers: 0, light: false, make }
    }

    const fn served(self) -> Self {
        Self { servers: 1, ..self }
    }

    const fn light(self) -> Self {
        Self { light: true, ..self }
    }

    /// Creates a free lock; `None` for a delegation lock, which only has
    /// [`sections`](Self::sections).
    #[must_use]
    pub fn instance(&self) -> Option<Instance> {
        match self.make {
            Make::Taken(make) => Some(make()),
            Make::Delegated(_) => None,
        }
    }

    /// Creates a free lock, for critical sections.
    #[must_use]
    pub fn sections(&self) -> Box<dyn Sections> {
        match self.make {
            Make::Taken(make) => make(),
            Make::Delegated(make) => make(),
        }
    }

    /// Returns whether critical sections are handed to the lock.
    #[must_use]
    pub fn delegates(&self) -> bool {
        matches!(self.make, Make::Delegated(_))
    }

    /// `machine`, with threads configured as this lock needs.
    #[must_use]
    pub fn on(&self, machine: &Machine) -> Machine {
        Machine { light: self.light, ..machine.clone() }
    }
}

type Sorted = Noted<Numa>;

/// The exclusive locks of the library, and forms of them.
const OURS: &[SimLock] = &[
    SimLock::mutex::<ShflMutex<Sim, Sorted>>("shfl-mutex"),
    SimLock::mutex::<ShflMutex<Sim, Sorted>>("shfl-mutex+light").light(),
    SimLock::mutex::<ShflMutex<Sim, Sorted, Published>>("shfl-mutex+published"),
    SimLock::mutex::<ShflMutex<Sim, Noted<policy::None>>>("shfl-mutex+none"),
    SimLock::mutex::<ShflMutex<Sim, Noted<Distance>>>("shfl-mutex+distance"),
    SimLock::mutex::<ShflMutex<Sim, Noted<Then<Priority, Numa>>>>("shfl-mutex+priority"),
    SimLock::mutex::<ShflMutex<Sim, Noted<Then<Numa, WakeUp>>>>("shfl-mutex+wake-up"),
    SimLock::mutex::<ShflSpin<Sim, Sorted>>("shfl-spin"),
];

/// The locks that sections are handed to.
const DELEGATED: &[SimLock] = &[
    SimLock::of("dsm-synch", size_of::<Combining>(), Make::Delegated(combining)),
    SimLock::of("rcl", size_of::<Server>(), Make::Delegated(served)).served(),
];

/// The readers-writer locks.
const SHARED: &[SimLock] = &[
    SimLock::rwlock::<ShflRwLock<Sim, Sorted>>("shfl-rwlock"),
    SimLock::rwlock::<ShflRwLock<Sim, Sorted, Central>>("shfl-rwlock+central"),
    SimLock::rwlock::<ShflRwLock<Sim, Sorted, Recursive>>("shfl-rwlock+recursive"),
    SimLock::rwlock::<ShflRwLock<Sim, Noted<GroupReaders>>>("shfl-rwlock+group-readers"),
    SimLock::rwlock::<ShflRwLock<Sim, Noted<GroupWriters>>>("shfl-rwlock+group-writers"),
    SimLock::rwlock::<PerSocket<Sim, Sorted>>("shfl-rwlock+per-socket"),
    SimLock::rwlock::<CohortRw<Sim>>("cohort-rw"),
    SimLock::rwlock::<CstRwLock<Sim>>("cst-rwlock"),
    SimLock::rwlock::<LinuxRwSem<Sim>>("linux-rwsem"),
];

/// The rows of a family of the registry.
macro_rules! sim_locks {
    (
        $family:ident:
        $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        &[$(SimLock::mutex::<antiphon_rivals::$family::$lock<Sim>>($name)),+]
    };
}

/// All lists, in the order of reports.
const LISTS: [&[SimLock]; 7] = [
    OURS,
    antiphon_rivals::locks!(classic => sim_locks),
    antiphon_rivals::locks!(numa => sim_locks),
    antiphon_rivals::locks!(cst => sim_locks),
    DELEGATED,
    antiphon_rivals::locks!(stock => sim_locks),
    SHARED,
];

const COUNT: usize = {
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        count += LISTS[list].len();
        list += 1;
    }
    count
};

/// All locks.
pub const LOCKS: [SimLock; COUNT] = {
    let mut all = [OURS[0]; COUNT];
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        let mut lock = 0;
        while lock < LISTS[list].len() {
            all[count] = LISTS[list][lock];
            (count, lock) = (count + 1, lock + 1);
        }
        list += 1;
    }
    all
};

/// The name of the lock that costs nothing, for every kind of lock.
pub const IDEAL: &str = "ideal";

/// The lock that costs nothing. It is not among [`LOCKS`], because it is only a bound for the
/// others.
pub(crate) const FREE: SimLock =
    SimLock { shared: true, ..SimLock::of(IDEAL, 0, Make::Taken(|| Box::new(Ideal::default()))) };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_lock() {
        for (place, lock) in LOCKS.iter().enumerate() {
            assert!(LOCKS[..place].iter().all(|other| other.name != lock.name));
            assert!(lock.bytes > 0 && SimLock::named(lock.name).is_some());
        }
        assert_eq!(SimLock::named("shfl-mutex").map(|lock| lock.bytes), Some(8));
        assert!(SimLock::named("cohort-rw").is_some_and(|lock| lock.shared));
        assert!(SimLock::named("fast").is_none());
    }

    #[test]
    fn a_lock_is_taken_or_delegated_to() {
        let delegated: Vec<_> = LOCKS.iter().filter(|lock| lock.delegates()).collect();
        let named: Vec<_> = delegated.iter().map(|lock| (lock.name, lock.servers)).collect();
        assert_eq!(named, [("dsm-synch", 0), ("rcl", 1)]);
        assert!(LOCKS.iter().all(|lock| lock.instance().is_none() == lock.delegates()));
        assert!(LOCKS.iter().all(|lock| lock.delegates() || lock.servers == 0));
    }
}
