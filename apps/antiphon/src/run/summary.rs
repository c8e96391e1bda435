//! The report of a run: combines the recording from inside and the samples from outside.
//!
//! | waited for | known from | reachable |
//! |---|---|---|
//! | `mutex`, `rwlock`, `condition`, `spin` | the recording: each wait, to the nanosecond | yes |
//! | `raw_futex`, `semaphore`, `join`, `io`, `sleep`, `other` | samples | no |
//! | `run_queue` | the kernel's own count | no |
//!
//! A recorded wait lasts until its thread runs again, so a part of it may be in `run_queue` too. A
//! thread in a recorded wait is not sampled. A wait that has not ended counts up to the end of the
//! run.
//!
//! *Reachable* is the waiting that a preloaded library can reduce. The share is of all blocked time
//! except sleep, because no other thread keeps a sleep from ending.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use antiphon_record::{Closed, Dropped, Histogram, Kind, Row, Snapshot};
use serde_json::{Value, json};

use super::callers::Callers;
use super::children::{self, Unreached};
use super::classes;
use super::coop::CoopReport;
use super::facts::Run;
use super::home::Home;
use super::names::{self, Variables, pid, site};
use super::notes;
use super::order::Order;
use super::places::Slept;
use super::sampler::Sampled;
use super::sleepers::Sleeper;
use super::unseen;
use super::waits::Wait;
use crate::preload;
use crate::record::Written;
use crate::symbols::{CallSite, Symbols};
use crate::verdict;

pub use super::rows::LockRow;

/// The name of a condition variable's kind.
pub const CONDITION: &str = Kind::Condition.name();
/// The name of the kind of a readers-writer lock that is taken to read.
pub const READ: &str = Kind::Read.name();

/// The waits and the work of a thread of the program.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRow {
    /// Its process.
    pub pid: u32,
    /// The kernel's id.
    pub tid: u32,
    /// The time that it waited, by kind of lock.
    pub blocked: antiphon_record::Blocked,
    /// Number of waits.
    pub waits: u64,
    /// Number of acquisitions; without a profile, of those after a wait.
    pub acquisitions: u64,
}

impl ThreadRow {
    /// The total time that it waited, in nanoseconds.
    pub fn blocked_ns(&self) -> u64 {
        let blocked = &self.blocked;
        blocked.mutex_ns + blocked.rwlock_ns + blocked.condition_ns + blocked.spin_ns
    }
}

/// A thread that was waiting for a lock when the run ended.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// Its process.
    pub pid: u32,
    /// The kernel's id.
    pub tid: u32,
    /// The address of the lock that it waited for.
    pub address: u64,
    /// What names this lock in a sentence: its variable, or where it was initialised.
    pub name: Option<String>,
    /// The call site where it waited.
    pub site: CallSite,
    /// The time that it had waited, in nanoseconds.
    pub waited_ns: u64,
    /// Locks that it held meanwhile, and where it took them; of many locks the first few. Only a
    /// profile records them.
    pub held: Vec<(u64, CallSite)>,
}

impl Stuck {
    /// The lock in a sentence.
    pub fn lock(&self) -> &str {
        self.name.as_deref().unwrap_or("a lock")
    }
}

/// Blocked time of threads, in seconds, by what blocked them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocked {
    /// Mutexes that were replaced, or observed as glibc's.
    pub mutex: f64,
    /// Readers-writer locks that were replaced, or observed as glibc's.
    pub rwlock: f64,
    /// Condition variables that were replaced, or observed as glibc's.
    pub condition: f64,
    /// Spinlocks that were replaced, or observed as glibc's.
    pub spin: f64,
    /// Futexes that the library does not see.
    pub raw_futex: f64,
    /// Semaphores.
    pub semaphore: f64,
    /// The end of threads and processes.
    pub join: f64,
    /// Devices, pipes, sockets, pages.
    pub io: f64,
    /// Times and signals.
    pub sleep: f64,
    /// Anything else.
    pub other: f64,
    /// Ready to run, without a CPU.
    pub run_queue: f64,
}

