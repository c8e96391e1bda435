//! The contents of a recording, in the form that readers need.
//!
//! Records refer to each other by position in the vectors of the [`Snapshot`].

use crate::layout::WAIT_HELD;
use crate::{Histogram, Kind, Module, Program, Scope};

/// All of a recording at some moment. Counts may differ by the events that were in progress.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// How much was recorded; `None` in an empty snapshot.
    pub scope: Option<Scope>,
    /// Number of programs that have loaded the library, whether they wrote or not.
    pub started: u64,
    /// Number of times that a program loaded objects which find the C library's functions before
    /// ours (`dlmopen`, `RTLD_DEEPBIND`).
    pub bypasses: u64,
    /// Mutexes that processes share without the flag for that.
    pub strangers: Strangers,
    /// The processes that wrote, and those that only started, as far as there was ample room.
    pub processes: Vec<Process>,
    /// Call sites: where a lock function was called from.
    pub sites: Vec<Site>,
    /// The locks and condition variables.
    pub locks: Vec<Lock>,
    /// The counts of each lock at each site.
    pub rows: Vec<Row>,
    /// The callers with which threads waited at each row.
    pub stacks: Vec<Stack>,
    /// The threads that waited (`Scope::Full`: that took a lock).
    pub threads: Vec<Thread>,
    /// Acquisitions by the number of locks that the thread already held; the last counts "or more".
    /// `Scope::Full` only.
    pub depths: Vec<u64>,
    /// Pairs of a lock that was held and one that was taken meanwhile, unless that was only tried.
    /// `Scope::Full` only.
    pub edges: Vec<Edge>,
    /// The programs that processes with the library executed.
    pub programs: Vec<Program>,
    /// The events that are missing.
    pub dropped: Dropped,
    /// Number of records left out because they refer to a missing record: a running process was
    /// writing them, or a program has overwritten its recording.
    pub unfinished: u64,
}

impl Snapshot {
    /// Counts the waits in progress as if each had ended at the time that `end_ns` returns, by the
    /// monotonic clock: for a recording that no process writes to any more, where they would be
    /// missing. If that time is before the wait began, the wait has length 0. Returns these waits.
    pub fn close_waits(
        &mut self,
        end_ns: impl Fn(&Process, &Thread, &Waiting) -> u64,
    ) -> Vec<Closed> {
        let mut closed = Vec::new();
        for (at, thread) in self.threads.iter_mut().enumerate() {
            let Some(waiting) = thread.waiting else { continue };
            let Some(process) = self.processes.get(thread.process) else { continue };
            let Some(row) = self.rows.get_mut(waiting.row) else { continue };
            let ns = end_ns(process, thread, &waiting).saturating_sub(waiting.since_ns);
            thread.waiting = None;
            thread.waits += 1;
            match row.kind {
                Kind::Condition => thread.blocked.condition_ns += ns,
                Kind::Spin => thread.blocked.spin_ns += ns,
                Kind::Read | Kind::Write => thread.blocked.rwlock_ns += ns,
                _ => thread.blocked.mutex_ns += ns,
            }
            row.contended += 1;
            row.still_waiting += 1;
            row.wait.count_one(ns);
            if let Some(stack) = waiting.stack.and_then(|stack| self.stacks.get_mut(stack)) {
                // A program may have overwritten its recording.
                stack.waits = stack.waits.saturating_add(1);
                stack.wait_ns = stack.wait_ns.saturating_add(ns);
            }
            closed.push(Closed { thread: at, waiting, waited_ns: ns });
        }
        closed
    }

    /// The mean and the largest number of locks that a thread held when it took one (that one
    /// included); `None` unless all acquisitions were recorded.
    #[must_use]
    pub fn depth(&self) -> Option<(f64, u64)> {
        let total: u64 = self.depths.iter().sum();
        let weighted: u64 = (1..).zip(&self.depths).map(|(depth, count)| depth * count).sum();
        let deepest = (1..).zip(&self.depths).filter(|(_, count)| **count != 0).last()?;
        Some((weighted as f64 / total as f64, deepest.0))
    }

    /// The mean and the largest number of locks that a thread took from the first one until it held
    /// none again; `None` unless all acquisitions were recorded. Locks that the C library keeps,
    /// and spinlocks, whose releases are not seen, don't count.
    #[must_use]
    pub fn nests(&self) -> Option<(f64, u64)> {
        let sum = |of: fn(&Nests) -> u64| self.threads.iter().map(|t| of(&t.nests)).sum::<u64>();
        let (nests, locks) = (sum(|nests| nests.count), sum(|nests| nests.locks));
        let most = self.threads.iter().map(|thread| thread.nests.most).max()?;
        (nests > 0).then(|| (locks as f64 / nests as f64, most))
    }
}

/// A process that wrote into the recording: a program, or a child that it forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The kernel's id.
    pub pid: u32,
    /// The process that it was forked from, if that wrote too and this process has executed no
    /// program since.
    pub parent: Option<usize>,
    /// Time of its first record, in nanoseconds of the monotonic clock.
    pub began_ns: u64,
    /// Whether its mutexes are in the light form.
    pub light: bool,
    /// Whether it was in another process namespace than the reader's, where its ids and those of
    /// its threads name others, or none.
    pub elsewhere: bool,
}

/// Waiters of another process that were found at a mutex in shared memory which is not flagged
/// `PTHREAD_PROCESS_SHARED`: no thread can wake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Number of times that such waiters were found.
    pub count: u64,
    /// The address of the last such mutex, in the memory of the process that found them; 0 for
    /// none.
    pub lock: u64,
}

