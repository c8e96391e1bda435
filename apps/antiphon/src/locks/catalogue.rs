//! All locks, with the properties that need no measurement. Sizes are those of the types in this
//! program.

use antiphon_linux::Linux;
use antiphon_platform::{Local, Waiter};
use antiphon_rivals::classic;
use antiphon_sync::lock::{ShflMutex, ShflRwLock, ShflSpin};

/// A group of locks that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One owner at a time.
    Exclusive,
    /// Readers together, or a writer alone.
    Shared,
}

impl Family {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "mutex",
            Self::Shared => "rwlock",
        }
    }
}

/// The properties of a lock.
#[derive(Clone, Copy)]
pub struct Lock {
    /// The name that all verbs use.
    pub name: &'static str,
    /// Which threads may hold it at the same time.
    pub family: Family,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The size of the lock itself, in bytes.
    pub bytes: usize,
    /// The memory besides the lock. `None` if the C library or the kernel allocates it.
    pub context: Option<Context>,
    /// The way in which a waiter waits.
    pub waits: &'static str,
    /// The order in which waiters are served.
    pub order: &'static str,
    /// Whether a wait may have a deadline.
    pub timed: bool,
}

/// Memory outside of the lock, shared by all locks.
#[derive(Clone, Copy)]
pub struct Context {
    /// Bytes for each waiter while it waits.
    pub waiter: usize,
    /// Bytes for each thread that has ever waited, never freed.
    pub thread: usize,
}

const NODES: Option<Context> =
    Some(Context { waiter: size_of::<Waiter<Linux>>(), thread: size_of::<Local<Linux>>() });
const NOTHING: Option<Context> = Some(Context { waiter: 0, thread: 0 });

const SORTED: &str = "free for all; the queue by socket";
const UNSORTED: &str = "free for all; the queue in order";
const NEAREST: &str = "free for all; the queue by distance";
const URGENT: &str = "free for all; the queue by urgency";
const BARGING: &str = "free for all";
const WRITERS: &str = "a waiting writer keeps readers out";
const READERS: &str = "readers pass a waiting writer";
const TURNS: &str = "readers and writers take turns";

const SPINS: &str = "spins";
const SPINS_AND_SLEEPS: &str = "spins, then sleeps";
const SLEEPS: &str = "sleeps";

const MUTEX: usize = size_of::<ShflMutex<Linux>>();
const RWLOCK: usize = size_of::<ShflRwLock<Linux>>();
const PTHREAD: usize = size_of::<libc::pthread_mutex_t>();
const PTHREAD_RW: usize = size_of::<libc::pthread_rwlock_t>();

/// The table: our mutexes, the locks of the registry, and the locks of others with our
/// readers-writer locks.
macro_rules! table {
    (
        [$($ours:expr,)+]
        [$($others:expr,)+]
        classic: $(
            $name:literal: $file:ident::$lock:ident, $bytes:literal,
            $memory:ident, $waits:literal, $order:literal, $model:tt;
        )+
    ) => {
        /// All locks of the table.
        pub const LOCKS: &[Lock] = &[
            $($ours,)+
            $(mutex($name, size_of::<classic::$lock<Linux>>(), $memory, $waits, $order),)+
            $($others,)+
        ];

        /// The locks that serve for comparison only.
        #[cfg(test)]
        pub const COMPARED: &[&str] = &[$($name),+];
    };
}

antiphon_rivals::locks!(classic => table
    [
        mutex("shfl-mutex", MUTEX, NODES, SPINS_AND_SLEEPS, SORTED).timed(),
        mutex("shfl-mutex+light", MUTEX, NODES, SPINS_AND_SLEEPS, SORTED).timed(),
        mutex("shfl-mutex+published", MUTEX, NODES, "the head spins, others sleep", SORTED).timed(),
        mutex("shfl-mutex+none", MUTEX, NODES, SPINS_AND_SLEEPS, UNSORTED).timed(),
        mutex("shfl-mutex+distance", MUTEX, NODES, SPINS_AND_SLEEPS, NEAREST).timed(),
        mutex("shfl-mutex+priority", MUTEX, NODES, SPINS_AND_SLEEPS, URGENT).timed(),
        mutex("shfl-mutex+wake-up", MUTEX, NODES, "the next is woken ahead", SORTED).timed(),
        mutex("shfl-spin", size_of::<ShflSpin<Linux>>(), NODES, SPINS, "queue by socket"),
    ]
    [
        mutex("glibc", PTHREAD, NOTHING, SLEEPS, BARGING).peer().timed(),
        mutex("glibc-adaptive", PTHREAD, NOTHING, SPINS_AND_SLEEPS, BARGING).peer().timed(),
        mutex("std", size_of::<std::sync::Mutex<()>>(), NOTHING, SPINS_AND_SLEEPS, BARGING).peer(),
        mutex("parking_lot", size_of::<parking_lot::RawMutex>(), None, SPINS_AND_SLEEPS, BARGING)
            .peer()
            .timed(),
        mutex("nsync", 2 * size_of::<u64>(), None, SPINS_AND_SLEEPS, BARGING).peer().timed(),
        mutex("absl", size_of::<u64>(), None, SPINS_AND_SLEEPS, BARGING).peer().timed(),
        rwlock("shfl-rwlock", RWLOCK, NODES, WRITERS).timed(),
        rwlock("shfl-rwlock+recursive", RWLOCK, NODES, READERS).timed(),
        rwlock("shfl-rwlock+group-readers", RWLOCK, NODES, WRITERS).timed(),
        rwlock("shfl-rwlock+group-writers", RWLOCK, NODES, WRITERS).timed(),
        Lock { waits: SLEEPS, ..rwlock("glibc", PTHREAD_RW, NOTHING, READERS).peer().timed() },
        Lock {
            waits: SLEEPS,
            ..rwlock("glibc-writer", PTHREAD_RW, NOTHING, WRITERS).peer().timed()
        },
        rwlock("std", size_of::<std::sync::RwLock<()>>(), NOTHING, WRITERS).peer(),
        rwlock("parking_lot", size_of::<parking_lot::RawRwLock>(), None, TURNS).peer().timed(),
    ]
);

const fn mutex(
    name: &'static str,
    bytes: usize,
    context: Option<Context>,
    waits: &'static str,
    order: &'static str,
) -> Lock {
    let family = Family::Exclusive;
    Lock { name, family, ours: true, bytes, context, waits, order, timed: false }
}

const fn rwlock(
    name: &'static str,
    bytes: usize,
    context: Option<Context>,
    order: &'static str,
) -> Lock {
    Lock { family: Family::Shared, ..mutex(name, bytes, context, SPINS_AND_SLEEPS, order) }
}

impl Lock {
    const fn timed(self) -> Self {
        Self { timed: true, ..self }
    }

    const fn peer(self) -> Self {
        Self { ours: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_those_that_are_promised() {
        let bytes = |name| LOCKS.iter().find(|lock| lock.name == name).map(|lock| lock.bytes);
        assert_eq!((bytes("shfl-mutex"), bytes("shfl-rwlock")), (Some(8), Some(16)));
        assert_eq!(bytes("shfl-spin"), Some(4));
    }
}
