//! Tasks that are ready: the experiment's, by the numbers that queues have.

use antiphon_sync::queue::Item;

/// A task.
#[derive(Clone, Copy)]
pub struct Task {
    pub kind: Kind,
    pub packet: u32,
    /// The time when it was made ready.
    pub ready_ns: u64,
}

/// The work of a task.
#[derive(Clone, Copy)]
pub enum Kind {
    Scan,
    /// How many follow.
    Step(u32),
    Sleep,
}

impl Kind {
    /// Its stage; `depth` is the number of steps before it if it is an option's. An option that is
    /// begun is to be ended, and a task that keeps a worker for long comes last.
    pub fn stage(self, depth: Option<u32>) -> u64 {
        let long = depth.is_some_and(|depth| depth > LONG);
        match self {
            Self::Scan => 1,
            Self::Step(_) if !long => 2,
            Self::Step(_) | Self::Sleep => 0,
        }
    }
}

/// An option of more steps than this is long.
const LONG: u32 = 1000;

/// Tasks that are ready, by the number of their item.
#[derive(Default)]
pub struct Tasks {
    ready: Vec<Option<Task>>,
    free: Vec<usize>,
}

/// The least word that may be an item, and how far two are apart.
const FIRST: u64 = 4_096;
const APART: u64 = 8;

impl Tasks {
    /// The item of a task.
    pub fn put(&mut self, task: Task) -> Item {
        let number = self.free.pop().unwrap_or_else(|| {
            self.ready.push(None);
            self.ready.len() - 1
        });
        self.ready[number] = Some(task);
        Item::new(FIRST + APART * number as u64).expect("a word for an item")
    }

    /// The task of an item; each is there once.
    pub fn take(&mut self, item: Item) -> Task {
        let number = ((item.word() - FIRST) / APART) as usize;
        self.free.push(number);
        self.ready[number].take().expect("a task that has not been run")
    }
}
