//! The fibers of a pool that are timed: those that have not ended, and the latest that have.
//!
//! A fiber's time has more parts than a record of a worker has words, its thread may have no seat
//! when it ends, and it may live as long as the process: so it has an account, which a reader may
//! read while it is open.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Platform as _};
use antiphon_runtime::flight::Sample;
use antiphon_runtime::task::Task;

use super::sample::Caller;
use super::timed::{Part, Span, Timed};
use crate::fiber::{Clocked, Parts};
use crate::unpoisoned::lock;

/// The accounts of a pool.
pub(super) struct Ledger {
    next: AtomicU64,
    book: Mutex<Book>,
    /// How many that have ended are kept.
    most: usize,
}

#[derive(Default)]
struct Book {
    open: BTreeMap<u64, Arc<Account>>,
    ended: VecDeque<Timed>,
}

/// The time of one task, as its thread has it: written by that thread, and read by any.
pub(crate) struct Account(Mutex<Open>);

struct Open {
    timed: Timed,
    part: Part,
    since_ns: u64,
    /// Whether that is the fault of another.
    is_hogged: bool,
    spans: VecDeque<Span>,
}

/// How many spans of a task are kept.
const SPANS: usize = 64;

/// Whether the spans of a task are read: they may be larger than the rest of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spans {
    Kept,
    Left,
}

impl Ledger {
    /// A ledger that keeps the last `most` tasks that have ended.
    pub(super) fn new(most: usize) -> Self {
        Self { next: AtomicU64::new(0), book: Mutex::default(), most }
    }

    /// Runs the task, which was made there, and times it.
    pub(super) fn run(&self, task: Task<Linux>, sample: Sample, caller: Caller) {
        let account = self.open(sample, caller);
        let clocked = Clocked::new(account.1.clone());
        // Dropped in this order, even if the task panics.
        let _closes = Closes(self, account);
        let _attached = clocked.attach();
        task.run();
    }

    fn open(&self, sample: Sample, caller: Caller) -> (u64, Arc<Account>) {
        // Relaxed: each is handed out once.
        let number = self.next.fetch_add(1, Relaxed);
        let thread = thread::current().name().unwrap_or("?").to_owned();
        let began_ns = Linux::now(Clock::Monotonic);
        let timed = Timed::begin(number, thread, sample, began_ns);
        let timed = Timed { spawned_at: Some(caller), ..timed };
        let (part, since_ns, spans) = (Part::Running, began_ns, VecDeque::new());
        let open = Open { timed, part, since_ns, is_hogged: false, spans };
        let account = Arc::new(Account(Mutex::new(open)));
        lock(&self.book).open.insert(number, account.clone());
        (number, account)
    }

    /// The times that there are, in the order in which the tasks began: that may be some thousands.
    pub(super) fn read(&self, spans: Spans) -> Vec<Timed> {
        let now_ns = Linux::now(Clock::Monotonic);
        let (ended, open) = {
            let book = lock(&self.book);
            let open: Vec<_> = book.open.values().cloned().collect();
            (book.ended.iter().map(|timed| timed.copy(spans)).collect::<Vec<_>>(), open)
        };
        let open = open.iter().map(|account| account.read(now_ns, spans));
        // One task may have ended meanwhile: its record from before that is told.
        let mut all: Vec<_> = ended.into_iter().chain(open).collect();
        all.sort_by_key(|timed| timed.number);
        all
    }
}

/// Ends an account.
struct Closes<'a>(&'a Ledger, (u64, Arc<Account>));

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        let (ledger, (number, account)) = (self.0, &self.1);
        let now_ns = Linux::now(Clock::Monotonic);
        let timed = Timed { is_over: true, ..account.read(now_ns, Spans::Kept) };
        let mut book = lock(&ledger.book);
        book.open.remove(number);
        if book.ended.len() >= ledger.most {
            book.ended.pop_front();
        }
        book.ended.push_back(timed);
    }
}

impl Account {
    /// Notes that the task is a fiber.
    pub(crate) fn is_fiber(&self) {
        lock(&self.0).timed.is_fiber = true;
    }

    /// The beginning of the part that the task is in.
    pub(crate) fn since_ns(&self) -> u64 {
        lock(&self.0).since_ns
    }

    /// Notes that the task is suspended: because it waits, or yields. `parts` has the suspensions
    /// that were not timed, of the time since it went on.
    pub(crate) fn stops(&self, now_ns: u64, waits: bool, parts: Parts) {
        let mut open = lock(&self.0);
        let passed_ns = now_ns.saturating_sub(open.since_ns);
        let runnable_ns = parts.runnable_ns.min(passed_ns);
        let waiting_ns = parts.waiting_ns.min(passed_ns - runnable_ns);
        open.timed.running_ns += passed_ns - runnable_ns - waiting_ns;
        open.timed.waiting_ns += waiting_ns;
        open.timed.runnable_ns += runnable_ns;
        open.timed.late_ns += parts.hogged_ns.min(runnable_ns);
        open.part = if waits { Part::Waiting } else { Part::Runnable };
        open.since_ns = now_ns;
    }

    /// Notes that the task may go on, from `at_ns` on; for `hogged_ns` of the time others did not
    /// let its thread go.
    pub(crate) fn wakes(&self, at_ns: u64, hogged_ns: u64) {
        let mut open = lock(&self.0);
        let at_ns = at_ns.max(open.since_ns);
        open.passes(at_ns);
        (open.part, open.since_ns, open.is_hogged) = (Part::Runnable, at_ns, hogged_ns > 0);
        open.timed.late_ns += hogged_ns;
    }

    /// Notes that the task goes on, with `hogged_ns` as in `wakes`. Returns for how long it could
    /// go on before.
    pub(crate) fn goes_on(&self, now_ns: u64, hogged_ns: u64) -> u64 {
        let mut open = lock(&self.0);
        let runnable_ns = now_ns.saturating_sub(open.since_ns);
        let hogged_ns = hogged_ns.min(runnable_ns);
        open.is_hogged |= hogged_ns > 0;
        open.passes(now_ns);
        open.timed.late_ns += hogged_ns;
        (open.part, open.since_ns, open.is_hogged) = (Part::Running, now_ns, false);
        runnable_ns
    }

    /// The record of the task as it is now.
    fn read(&self, now_ns: u64, spans: Spans) -> Timed {
        let open = lock(&self.0);
        let kept = if spans == Spans::Kept { open.spans.clone() } else { VecDeque::new() };
        let mut copy = Open { timed: open.timed.copy(spans), spans: kept, ..*open };
        drop(open);
        copy.passes(now_ns.max(copy.since_ns));
        let until_ns = now_ns.max(copy.since_ns);
        Timed { until_ns, spans: copy.spans.into(), ..copy.timed }
    }
}

impl Open {
    /// The part that it is in ends.
    fn passes(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        match self.part {
            Part::Running => self.timed.running_ns += passed_ns,
            Part::Waiting => self.timed.waiting_ns += passed_ns,
            Part::Queued | Part::Runnable | Part::Hogged => self.timed.runnable_ns += passed_ns,
        }
        let part = if self.is_hogged { Part::Hogged } else { self.part };
        let span = Span { from_ns: self.since_ns, to_ns: now_ns, part };
        if self.part != Part::Running && span.is_long() {
            if self.spans.len() == SPANS {
                self.spans.pop_front();
            }
            self.spans.push_back(span);
        }
    }
}