/// Everything that a report shows.
pub struct Report {
    /// The run.
    pub run: Run,
    /// Number of programs that loaded the library, plus their forked children that recorded
    /// something.
    pub processes: usize,
    /// Number of threads that were sampled or have recorded something, whichever is more.
    pub threads: usize,
    /// Rows by lock and site, most waiting first.
    pub locks: Vec<LockRow>,
    /// The threads that have recorded something, the longest waiting first.
    pub by_thread: Vec<ThreadRow>,
    /// The callers of the functions that waited.
    pub callers: Callers,
    /// Threads that were waiting for a lock when the run ended.
    pub stuck: Vec<Stuck>,
    /// The order in which locks are taken.
    pub order: Order,
    /// The blocked time of all threads.
    pub blocked: Blocked,
    /// Threads that were seen sleeping for a time.
    pub sleepers: Vec<Sleeper>,
    /// Sleeps in functions that tell what a thread waits for.
    pub slept: Vec<Slept>,
    /// The CPU time of each thread that was sampled, in seconds, by process and thread id.
    pub threads_cpu_s: BTreeMap<(u32, u32), f64>,
    /// Number of sampling rounds; 0 if the run was too short.
    pub rounds: u64,
    /// Counts of the events that are missing.
    pub dropped: Dropped,
    /// Number of processes whose mutexes had the light form.
    pub light_processes: usize,
    /// Programs that kept their own locks, as far as is known.
    pub unreached: Vec<Unreached>,
    /// The notes beside the tables.
    pub notes: Vec<String>,
    /// Number of notes about what was not seen: if 0, what the report does not show did not happen.
    pub unseen: usize,
    /// The trace, of a run under `record`.
    pub trace: Option<Written>,
    /// The report on event loops that shared their CPU.
    pub coop: Option<CoopReport>,
}

impl Report {
    /// Combines what is known. `closed` are the waits that had not ended at the end of the run.
    /// `running` is `Some` if a process still ran when CMD had ended: the number of those known by
    /// their ids. Reads the files of the program for their symbols.
    pub fn new(
        run: Run,
        snapshot: &Snapshot,
        closed: &[Closed],
        sampled: &Sampled,
        running: Option<usize>,
    ) -> Self {
        let mut symbols = Symbols::default();
        let variables = Variables::of(snapshot, &mut symbols);
        let callers = Callers::of(snapshot, &mut symbols);
        let locks = lock_rows(snapshot, &variables, &callers, &mut symbols);
        let mut stuck = |wait| stuck(snapshot, wait, &variables, &mut symbols);
        let stuck = closed.iter().filter_map(&mut stuck).collect();
        let order = Order::new(snapshot, &variables, &mut symbols);
        let slept = sampled.places.named(&mut symbols);
        let unreached = children::unreached(snapshot);
        let unseen = unseen::of(&run, snapshot, running, sampled.refused);
        let mut notes = notes::of(&run, snapshot, &unreached, &unseen);
        notes.extend(symbols.notes());
        notes.extend(wrapped(&run, &locks));
        Self {
            processes: processes(snapshot),
            threads: sampled.threads.max(snapshot.threads.len()),
            locks,
            by_thread: by_thread(snapshot),
            callers,
            stuck,
            order,
            blocked: blocked(snapshot, sampled),
            sleepers: sampled.sleepers.clone(),
            slept,
            threads_cpu_s: sampled.threads_cpu_s.clone(),
            rounds: sampled.rounds,
            dropped: snapshot.dropped,
            light_processes: notes::light_processes(snapshot),
            notes,
            unseen: unseen.len() + unreached.len(),
            unreached,
            run,
            trace: None,
            coop: None,
        }
    }

    /// The rows of all locks of a site combined, most waiting first.
    pub fn by_site(&self) -> Vec<LockRow> {
        by_site(&self.locks)
    }

    /// The share of blocked time, sleep excluded, in locks that were replaced, or could have been:
    /// glibc's locks that were observed. `None` if CMD was observed only from outside, or no thread
    /// was ever blocked.
    pub fn reachable_share(&self) -> Option<f64> {
        let all = self.blocked.all() - self.blocked.sleep;
        (!self.run.is_outside() && all > 0.0).then(|| self.blocked.reachable() / all)
    }

