//! Counts of threads that run tasks: each thread has its own, under a lock that no other thread
//! takes until all is done.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_report::stats::Histogram;

/// The work that was done.
pub struct Tally {
    /// Number of tasks that have ended.
    pub tasks: u64,
    /// Sum of the numbers of the items (packets, for example) that were handled.
    pub numbers: u64,
    /// Number of items that were handled.
    pub items: u64,
    /// Sum of what was found in them, newlines for example.
    pub found: u64,
    /// Time at which the last task ended.
    pub last: u64,
    /// Counts by the step in which an item was due.
    pub steps: Vec<Step>,
}

/// Items of a step.
#[derive(Default)]
pub struct Step {
    /// Time from when an item was due, or handed over, to its end, in ticks.
    pub latencies: Histogram,
    /// Sum of these latencies, in ticks.
    pub sum: u64,
    /// Number of items.
    pub items: u64,
    /// Number of items that ended in time.
    pub good: u64,
    /// Number of items of any step that ended during this step.
    pub ended: u64,
}

static ALL: Mutex<Vec<Arc<Mutex<Tally>>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: OnceCell<Arc<Mutex<Tally>>> = const { OnceCell::new() };
}

impl Tally {
    const fn new() -> Self {
        let (tasks, numbers, items, found, last) = (0, 0, 0, 0, 0);
        Self { tasks, numbers, items, found, last, steps: Vec::new() }
    }

    /// Checks that `tasks` tasks have ended, that each item was handled once, and that the sum of
    /// what was found is right. `items` and `found` are names and numbers.
    ///
    /// # Errors
    ///
    /// A line that names the wrong number.
    pub fn check(&self, tasks: u64, items: (&str, u64), found: (&str, u64)) -> Result<(), String> {
        let ((items_name, items), (found_name, found)) = (items, found);
        [
            ("tasks", self.tasks, tasks),
            (items_name, self.items, items),
            ("the sum of their numbers", self.numbers, items * (items - 1) / 2),
            (found_name, self.found, found),
        ]
        .into_iter()
        .find(|(_, seen, wanted)| seen != wanted)
        .map_or(Ok(()), |(name, seen, wanted)| Err(format!("{name}: {seen} for {wanted}")))
    }

    /// Returns the counts of a step.
    pub fn step(&mut self, step: usize) -> &mut Step {
        while self.steps.len() <= step {
            self.steps.push(Step::default());
        }
        &mut self.steps[step]
    }

    fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.numbers += other.numbers;
        self.items += other.items;
        self.found += other.found;
        self.last = self.last.max(other.last);
        for (step, theirs) in other.steps.iter().enumerate() {
            let mine = self.step(step);
            mine.latencies.merge(&theirs.latencies);
            mine.sum += theirs.sum;
            mine.items += theirs.items;
            mine.good += theirs.good;
            mine.ended += theirs.ended;
        }
    }
}

/// Updates the tally of the calling thread.
pub fn count(note: impl FnOnce(&mut Tally)) {
    MINE.with(|mine| {
        let mine = mine.get_or_init(|| {
            let mine = Arc::new(Mutex::new(Tally::new()));
            locked(&ALL).push(mine.clone());
            mine
        });
        note(&mut locked(mine));
    });
}

/// Returns how many tasks have ended.
pub fn tasks() -> u64 {
    locked(&ALL).iter().map(|one| locked(one).tasks).sum()
}

/// Takes the counts of all threads and resets them.
pub fn take() -> Tally {
    let mut sum = Tally::new();
    for one in locked(&ALL).iter() {
        sum.add(&std::mem::replace(&mut *locked(one), Tally::new()));
    }
    sum
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
