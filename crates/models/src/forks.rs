//! Models of forks: a fork runs once, its effects are visible to the thread that continues, and
//! then it is gone; whether or not it became a task or was found by another worker.

use std::cell::RefCell;
use std::collections::BTreeMap;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::Platform as _;
use antiphon_runtime::fork::{self, Forker, Forks};
use antiphon_runtime::sched::{self, Lifo, Put, Scheme, Share, Steal};
use antiphon_runtime::task::{self, Awaited};
use antiphon_sync::queue::Full;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program};

type Task = task::Task<Check>;
type Policy = Scheme<Lifo, Steal>;
type Crew = sched::Crew<Check, Policy>;

pub fn entries() -> Vec<Entry> {
    let all = &["here", "there"];
    Subject("fork").models([
        model("one-2", forking(2, 1, 2), PLAIN).by_lot(2_000).reaches(all),
        model("nested-2", forking(2, 2, 4), PLAIN).by_lot(1_000).reaches(all),
        model("no-room-2", forking(2, 3, 1), PLAIN).by_lot(600).reaches(all),
        model("nested-3", forking(3, 2, 4), PLAIN.expiries(1)).by_lot(400).reaches(all),
    ])
}

/// The worker that a thread of the model acts as.
struct Here {
    crew: &'static Crew,
    worker: RefCell<sched::Worker<'static, Check, Policy>>,
    forks: Forks<Check>,
}

thread_local! {
    /// Indexed by the numbers of the model's threads, all of which run on this thread.
    static HERE: RefCell<BTreeMap<u64, *const Here>> = const { RefCell::new(BTreeMap::new()) };
}

impl Here {
    fn run(&self, next: impl FnOnce(&mut sched::Worker<'static, Check, Policy>) -> Next) -> bool {
        let item = next(&mut self.worker.borrow_mut());
        // SAFETY: all items are those of forks, and each is handed out once.
        item.map(|item| unsafe { Task::from_item(item) }.run()).is_some()
    }
}

type Next = Option<antiphon_sync::queue::Item>;

/// Returns the worker that the calling thread acts as.
fn here() -> &'static Here {
    let here = HERE.with_borrow(|all| all[&Check::task()]);
    // SAFETY: set by `Mine::work`, which is below us on this thread's stack.
    unsafe { &*here }
}

/// Forks on the calling thread's worker, and makes every fork a task if possible.
struct Mine;

// SAFETY: `here` is the calling thread's worker for the whole life of that worker.
unsafe impl Forker for Mine {
    type Platform = Check;
    type Outcome<T> = T;

    fn forks<R>(ask: impl FnOnce(&Forks<Check>) -> R) -> R {
        ask(&here().forks)
    }

    fn is_worker() -> bool {
        true
    }

    fn is_wanted() -> bool {
        here().crew.has_idle()
    }

    fn beat_ns() -> u64 {
        0
    }

    fn put(task: Task) -> Result<(), Task> {
        let put = here().worker.borrow_mut().push(task.into_item(), Put::PLAIN);
        // SAFETY: the item was made above, and was given back.
        put.map_err(|Full(item)| unsafe { Task::from_item(item) })
    }

    fn wait(awaited: &Awaited<'_, Check>) {
        while here().run(|worker| worker.next_until(awaited, None)) {}
    }

    fn run<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    fn unwrap<T>(outcome: Option<T>) -> T {
        outcome.expect("it was run")
    }
}

impl Mine {
    /// Acts as the worker of a seat, with `first` to do, until the crew is closed.
    fn work(crew: &'static Crew, seat: usize, first: impl FnOnce()) {
        let worker = RefCell::new(crew.worker(seat).expect("a seat"));
        let here = Here { crew, worker, forks: Forks::new() };
        HERE.with_borrow_mut(|all| all.insert(Check::task(), &raw const here));
        first();
        while here.run(sched::Worker::next_task) {}
    }
}

/// Runs a tree of forks of this depth; returns the number of its leaves. Each fork passes the count
/// of its second half on in plain data.
fn tree(depth: u32, on: u64) -> u32 {
    if depth == 0 {
        probe(if Check::task() == on { "here" } else { "there" });
        return 1;
    }
    let told = Anywhere(Data::new(0));
    let tell = &told;
    let (first, ()) = fork::join::<Mine, _, _, _, _>(
        || tree(depth - 1, on),
        move || tell.0.set(tree(depth - 1, on)),
    );
    first + told.0.get()
}

/// `workers` workers, the first of which forks; each has room for `room` tasks.
fn forking(workers: usize, depth: u32, room: usize) -> Program {
    Program::new(workers as u32, 2 * workers as u32, move |scope| {
        let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(room, room);
        let crew = Anywhere(&raw const *scope.share(Crew::new(policy, workers, 2)));
        for me in 0..workers {
            let crew = Anywhere(crew.0);
            scope.spawn(move || {
                // SAFETY: shared by the scope, which ends after its threads.
                let crew: &'static Crew = unsafe { &*{ crew }.0 };
                Mine::work(crew, me, || {
                    if me == 0 {
                        assert_eq!(tree(depth, Check::task()), 1 << depth);
                        crew.close();
                    }
                });
            });
        }
    })
}
