//! Models of a pool's registry (`Crew`): each task is handed out once, to a worker that sees what
//! was done before, and no task remains while all workers rest, which would be a deadlock.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_runtime::fiber;
use antiphon_runtime::sched::{
    self, Fifo, InBlocks, Lifo, Order, Others, Own, Policy, Put, Requests, Room, Scheme, Share,
    Staged, Steal, Worker,
};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    Subject("crew").models([
        model("outside-1+1", working(Fifo, 1, 2, 0), PLAIN).by_lot(800),
        model("outside-2+1", working(Lifo, 2, 2, 0), PLAIN).by_lot(800),
        model("staged-1+1", staged(1, 2, 0), PLAIN).by_lot(800),
        model("staged-2+1", staged(2, 1, 2), PLAIN).by_lot(800),
        model("blocks-2+1", in_blocks(2, 1, 3), PLAIN).by_lot(800),
        model("requests-2+1", requests(false, 2, 1, 3), PLAIN).by_lot(300),
        model("requests-sticky-2+1", requests(true, 2, 1, 3), PLAIN).by_lot(300),
        model("requests-3+1", requests(false, 3, 1, 4), PLAIN).by_lot(150),
        model("requests-few-3+1", few_desks(), PLAIN).by_lot(300),
        model("asked-1+1", asked(), PLAIN).by_lot(600).reaches(&["handed over"]),
        model("closed-1+1", closed(1), PLAIN),
        model("closed-in-a-task-2", closed_in_a_task(), PLAIN).by_lot(1500),
        model("closed-while-one-waits-2+1", closed_while_one_waits(), PLAIN).by_lot(1500),
        model("surplus-1+2", crowding(scheme, Room::Make, 1, 2, 2), PLAIN).by_lot(800),
        model("surplus-2+1", crowding(scheme, Room::Make, 2, 1, 4), PLAIN).by_lot(800),
        model("surplus-only-2", surplus_only(), PLAIN).reaches(&["both"]),
        model("room-1+1", crowding(scheme, Room::Wait, 1, 1, 3), PLAIN).by_lot(800),
        model("room-1+2", crowding(scheme, Room::Wait, 1, 2, 2), PLAIN).by_lot(800),
        model("room-apart-1+1", crowding(Apart::new, Room::Wait, 1, 1, 4), PLAIN).by_lot(800),
        model("room-closed-0+2", waiting_closed(), PLAIN),
        model("inside-2+1", working(Lifo, 2, 1, 3), PLAIN).by_lot(800),
        model("inside-3+1", working(Fifo, 3, 1, 4), PLAIN.expiries(1)).by_lot(800),
    ])
}

type Crew<Y> = sched::Crew<Check, Y>;
type U32 = <Check as Atomics>::U32;
type Ready = fiber::Ready<Check>;

const HALF: Steal = Steal { share: Share::Half };

fn working<O>(order: O, workers: usize, outside: usize, inside: usize) -> Program
where
    O: Order + Copy + 'static,
{
    working_by(move || Scheme::new(order, HALF).capacity(4, 4), workers, outside, inside)
}

/// Each worker has two tasks in a block, and other workers find the block when it is full.
fn in_blocks(workers: usize, outside: usize, inside: usize) -> Program {
    let policy = || Scheme::new(Lifo, HALF).queues(InBlocks::<2> { blocks: 4 });
    working_by(policy, workers, outside, inside)
}

/// A worker without tasks asks a worker that has some.
fn requests(is_sticky: bool, workers: usize, outside: usize, inside: usize) -> Program {
    let scheme = || Scheme::new(Fifo, HALF).capacity(4, 4);
    let policy = move || match is_sticky {
        true => Requests::sticky(scheme(), workers),
        false => Requests::new(scheme(), workers),
    };
    working_by(policy, workers, outside, inside)
}

