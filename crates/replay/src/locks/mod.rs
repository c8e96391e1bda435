//! The locks that can be simulated, by name: the one table of them, for cases and for replays.
//!
//! A case or a replay is written once for all of them: it sees a lock as [`Simulated`], and the way
//! to it through a table of functions costs no simulated time. What has nothing but plain critical
//! sections sees a lock as [`Sections`], which those that sections are handed to are as well.
//!
//! | module | has |
//! |---|---|
//! | `instance` | a lock in a simulation that is taken and given back |
//! | `delegated` | one that critical sections are handed to |
//! | `ideal` | the one that costs nothing |
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
    /// As the command has it.
    pub name: &'static str,
    /// Whether readers are in together.
    pub shared: bool,
    /// In each place where the lock is.
    pub bytes: usize,
    /// How many threads each of it needs that do nothing but run the sections of others, on a CPU
    /// of their own.
    pub servers: usize,
    /// Whether its threads use the light half of the asymmetric fence.
    light: bool,
    make: Make,
}

/// How one is made.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// It is taken and given back.
    Taken(fn() -> Instance),
    /// Critical sections are handed to it.
    Delegated(fn() -> Box<dyn Sections>),
}

impl SimLock {
    /// The lock of that name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LOCKS.iter().find(|lock| lock.name == name)
    }

    /// A lock that one thread has at a time.
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

    /// A free one; `None` if it is not taken and given back, but critical sections are handed to
    /// it: then there are only its [`sections`](Self::sections).
    #[must_use]
    pub fn instance(&self) -> Option<Instance> {
        match self.make {
            Make::Taken(make) => Some(make()),
            Make::Delegated(_) => None,
        }
    }

    /// A free one, for critical sections.
    #[must_use]
    pub fn sections(&self) -> Box<dyn Sections> {
        match self.make {
            Make::Taken(make) => make(),
            Make::Delegated(make) => make(),
        }
    }

    /// Whether critical sections are handed to it.
    #[must_use]
    pub fn delegates(&self) -> bool {
        matches!(self.make, Make::Delegated(_))
    }

    /// `machine`, with threads as this lock wants them.
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

/// All of them.
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

/// The name of the lock that costs nothing, of every kind.
pub const IDEAL: &str = "ideal";

/// That lock. It is not among [`LOCKS`]: it is what is left to gain, and no lock.
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