    /// The locks that the reachable share is about, in words.
    pub fn reachable_locks(&self) -> &'static str {
        if self.run.lock == preload::GLIBC {
            "locks that ours can replace"
        } else {
            "locks of ours"
        }
    }

    /// The body of the JSON report.
    pub fn json(&self) -> Value {
        json!({
            "program": self.run.command,
            "lock": self.run.lock,
            "profile": self.run.profile,
            "ended": self.run.ended,
            "verdict": verdict::json(&verdict::of(self)),
            "notes": self.notes,
            "children": self.run.children,
            "sites_unmatched": self.run.unmatched,
            "unreached": children::objects(&self.unreached),
            "light_processes": self.light_processes,
            "locks": self.locks.iter().map(|row| lock_object(row, self.run.profile))
                .collect::<Vec<_>>(),
            "classes": classes::json(&self.locks, self.run.profile),
            "stacks": self.callers.json(),
            "order": self.order.json(),
            "threads": self.threads,
            "by_thread": self.by_thread.iter().map(thread_object).collect::<Vec<_>>(),
            "processes": self.processes,
            "wall_s": self.run.wall.as_secs_f64(),
            "cpu_s": self.run.cpu_s,
            "system_s": self.run.system_s,
            "others_cpu_s": self.run.others_s,
            "blocked_s": self.blocked.kinds().into_iter().map(|(name, _, seconds, _)| {
                (name.to_owned(), json!(seconds))
            }).collect::<serde_json::Map<_, _>>(),
            "reachable_share": self.reachable_share(),
            "trace": self.trace.as_ref().map(Written::json),
            "coop": self.coop.as_ref().map(CoopReport::json),
            "sleepers": self.sleepers.iter().map(Sleeper::json).collect::<Vec<_>>(),
            "slept_in": self.slept.iter().map(Slept::json).collect::<Vec<_>>(),
            "sampling_rounds": self.rounds,
            "dropped": {
                "processes": self.dropped.processes, "modules": self.dropped.modules,
                "sites": self.dropped.sites, "locks": self.dropped.locks,
                "rows": self.dropped.rows, "threads": self.dropped.threads,
                "edges": self.dropped.edges, "programs": self.dropped.programs,
                "stacks": self.dropped.stacks,
            },
        })
    }
}

impl Blocked {
    /// All kinds: key, words for people, seconds, and whether a preloaded library reaches it.
    pub fn kinds(&self) -> [(&'static str, &'static str, f64, bool); 11] {
        [
            ("mutex", "mutexes", self.mutex, true),
            ("rwlock", "readers-writer locks", self.rwlock, true),
            ("condition", "condition variables", self.condition, true),
            ("spin", "spinlocks", self.spin, true),
            ("raw_futex", "raw futexes", self.raw_futex, false),
            ("semaphore", "semaphores", self.semaphore, false),
            ("join", "joining threads and processes", self.join, false),
            ("io", "I/O", self.io, false),
            ("run_queue", "the run queue", self.run_queue, false),
            ("sleep", "sleep", self.sleep, false),
            ("other", "something else", self.other, false),
        ]
    }

    fn all(&self) -> f64 {
        self.kinds().iter().map(|kind| kind.2).sum()
    }

    /// Seconds in locks that were replaced or observed.
    pub fn reachable(&self) -> f64 {
        self.mutex + self.rwlock + self.condition + self.spin
    }
}

/// The rows of a recording, by lock and site, most waiting first.
pub fn lock_rows(
    snapshot: &Snapshot,
    variables: &Variables,
    callers: &Callers,
    symbols: &mut Symbols,
) -> Vec<LockRow> {
    let rows = snapshot.rows.iter().enumerate();
    let used =
        rows.filter(|(_, row)| row.acquisitions != 0 || row.contended != 0 || row.refused != 0);
    let mut homes = HashMap::new();
    let row = |(at, row): (usize, &Row)| {
        let home = homes
            .entry(row.lock)
            .or_insert_with(|| home(snapshot, row.lock, (variables, callers), symbols));
        let home = home.clone();
        let row = lock_row(snapshot, row, home, symbols);
        LockRow { site: callers.named_by_callers(at, row.site), ..row }
    };
    let mut locks: Vec<_> = used.map(row).collect();
    locks.sort_by_key(|row| std::cmp::Reverse((row.wait.sum_ns, row.acquisitions)));
    locks
}

