//! The accounts of a pool's timed fibers: all that have not ended, and the latest that have.
//!
//! A fiber's time has more parts than a worker's record has words, its thread may have no seat when
//! it ends, and it may live as long as the process. So it has an account, which a reader may read
//! while it is open.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::Sample;
use antiphon_runtime::task::Task;

use crate::fiber::Clocked;
use crate::observe::{Account, Caller, Spans, Timed};
use crate::unpoisoned::lock;

pub(super) struct Ledger {
    next: AtomicU64,
    book: Mutex<Book>,
    /// Number of ended tasks that are kept.
    most: usize,
}

#[derive(Default)]
struct Book {
    open: BTreeMap<u64, Arc<Account>>,
    ended: VecDeque<Timed>,
}

impl Ledger {
    /// Creates a ledger that keeps the last `most` tasks that have ended.
    pub(super) fn new(most: usize) -> Self {
        Self { next: AtomicU64::new(0), book: Mutex::default(), most }
    }

    /// Runs the task, which `caller` has spawned, and times it.
    pub(super) fn run(&self, task: Task<Linux>, sample: Sample, caller: Caller) {
        let account = self.open(sample, caller);
        let clocked = Clocked::new(account.1.clone());
        // Dropped in this order, even if the task panics.
        let _closes = Closes(self, account);
        let _attached = clocked.attach();
        task.run();
    }

    fn open(&self, sample: Sample, caller: Caller) -> (u64, Arc<Account>) {
        // Relaxed: only uniqueness matters; each number is handed out once.
        let number = self.next.fetch_add(1, Relaxed);
        let thread = thread::current().name().unwrap_or("?").to_owned();
        let began_ns = Linux::now(Clock::Monotonic);
        let timed = Timed::begin(number, thread, sample, began_ns);
        let timed = Timed { spawned_at: Some(caller), ..timed };
        let account = Arc::new(Account::open(timed));
        lock(&self.book).open.insert(number, account.clone());
        (number, account)
    }

    /// Returns all times, in the order in which the tasks began; there may be thousands.
    pub(super) fn read(&self, spans: Spans) -> Vec<Timed> {
        let now_ns = Linux::now(Clock::Monotonic);
        let (ended, open) = {
            let book = lock(&self.book);
            let open: Vec<_> = book.open.values().cloned().collect();
            (book.ended.iter().map(|timed| timed.copy(spans)).collect::<Vec<_>>(), open)
        };
        let open = open.iter().map(|account| account.read(now_ns, spans));
        // A task may have ended meanwhile: it is reported as it was before.
        let mut all: Vec<_> = ended.into_iter().chain(open).collect();
        all.sort_by_key(|timed| timed.number);
        all
    }
}

/// Closes an account when dropped.
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
