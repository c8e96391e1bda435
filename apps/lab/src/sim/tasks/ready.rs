//! Ready tasks of the experiment, stored under the numbers that are queued.

use antiphon_sync::queue::Item;

/// A task.
#[derive(Clone, Copy)]
pub struct Task {
    pub kind: Kind,
    pub packet: u32,
    /// Time at which the task was made ready.
    pub ready_ns: u64,
}

/// The work of a task.
#[derive(Clone, Copy)]
pub enum Kind {
    Scan,
    /// Number of tasks that follow.
    Step(u32),
    Sleep,
}

impl Kind {
    /// Returns the task's stage; `depth` is the number of steps of its option, if it belongs to
    /// one. An option that has begun should be completed, and a task that keeps a worker for long
    /// comes last.
    pub fn stage(self, depth: Option<u32>) -> u64 {
        let long = depth.is_some_and(|depth| depth > LONG);
        match self {
            Self::Scan => 1,
            Self::Step(_) if !long => 2,
            Self::Step(_) | Self::Sleep => 0,
        }
    }
}

/// An option with more steps than this is long.
const LONG: u32 = 1000;

/// Ready tasks, by the number of their item.
#[derive(Default)]
pub struct Tasks {
    ready: Vec<Option<Task>>,
    free: Vec<usize>,
}

/// Least word that may be an item, and the distance between items.
const FIRST: u64 = 4_096;
const APART: u64 = 8;

impl Tasks {
    /// Stores a task, and returns its item.
    pub fn put(&mut self, task: Task) -> Item {
        let number = self.free.pop().unwrap_or_else(|| {
            self.ready.push(None);
            self.ready.len() - 1
        });
        self.ready[number] = Some(task);
        Item::new(FIRST + APART * number as u64).expect("a word for an item")
    }

    /// Removes the task of an item; each item is taken once.
    pub fn take(&mut self, item: Item) -> Task {
        let number = ((item.word() - FIRST) / APART) as usize;
        self.free.push(number);
        self.ready[number].take().expect("a task that has not been run")
    }
}