/// A call of a lock function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The process.
    pub process: usize,
    /// The return address in that process's memory.
    pub address: u64,
    /// The file that was mapped there; `None` for code that is in no file.
    pub module: Option<Module>,
    /// The return address as an offset in that file (not a virtual address of its program headers).
    pub offset: u64,
}

/// A lock or a condition variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The process.
    pub process: usize,
    /// Its address in that process's memory. Another lock may have been there earlier or later.
    pub address: u64,
    /// Its kind; [`Kind::RwLock`] for readers-writer locks.
    pub kind: Kind,
    /// The site where it was seen first; `None` if the table of sites was full.
    pub first_site: Option<usize>,
    /// The site where it was initialised; `None` if it was not, as a lock with a static
    /// initialiser, or if that is not known.
    pub made_site: Option<usize>,
}

/// The counts of one lock at one site.
#[derive(Clone, Debug)]
pub struct Row {
    /// The lock. For the common row of events that found a table full, a lock of kind
    /// [`Kind::Rest`].
    pub lock: usize,
    /// The lock's kind; for a readers-writer lock, [`Kind::Read`] or [`Kind::Write`].
    pub kind: Kind,
    /// The site; `None` if the table of sites was full.
    pub site: Option<usize>,
    /// Number of acquisitions here: under `Scope::Contended` only those after a wait. For a
    /// condition variable, number of notifications here.
    pub acquisitions: u64,
    /// Number of waits here.
    pub contended: u64,
    /// Number of those waits that ended without the lock. Where a condition variable is notified,
    /// number of notifications without a waiter, as far as known.
    pub gave_up: u64,
    /// Number of calls here that did not wait, such as `pthread_mutex_trylock`, and found the lock
    /// taken.
    pub refused: u64,
    /// Number of those waits that never ended: those that [`Snapshot::close_waits`] has closed.
    pub still_waiting: u64,
    /// Lengths of the waits.
    pub wait: Histogram,
    /// Lengths of the holds after acquisitions here. `Scope::Full` only.
    pub hold: Histogram,
}

/// The callers of a site, with which threads waited at a row. A thread's stack is taken from time
/// to time, so only some of the row's waits have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The row.
    pub row: usize,
    /// The callers' own sites, the innermost first; `None` where the table of sites was full.
    pub callers: Vec<Option<usize>>,
    /// Whether the callers are complete, up to where the thread began.
    pub whole: bool,
    /// Number of waits with this stack.
    pub waits: u64,
    /// Total length of those waits, in nanoseconds.
    pub wait_ns: u64,
}

/// Time that a thread was blocked, in nanoseconds, by kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// Mutexes.
    pub mutex_ns: u64,
    /// Condition variables.
    pub condition_ns: u64,
    /// Spinlocks.
    pub spin_ns: u64,
    /// Readers-writer locks.
    pub rwlock_ns: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process.
    pub process: usize,
    /// The kernel's thread id.
    pub tid: u32,
    /// Time that it was blocked.
    pub blocked: Blocked,
    /// Number of its waits.
    pub waits: u64,
    /// Number of its acquisitions: under `Scope::Contended` only those after a wait.
    pub acquisitions: u64,
    /// The wait in progress.
    pub waiting: Option<Waiting>,
    /// Number of locks that it took from holding none to holding none again. `Scope::Full` only.
    pub nests: Nests,
}

/// Number of locks that a thread took from the first one until it held none again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nests {
    /// Number of times that it took a lock while it held none.
    pub count: u64,
    /// Number of all locks that it took.
    pub locks: u64,
    /// Most locks that it took until it held none again.
    pub most: u64,
}

/// A wait in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The lock.
    pub lock: usize,
    /// The row of the lock and the site.
    pub row: usize,
    /// The site of the wait; `None` if the table of sites was full.
    pub site: Option<usize>,
    /// When the wait began, in nanoseconds of the monotonic clock.
    pub since_ns: u64,
    /// Locks that the thread held then, as the rows at which it took them, the latest first, up to
    /// a few. `Scope::Full` only.
    pub held: [Option<usize>; WAIT_HELD],
    /// The stack at its beginning, if one was taken.
    pub stack: Option<usize>,
}

/// A wait that was in progress when the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The thread.
    pub thread: usize,
    /// The wait.
    pub waiting: Waiting,
    /// Its length up to the end of the recording, in nanoseconds.
    pub waited_ns: u64,
}

/// One lock taken while another was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The lock that was held: the last one taken before, or an earlier one, if those in between
    /// were only tried.
    pub held: usize,
    /// The lock that was taken.
    pub taken: usize,
    /// Number of times; includes earlier locks at these addresses.
    pub count: u64,
    /// The rows at which each was taken when the edge was first seen.
    pub rows: [Option<usize>; 2],
    /// The number of each lock among those that have been at its address.
    pub lives: [u32; 2],
    /// Other locks that were always held: some of them, if they are many.
    pub guards: Vec<usize>,
}

/// Number of events that found a table full, by table. Waits among them are in the common row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Processes that recorded nothing.
    pub processes: u64,
    /// Sites whose module has no name.
    pub modules: u64,
    /// Events without a site.
    pub sites: u64,
    /// Events whose lock is not identified.
    pub locks: u64,
    /// Events that went to the common row.
    pub rows: u64,
    /// Events of threads that are not identified.
    pub threads: u64,
    /// Stacks that were not recorded.
    pub stacks: u64,
    /// Pairs of locks that were not recorded.
    pub edges: u64,
    /// Executed programs that were not recorded.
    pub programs: u64,
}
