//! Models of tasks that wait for each other by yielding, on workers that run the last task first:
//! which ways to yield terminate, and which may loop for ever.
//!
//! | form | where a yielding task goes | two wait for each other | three |
//! |---|---|---|---|
//! | `stack` | on top of its worker's tasks | never ends | |
//! | `below` | under the next task, which runs | ends | never ends |
//! | `swap` | to the place of a task drawn by lot, which runs | ends | ends almost surely |
//! | `queue` | every `n`th time to a queue of all workers, else on top | ends | ends |
//! | `turns` | to the end of a line that takes turns with tasks | ends | ends |
//!
//! The last is what fibers do (`runtime::fiber::Turns`); the others are those that the dissertation
//! compares in section 4.4.4. Forms that never end are kept here, and the checker must find them.

mod forms;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::cell::Cell;
use std::ptr;

use antiphon_check::{Check, FailureKind};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_runtime::fiber::{ANY_EVERY, InLine, TASKS_EVERY};
use antiphon_runtime::sched::{self, Crew, Lifo, Put, Scheme, Share, Steal};
use antiphon_sync::queue::Item;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;
use forms::{Below, Form, InTurns, Queue, Stack, Swap};

type U32 = <Check as Atomics>::U32;
type Policy = Scheme<Lifo, Steal>;
type Worker<'a> = sched::Worker<'a, Check, Policy>;

/// The finding for an execution without end.
const FOR_EVER: FailureKind = FailureKind::StepLimit;
/// The form that pools use.
type Shipped = InTurns<TASKS_EVERY, ANY_EVERY>;
/// No turn of a model has this number.
const NEVER: u32 = u32::MAX;

pub fn entries() -> Vec<Entry> {
    let swap = |passed_over| move || Swap { passed_over };
    Subject("yields").models([
        model("stack-1", alone(2, || Stack), PLAIN).fails(FOR_EVER),
        model("stack-elsewhere-1+1", elsewhere(|| Stack), PLAIN).fails(FOR_EVER),
        model("below-two-1", alone(2, || Below), PLAIN),
        model("below-three-1", alone(3, || Below), PLAIN).fails(FOR_EVER),
        model("swap-two-1", alone(2, swap(u32::MAX)), PLAIN),
        model("swap-unfair-1", alone(3, swap(u32::MAX)), PLAIN).fails(FOR_EVER),
        model("swap-by-lot-1", alone(3, swap(u32::MAX)), PLAIN).by_lot(1_000),
        model("swap-fair-1", alone(3, swap(2)), PLAIN),
        model("queue-1", alone(3, || Queue(Cell::new(0))), PLAIN),
        model("turns-1", alone(3, InTurns::<2, NEVER>::hard), PLAIN),
        model("turns-soft-1", alone(3, InTurns::<NEVER, 3>::soft), PLAIN),
        model("turns-shipped-1", alone(3, Shipped::soft), PLAIN),
        model("turns-elsewhere-1+1", elsewhere(InTurns::<2, 3>::hard), PLAIN),
        model("turns-elsewhere-soft-1+1", elsewhere(InTurns::<2, 3>::soft), PLAIN),
        model("turns-outside-1", outside(InTurns::<2, 3>::hard), PLAIN),
    ])
}

/// The tasks that wait for each other: each waits until all have begun, and then until those that
/// began before it have ended.
struct Tasks {
    all: Vec<Task>,
    begun: U32,
    ended: U32,
}

struct Task {
    /// Number of tasks that had begun before this one, once it has begun.
    before: Cell<Option<u32>>,
    behind: Cell<Option<Named>>,
}

/// A task named by its address, in a line and as an item.
#[derive(Clone, Copy)]
struct Named(*const Task);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl InLine for Named {
    fn behind(&self) -> &Cell<Option<Self>> {
        // SAFETY: the task is one of `Tasks`, which are shared as long as the execution lasts.
        unsafe { &(*self.0).behind }
    }
}

impl Tasks {
    fn new(count: usize) -> Self {
        let task = |_| Task { before: Cell::new(None), behind: Cell::new(None) };
        Self { all: (0..count).map(task).collect(), begun: U32::ZERO, ended: U32::ZERO }
    }

    fn item(&self, number: usize) -> Item {
        Item::new(8 * (number as u64 + 512)).expect("an item")
    }

    fn task(&self, item: Item) -> &Task {
        &self.all[(item.word() / 8 - 512) as usize]
    }

    /// Runs the task until it ends or yields; returns `true` if it yields.
    fn yields(&self, task: &Task) -> bool {
        // Relaxed, here and below: only the number matters.
        let before = task.before.get().unwrap_or_else(|| self.begun.fetch_add(1, Relaxed));
        task.before.set(Some(before));
        let all = self.all.len() as u32;
        let ends = self.begun.load(Relaxed) == all && self.ended.load(Relaxed) == before;
        if ends {
            // Release: pairs with the acquire of a task that waits until all have ended.
            self.ended.fetch_add(1, Release);
        }
        !ends
    }
}

fn crew(workers: usize) -> Crew<Check, Policy> {
    let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(4, 4);
    Crew::new(policy, workers, 4)
}

/// `count` tasks of one worker.
fn alone<F: Form + 'static>(count: usize, form: impl Fn() -> F + Send + Sync + 'static) -> Program {
    Program::new(1, count as u32, move |scope| {
        let (crew, tasks) = (scope.share(crew(1)), scope.share(Tasks::new(count)));
        let form = form();
        scope.spawn(move || {
            let mut worker = crew.worker(0).expect("a seat");
            for number in 0..count {
                worker.push(tasks.item(number), Put::PLAIN).expect("there is room");
            }
            form.run(crew, &mut worker, tasks);
            assert_eq!(tasks.ended.load(Relaxed), count as u32);
        });
    })
}

/// One task waits for a task in the queue of the other worker, which is busy in a task until both
/// have ended.
fn elsewhere<F: Form + 'static>(form: impl Fn() -> F + Send + Sync + 'static) -> Program {
    Program::new(2, 3, move |scope| {
        let (crew, tasks) = (scope.share(crew(2)), scope.share(Tasks::new(2)));
        let form = form();
        let [mut worker, mut busy] = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        worker.push(tasks.item(0), Put::PLAIN).expect("there is room");
        busy.push(tasks.item(1), Put::PLAIN).expect("there is room");
        scope.spawn(move || {
            // Acquire: pairs with the release in `yields`.
            tasks.ended.wait_while(Acquire, |ended| ended < 2);
            drop(busy);
        });
        scope.spawn(move || form.run(crew, &mut worker, tasks));
    })
}

/// One task waits for a task that came from outside after its worker has checked there.
fn outside<F: Form + 'static>(form: impl Fn() -> F + Send + Sync + 'static) -> Program {
    Program::new(1, 2, move |scope| {
        let (crew, tasks) = (scope.share(crew(1)), scope.share(Tasks::new(2)));
        let form = form();
        scope.spawn(move || {
            let mut worker = crew.worker(0).expect("a seat");
            assert_eq!(worker.try_next_task(), None);
            crew.submit(tasks.item(1), Put::PLAIN).expect("there is room");
            worker.push(tasks.item(0), Put::PLAIN).expect("there is room");
            form.run(crew, &mut worker, tasks);
            assert_eq!(tasks.ended.load(Relaxed), 2);
        });
    })
}