/// The rows of all locks of a site combined, most waiting first.
pub fn by_site(locks: &[LockRow]) -> Vec<LockRow> {
    let mut sites: BTreeMap<(String, &str), LockRow> = BTreeMap::new();
    let mut counted = BTreeSet::new();
    // A notification is not a use of a lock.
    for row in locks.iter().filter(|row| row.kind != CONDITION || row.contended > 0) {
        let key = (row.site.label(), row.kind);
        // One lock may be taken at several places of one line.
        let fresh = counted.insert((key.clone(), row.pid, row.address));
        sites
            .entry(key)
            .and_modify(|all| {
                all.locks += usize::from(fresh);
                all.acquisitions += row.acquisitions;
                all.contended += row.contended;
                all.gave_up += row.gave_up;
                all.refused += row.refused;
                all.still_waiting += row.still_waiting;
                all.wait.add(&row.wait);
                all.hold.add(&row.hold);
            })
            .or_insert_with(|| row.clone());
    }
    let mut sites: Vec<_> = sites.into_values().collect();
    sites.sort_by_key(|row| std::cmp::Reverse((row.wait.sum_ns, row.acquisitions)));
    sites
}

fn processes(snapshot: &Snapshot) -> usize {
    let forked = snapshot.processes.iter().filter(|process| process.parent.is_some()).count();
    snapshot.started as usize + forked
}

fn blocked(snapshot: &Snapshot, sampled: &Sampled) -> Blocked {
    let recorded = |of: fn(&antiphon_record::Blocked) -> u64| {
        snapshot.threads.iter().map(|thread| of(&thread.blocked)).sum::<u64>() as f64 / 1e9
    };
    let seen = |wait| sampled.blocked_s.get(&wait).copied().unwrap_or(0.0);
    Blocked {
        mutex: recorded(|blocked| blocked.mutex_ns),
        rwlock: recorded(|blocked| blocked.rwlock_ns),
        condition: recorded(|blocked| blocked.condition_ns),
        spin: recorded(|blocked| blocked.spin_ns),
        raw_futex: seen(Wait::Futex),
        semaphore: seen(Wait::Semaphore),
        join: seen(Wait::Join),
        io: seen(Wait::Io),
        sleep: seen(Wait::Sleep),
        other: seen(Wait::Other),
        run_queue: sampled.run_queue_s,
    }
}

fn lock_row(snapshot: &Snapshot, row: &Row, home: Home, symbols: &mut Symbols) -> LockRow {
    let lock = &snapshot.locks[row.lock];
    let rest = lock.kind == Kind::Rest;
    LockRow {
        site: if rest { CallSite::named("all others") } else { site(snapshot, row.site, symbols) },
        home,
        kind: row.kind.name(),
        address: lock.address,
        pid: pid(snapshot, lock.process),
        locks: 1,
        acquisitions: row.acquisitions,
        contended: row.contended,
        gave_up: row.gave_up,
        refused: row.refused,
        still_waiting: row.still_waiting,
        wait: row.wait.clone(),
        hold: row.hold.clone(),
    }
}

/// What names a lock of the recording.
fn home(
    snapshot: &Snapshot,
    lock: usize,
    (variables, callers): (&Variables, &Callers),
    symbols: &mut Symbols,
) -> Home {
    let home = Home::of(snapshot, lock, variables, symbols);
    let first = |row: &Row| row.lock == lock && row.site == snapshot.locks[lock].first_site;
    match (home, snapshot.rows.iter().position(first)) {
        // A wrapper is named by its callers, as in the rows of the lock.
        (Home::FirstSeen(site), Some(row)) => Home::FirstSeen(callers.named_by_callers(row, site)),
        (home, _) => home,
    }
}

/// The note about holds of several call sites that share a wrapper's name.
fn wrapped(run: &Run, locks: &[LockRow]) -> Option<String> {
    let is_wrapped = |row: &&LockRow| row.site.is_of_a_library() && row.kind != CONDITION;
    let row = locks.iter().find(is_wrapped).filter(|_| run.profile)?;
    Some(format!(
        "Holds of locks that are taken through {} are not told apart by place: compile with \
         optimisation, so that it is inlined.",
        row.holder(),
    ))
}