/// A worker that was asked for tasks hands over the next task, which no other worker has seen.
fn asked() -> Program {
    Program::new(2, 8, move |scope| {
        let blocks = InBlocks::<2> { blocks: 2 };
        let policy = Requests::sticky(Scheme::new(Fifo, HALF).queues(blocks), 2);
        let crew = scope.share(Crew::new(policy, 2, 4));
        let ledger = scope.share(Ledger::new(4));
        scope.spawn(move || {
            let mut worker = crew.worker(0).expect("a seat");
            for numbers in [0..3, 3..4] {
                for number in numbers {
                    worker.push(ledger.make(number), Put::PLAIN).expect("there is room");
                }
                while let Some(task) = worker.try_next_task() {
                    ledger.take(task);
                }
            }
            crew.close();
        });
        scope.spawn(move || {
            let mut worker = crew.worker(1).expect("a seat");
            while let Some(task) = worker.next_task() {
                antiphon_check::probe("handed over");
                ledger.take(task);
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// One worker more than there are desks: it also finds the tasks on the desks.
fn few_desks() -> Program {
    let policy = || Requests::new(Scheme::new(Lifo, HALF).capacity(2, 2), 2);
    working_by(policy, 3, 1, 4)
}

/// A policy that has queues of its own, with workers that have none.
fn staged(workers: usize, outside: usize, inside: usize) -> Program {
    working_by(|| Staged::<Check>::new(2, 4), workers, outside, inside)
}

/// `workers` workers run the tasks that one thread from outside submits; the first task makes
/// `inside` others.
fn working_by<Y: Policy<Check> + 'static>(
    policy: impl Fn() -> Y + Send + Sync + 'static,
    workers: usize,
    outside: usize,
    inside: usize,
) -> Program {
    Program::new(workers as u32 + 1, 2 * (outside + inside) as u32, move |scope| {
        let crew = scope.share(Crew::new(policy(), workers, 4));
        let ledger = scope.share(Ledger::new(outside + inside));
        let left = scope.share(U32::ZERO);
        left.store((outside + inside) as u32, Relaxed);
        scope.spawn_each(0..workers, move |me| {
            run(crew, me, ledger, left, outside..outside + inside)
        });
        scope.spawn(move || {
            for number in 0..outside {
                crew.submit(ledger.make(number), Put::PLAIN).expect("there is room");
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// Runs tasks until all are done; the first of them makes others.
fn run<Y: Policy<Check>>(
    crew: &Crew<Y>,
    me: usize,
    ledger: &Ledger,
    left: &U32,
    others: core::ops::Range<usize>,
) {
    let mut worker: Worker<'_, Check, Y> = crew.worker(me).expect("a seat");
    while let Some(task) = worker.next_task() {
        ledger.take(task);
        if ledger.number(task) == 0 {
            for number in others.clone() {
                worker.push(ledger.make(number), Put::PLAIN).expect("there is room");
            }
        }
        if left.fetch_sub(1, Relaxed) == 1 {
            crew.close();
        }
    }
}

/// A worker's task makes another task and waits for it, by other means than the crew's, although
/// the crew is closed: the other worker has not ended yet.
fn closed_in_a_task() -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(Scheme::new(Fifo, HALF).capacity(4, 4), 2, 4));
        let ledger = scope.share(Ledger::new(2));
        let ran = scope.share(U32::ZERO);
        crew.submit(ledger.make(0), Put::PLAIN).expect("there is room");
        crew.close();
        let workers = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        scope.spawn_each(workers, move |mut worker| {
            while let Some(task) = worker.next_task() {
                ledger.take(task);
                if ledger.number(task) == 0 {
                    worker.push(ledger.make(1), Put::PLAIN).expect("there is room");
                    ran.wait_while(Relaxed, |ran| ran == 0);
                } else {
                    ran.fetch_add(1, Relaxed);
                }
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A worker waits in its task, then makes another task and waits for it by other means than the
/// crew's: although the crew was closed meanwhile, the other worker is still there.
fn closed_while_one_waits() -> Program {
    Program::new(3, 6, move |scope| {
        let crew = scope.share(Crew::new(Scheme::new(Fifo, HALF).capacity(4, 4), 2, 4));
        let ledger = scope.share(Ledger::new(1));
        let (said, ran) = (scope.share(Ready::NEW), scope.share(U32::ZERO));
        crew.close();
        let [mut waits, mut worker] = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        scope.spawn(move || said.tell());
        scope.spawn(move || {
            assert_eq!(waits.next_until(&said.awaited(), None), None);
            waits.push(ledger.make(0), Put::PLAIN).expect("there is room");
            ran.wait_while(Relaxed, |ran| ran == 0);
            while waits.next_task().is_some() {}
        });
        scope.spawn(move || {
            while let Some(task) = worker.next_task() {
                ledger.take(task);
                ran.fetch_add(1, Relaxed);
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A policy without room: all tasks go to the surplus, and stay there until they are run.
struct NoRoom;

// SAFETY: it holds no tasks.
unsafe impl Policy<Check> for NoRoom {
    type Queue = ();
    type State = ();

    fn queue(&self) {}

    fn submit(&self, _: &RelaxedQueue<Check>, task: Item, _: Option<u64>) -> Result<(), Full> {
        Err(Full(task))
    }

    fn pop(&self, _: &Own<'_, ()>, (): &mut ()) -> Option<Item> {
        None
    }

    fn steal(&self, _: &Own<'_, ()>, (): &mut (), _: &Others<'_, ()>) -> Stolen {
        Stolen::Empty
    }
}

/// Two workers each take one of three tasks from the surplus, if they don't meet there; the third
/// is still there afterwards. Must reach `both`.
fn surplus_only() -> Program {
    Program::new(2, 3, move |scope| {
        let crew = scope.share(Crew::new(NoRoom, 2, 1));
        let ledger = scope.share(Ledger::new(3));
        let took = scope.share(U32::ZERO);
        for number in 0..3 {
            let put = Put { room: Room::Make, ..Put::PLAIN };
            crew.submit(ledger.make(number), put).expect("room is made");
        }
        for me in 0..2 {
            let mut worker = crew.worker(me).expect("a seat");
            scope.spawn(move || {
                if let Some(task) = worker.try_any_task() {
                    ledger.take(task);
                    took.fetch_add(1, Relaxed);
                }
            });
        }
        scope.finally(move || {
            if took.load(Relaxed) == 2 {
                antiphon_check::probe("both");
            }
            let mut worker = crew.worker(0).expect("it is free");
            while let Some(task) = worker.try_any_task() {
                ledger.take(task);
            }
            ledger.assert_all_taken();
        });
    })
}

/// `workers` workers run what `others` threads submit, `each` tasks each, with room for one task;
/// `room` says what a thread does that finds none.
fn crowding<Y: Policy<Check> + 'static>(
    policy: fn() -> Y,
    room: Room,
    workers: usize,
    others: usize,
    each: usize,
) -> Program {
    let tasks = others * each;
    Program::new((workers + others) as u32, 2 * tasks as u32, move |scope| {
        let crew = scope.share(Crew::new(policy(), workers, 1));
        let ledger = scope.share(Ledger::new(tasks));
        let left = scope.share(U32::ZERO);
        left.store(tasks as u32, Relaxed);
        scope.spawn_each(0..workers, move |me| run(crew, me, ledger, left, 0..0));
        scope.spawn_each(0..others, move |other| {
            for number in other * each..(other + 1) * each {
                let put = Put { room, ..Put::PLAIN };
                crew.submit(ledger.make(number), put).expect("room comes, or is made");
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

fn scheme() -> Scheme<Fifo, Steal> {
    Scheme::new(Fifo, HALF).capacity(2, 2)
}

/// A policy that keeps all tasks in a queue of its own, with room for one.
struct Apart(RelaxedQueue<Check>);

impl Apart {
    fn new() -> Self {
        Self(RelaxedQueue::new(1))
    }
}

// SAFETY: tasks go into one queue, and come out of that queue.
unsafe impl Policy<Check> for Apart {
    type Queue = ();
    type State = ();

    fn queue(&self) {}

    fn submit(&self, _: &RelaxedQueue<Check>, task: Item, _: Option<u64>) -> Result<(), Full> {
        self.0.push(task)
    }

    fn has_tasks(&self) -> bool {
        !self.0.is_empty()
    }

    fn pop(&self, _: &Own<'_, ()>, (): &mut ()) -> Option<Item> {
        self.0.pop()
    }

    fn steal(&self, _: &Own<'_, ()>, (): &mut (), _: &Others<'_, ()>) -> Stolen {
        self.0.pop().map_or(Stolen::Empty, Stolen::Got)
    }
}

/// A thread that waits for room in a crew that is closed gets its task back.
fn waiting_closed() -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(scheme(), 1, 1));
        let ledger = scope.share(Ledger::new(4));
        scope.spawn(move || {
            let refused = (0..3).filter_map(|number| {
                let put = Put { room: Room::Wait, ..Put::PLAIN };
                crew.submit(ledger.make(number), put).err().map(|full| ledger.take(full.0))
            });
            // There is room for two tasks.
            assert!(refused.count() >= 1);
        });
        scope.spawn(move || crew.close());
    })
}

/// Tasks that are submitted before a crew is closed are run.
fn closed(workers: usize) -> Program {
    Program::new(workers as u32 + 1, 2, move |scope| {
        let policy = Scheme::new(Fifo, HALF).capacity(4, 4);
        let crew = scope.share(Crew::new(policy, workers, 4));
        let ledger = scope.share(Ledger::new(1));
        scope.spawn_each(0..workers, move |me| {
            let mut worker = crew.worker(me).expect("a seat");
            while let Some(task) = worker.next_task() {
                ledger.take(task);
            }
        });
        scope.spawn(move || {
            crew.submit(ledger.make(0), Put::PLAIN).expect("there is room");
            crew.close();
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}
