//! The contents of a recording, in the form that readers need.
//!
//! Records refer to each other by position in the vectors of the [`Snapshot`].

use crate::layout::WAIT_HELD;
use crate::{Histogram, Kind, Module, Program, Scope};

/// All of a recording at some moment. Counts may be ahead of one another by the events that were
/// going on.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// How much was recorded; `None` in an empty snapshot.
    pub scope: Option<Scope>,
    /// Programs that have loaded the library, whether they wrote or not.
    pub started: u64,
    /// How often a program loaded objects that find the C library's functions before ours
    /// (`dlmopen`, `RTLD_DEEPBIND`).
    pub bypasses: u64,
    /// Mutexes that processes share without the flag for that.
    pub strangers: Strangers,
    /// The processes that wrote; of those that only started, as many as there was ample room for.
    pub processes: Vec<Process>,
    /// Call sites: where a lock function was called from.
    pub sites: Vec<Site>,
    /// The locks and condition variables.
    pub locks: Vec<Lock>,
    /// The events of each lock at each site.
    pub rows: Vec<Row>,
    /// The callers with which threads waited at each row.
    pub stacks: Vec<Stack>,
    /// The threads that waited (`Scope::Full`: that took a lock).
    pub threads: Vec<Thread>,
    /// How many locks the thread held already, each time that one was taken; the last counts "or
    /// more". `Scope::Full` only.
    pub depths: Vec<u64>,
    /// Which lock was taken while which was held, unless it was only tried. `Scope::Full` only.
    pub edges: Vec<Edge>,
    /// The programs that were executed by processes with the library in them.
    pub programs: Vec<Program>,
    /// The events that are missing.
    pub dropped: Dropped,
    /// Records that name another which is not there: they were being written, by a process that
    /// was still running, or a program has written over its recording. They are left out.
    pub unfinished: u64,
}

impl Snapshot {
    /// Counts the waits that go on as if each had ended at the time that `end_ns` returns, of the
    /// monotonic clock: for a recording that no process writes to any more, in which they are
    /// missing otherwise. If that time is before the wait began, the wait has no length. Returns
    /// these waits.
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
                // A program may have written over its recording.
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
    /// none again; `None` unless all acquisitions were recorded. Those of the C library's own and
    /// spinlocks, whose releases are not seen, don't count.
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
    /// The process that it was forked from, if that wrote too and it has executed nothing since.
    pub parent: Option<usize>,
    /// When it first wrote, in nanoseconds of the monotonic clock.
    pub began_ns: u64,
    /// Whether its mutexes are in the light form.
    pub light: bool,
    /// Whether it was in another process namespace than the reader: its ids, and those of its
    /// threads, mean others there, or none.
    pub elsewhere: bool,
}

/// Waiters of another process that were found at a mutex in shared memory which is not flagged
/// `PTHREAD_PROCESS_SHARED`: no thread can wake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// How often such waiters were found.
    pub count: u64,
    /// The address of the last such mutex, in the memory of the process that found them; 0 for
    /// none.
    pub lock: u64,
}

/// Where a lock function was called.
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
    /// Its address in that process's memory. Another lock may have stood there earlier or later.
    pub address: u64,
    /// Its kind; [`Kind::RwLock`] for readers-writer locks.
    pub kind: Kind,
    /// Where it was seen first; `None` if the table of sites was full.
    pub first_site: Option<usize>,
}

/// The events of one lock at one site.
#[derive(Clone, Debug)]
pub struct Row {
    /// The lock. For the row of all that found a table full, one of kind [`Kind::Rest`].
    pub lock: usize,
    /// The lock's kind; of a readers-writer lock how it was taken, [`Kind::Read`] or
    /// [`Kind::Write`].
    pub kind: Kind,
    /// The site; `None` if the table of sites was full.
    pub site: Option<usize>,
    /// How often the lock was had here: under `Scope::Contended` after a wait only. Of a condition
    /// variable, how often it was notified here.
    pub acquisitions: u64,
    /// How often a thread had to wait here.
    pub contended: u64,
    /// How many of those waits ended without the lock. Where a condition variable is notified, how
    /// many notifications found no waiter, as far as that is known.
    pub gave_up: u64,
    /// How many of those waits never ended: those that [`Snapshot::close_waits`] has closed.
    pub still_waiting: u64,
    /// How long the waits were.
    pub wait: Histogram,
    /// How long the lock was held after it was taken here. `Scope::Full` only.
    pub hold: Histogram,
}

/// The callers of a site, with which threads waited at a row. A thread's stack is taken now and
/// then, so these are some of the row's waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The row.
    pub row: usize,
    /// The callers' own sites, the innermost first; `None` where the table of sites was full.
    pub callers: Vec<Option<usize>>,
    /// Whether they are all, up to where the thread began.
    pub whole: bool,
    /// How many waits began so.
    pub waits: u64,
    /// How long they were, in nanoseconds.
    pub wait_ns: u64,
}

/// Nanoseconds that a thread was blocked, by the kind of object that it was blocked in.
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
    /// How long it waited.
    pub blocked: Blocked,
    /// How often it waited.
    pub waits: u64,
    /// How often it had a lock: under `Scope::Contended` after a wait only.
    pub acquisitions: u64,
    /// The wait that goes on now.
    pub waiting: Option<Waiting>,
    /// How many locks it took in one go. `Scope::Full` only.
    pub nests: Nests,
}

/// How many locks a thread took from the first one until it held none again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nests {
    /// How often it took one while it held none.
    pub count: u64,
    /// All locks that it took.
    pub locks: u64,
    /// The most in one go.
    pub most: u64,
}

/// A wait that is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The lock.
    pub lock: usize,
    /// The lock at the site, as a position in the rows.
    pub row: usize,
    /// Where it waits; `None` if the table of sites was full.
    pub site: Option<usize>,
    /// When the wait began, in nanoseconds of the monotonic clock.
    pub since_ns: u64,
    /// Locks that the thread held then, as positions in the rows at which it took them, the last
    /// one first; of many the first few. `Scope::Full` only.
    pub held: [Option<usize>; WAIT_HELD],
    /// The stack with which it began, if one was taken.
    pub stack: Option<usize>,
}

/// A wait that went on when the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The thread.
    pub thread: usize,
    /// The wait.
    pub waiting: Waiting,
    /// How long it was, up to the end.
    pub waited_ns: u64,
}

/// One lock taken while another was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The lock that was held: the one taken last before, or one before that, if those in between
    /// were only tried.
    pub held: usize,
    /// The lock that was taken.
    pub taken: usize,
    /// How often; where other locks stood at these addresses earlier, theirs included.
    pub count: u64,
    /// Where each was taken when that was first seen, as positions in the rows.
    pub rows: [Option<usize>; 2],
    /// Which of the locks that stood at its address each is.
    pub lives: [u32; 2],
    /// Locks that were held every time, beside that one: some of them, if they are many.
    pub guards: Vec<usize>,
}

/// Events that found a table full, by table. Waits among them are in the last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Processes that recorded nothing.
    pub processes: u64,
    /// Sites whose module has no name.
    pub modules: u64,
    /// Events without a site.
    pub sites: u64,
    /// Events whose lock is not told apart.
    pub locks: u64,
    /// Events that went to the last row.
    pub rows: u64,
    /// Events of threads that are not told apart.
    pub threads: u64,
    /// Stacks that were not kept.
    pub stacks: u64,
    /// Pairs of locks.
    pub edges: u64,
    /// Executed programs that are not named.
    pub programs: u64,
}