/// The thread of a wait that had not ended at the end of the run; `None` if it waited for a
/// condition, which any thread may still notify.
fn stuck(
    snapshot: &Snapshot,
    closed: &Closed,
    variables: &Variables,
    symbols: &mut Symbols,
) -> Option<Stuck> {
    let (waiting, thread) = (&closed.waiting, snapshot.threads.get(closed.thread)?);
    let lock = snapshot.locks.get(waiting.lock)?;
    if matches!(lock.kind, Kind::Condition | Kind::Rest) {
        return None;
    }
    let rows = waiting.held.iter().flatten().filter_map(|&row| snapshot.rows.get(row));
    let held = rows.filter_map(|row| {
        Some((snapshot.locks.get(row.lock)?.address, site(snapshot, row.site, symbols)))
    });
    let held = held.collect();
    // If the call is in a wrapper, the thread's own stack tells where it waits.
    let mut at = site(snapshot, waiting.site, symbols);
    if let Some(stack) = waiting.stack.and_then(|stack| snapshot.stacks.get(stack))
        && at.is_of_a_library()
    {
        let callers = stack.callers.iter().map(|&caller| names::caller(snapshot, caller, symbols));
        at.caller = callers.flat_map(|caller| caller.frames).find(|it| !it.is_of_a_library());
    }
    Some(Stuck {
        pid: pid(snapshot, thread.process),
        tid: thread.tid,
        address: lock.address,
        name: Home::of(snapshot, waiting.lock, variables, symbols).in_a_sentence(),
        site: at,
        waited_ns: closed.waited_ns,
        held,
    })
}

fn by_thread(snapshot: &Snapshot) -> Vec<ThreadRow> {
    let row = |thread: &antiphon_record::Thread| ThreadRow {
        pid: pid(snapshot, thread.process),
        tid: thread.tid,
        blocked: thread.blocked,
        waits: thread.waits,
        acquisitions: thread.acquisitions,
    };
    let mut rows: Vec<_> = snapshot.threads.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.blocked_ns(), row.acquisitions)));
    rows
}

fn thread_object(row: &ThreadRow) -> Value {
    let seconds = |ns: u64| ns as f64 / 1e9;
    json!({
        "pid": row.pid, "tid": row.tid, "waits": row.waits, "acquisitions": row.acquisitions,
        "blocked_s": {
            "mutex": seconds(row.blocked.mutex_ns),
            "rwlock": seconds(row.blocked.rwlock_ns),
            "condition": seconds(row.blocked.condition_ns),
            "spin": seconds(row.blocked.spin_ns),
        },
    })
}

/// A row in a JSON report.
pub fn lock_object(row: &LockRow, profile: bool) -> Value {
    let times = |times: &Histogram| {
        json!({
            "p50": times.p50(), "p99": times.p99(), "max": times.max_ns, "sum": times.sum_ns,
        })
    };
    let mut object = row.site.json();
    let more = json!({
        "kind": row.kind, "variable": row.home.variable(), "home": row.home.json(),
        "address": format!("{:#x}", row.address),
        "pid": row.pid, "acquisitions": profile.then_some(row.acquisitions),
        "contended": row.contended, "gave_up": row.gave_up, "refused": row.refused,
        "still_waiting": row.still_waiting,
        "wait_ns": times(&row.wait), "hold_ns": profile.then(|| times(&row.hold)),
    });
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_was_blocked_in_all_kinds_together() {
        let blocked = antiphon_record::Blocked {
            mutex_ns: 1,
            condition_ns: 20,
            spin_ns: 300,
            rwlock_ns: 4000,
        };
        let row = ThreadRow { pid: 1, tid: 1, blocked, waits: 4, acquisitions: 4 };
        assert_eq!(row.blocked_ns(), 4321);
        let kinds = &thread_object(&row)["blocked_s"];
        let sum: f64 = kinds.as_object().into_iter().flatten().filter_map(|it| it.1.as_f64()).sum();
        assert!((sum - 4321e-9).abs() < 1e-12, "{kinds}");
    }
}
