//! Tests of crews of threads: each task is run once, whatever the policy and the thread that makes
//! it.

use std::cell::Cell;
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::sched::{
    Adaptive, Aging, BoxedPolicy, ByWeight, Crew, Deadlines, Fifo, InBlocks, Lifo, LifoSlot,
    Neighbours, Order, Others, Own, Policy, Put, Ranked, Requests, Reverse, Room, Scheme, Share,
    Spill, Staged, State, Steal, Stochastic, Swap, Switch, Tickets, Wake,
};
use antiphon_sync::queue::{Deque, Full, Item, Lot, MultiQueue, RelaxedQueue, Stolen};

/// Number of runs of each task. A task's number is that of a node in a binary tree: the task makes
/// its two children ready.
struct Tree {
    runs: Vec<AtomicU8>,
    left: AtomicU64,
}

impl Tree {
    fn new(nodes: u64) -> Self {
        Self { runs: (0..nodes).map(|_| AtomicU8::new(0)).collect(), left: AtomicU64::new(nodes) }
    }

    fn nodes(&self) -> u64 {
        self.runs.len() as u64
    }

    /// Runs a task; returns its children, and whether it was the last.
    fn run(&self, node: u64) -> (impl Iterator<Item = u64>, bool) {
        self.runs[node as usize].fetch_add(1, Relaxed);
        let nodes = self.nodes();
        let children = (2 * node + 1..2 * node + 3).filter(move |&child| child < nodes);
        (children, self.left.fetch_sub(1, Relaxed) == 1)
    }

    fn assert_done(&self) {
        assert!(self.runs.iter().all(|runs| runs.load(Relaxed) == 1), "each task once");
    }
}

fn item(node: u64) -> Item {
    Item::new((node + 512) * 8).expect("a multiple of eight")
}

fn node(item: Item) -> u64 {
    item.word() / 8 - 512
}

/// Runs a node, and the children for which there is no room.
fn run<P: Policy<Linux>>(crew: &Crew<Linux, P>, tree: &Tree, seat: usize) {
    let mut worker = crew.worker(seat).expect("a free seat");
    let mut refused = Vec::new();
    while let Some(task) = worker.next_task() {
        refused.push(node(task));
        while let Some(node) = refused.pop() {
            let (children, last) = tree.run(node);
            for child in children {
                refused.extend(
                    worker.push(item(child), Put::PLAIN).err().map(|Full(task)| self::node(task)),
                );
            }
            if last {
                crew.close();
            }
        }
    }
}

fn check<P: Policy<Linux>>(policy: P, workers: usize, nodes: u64) {
    let tree = Tree::new(nodes);
    let mut crew = Crew::<Linux, P>::new(policy, workers, 4);
    thread::scope(|scope| {
        for seat in 0..workers {
            let (crew, tree) = (&crew, &tree);
            scope.spawn(move || run(crew, tree, seat));
        }
        crew.submit(item(0), Put::PLAIN).expect("there is room");
    });
    tree.assert_done();
    assert_eq!(crew.take_left(), None);
}

const HALF: Steal = Steal { share: Share::Half };

fn in_blocks<O: Order>(order: O) -> Scheme<O, Steal, InBlocks> {
    Scheme::new(order, HALF).queues(InBlocks::default())
}

#[test]
fn each_task_is_run_once_by_each_policy() {
    for workers in [1, 2, 3, 8] {
        check(Scheme::new(Fifo, HALF), workers, 20_000);
        check(Scheme::new(Lifo, HALF), workers, 20_000);
        check(Scheme::new(Stochastic { first: 100 }, HALF), workers, 20_000);
        check(Scheme::new(Switch { every: 7 }, HALF), workers, 20_000);
        check(Scheme::new(Reverse { every: 5 }, Steal { share: Share::One }), workers, 20_000);
        let near = Neighbours { range: 2, share: Share::Half };
        check(Scheme::new(Lifo, near), workers, 20_000);
        check(Scheme::new(Adaptive { age_ns: 20_000 }, HALF), workers, 20_000);
        check(in_blocks(Fifo), workers, 20_000);
        check(in_blocks(Lifo), workers, 20_000);
        check(in_blocks(Adaptive { age_ns: 20_000 }), workers, 20_000);
        check(LifoSlot::new(HALF), workers, 20_000);
        check(LifoSlot::new(HALF).age_ns(0).capacity(2, 2), workers, 20_000);
    }
}

#[test]
fn each_task_is_run_once_however_tasks_spread() {
    let many = Share::HalfOfMany(10);
    for workers in [1, 2, 3, 8] {
        check(Scheme::new(Lifo, Steal { share: many }), workers, 20_000);
        let weights = (0..workers as u32).collect();
        let by_weight = ByWeight { weights, share: Share::Half };
        check(Scheme::new(Fifo, by_weight), workers, 20_000);
        check(Tickets::new(Scheme::new(Lifo, HALF), 3, Share::Half, 16), workers, 20_000);
        let small = || Scheme::new(Lifo, HALF).capacity(2, 2);
        check(Spill::new(small(), 5, 2), workers, 20_000);
        check(Spill::locked(small(), 2), workers, 20_000);
        check(Requests::new(small(), workers), workers, 20_000);
        check(Requests::sticky(in_blocks(Fifo), workers), workers, 20_000);
        check(Requests::new(Spill::new(small(), 1, 8), workers / 2), workers, 20_000);
        check(Tickets::new(Spill::new(small(), 1, 1 << 14), 1, many, 1), workers, 20_000);
    }
}

/// Policies of all kinds take turns to be in charge while the tasks are run.
#[test]
fn each_task_is_run_once_though_the_policy_changes() {
    let policies = || {
        let small = Scheme::new(Fifo, HALF).capacity(2, 2);
        Swap::<Linux>::new([
            BoxedPolicy::new(Scheme::new(Lifo, HALF)),
            BoxedPolicy::new(Spill::new(small, 5, 2)),
            BoxedPolicy::new(Ranked::new(Deadlines { usual_ns: 1000 }, 2, 1 << 14)),
            BoxedPolicy::new(LifoSlot::new(HALF)),
        ])
    };
    for workers in [1, 2, 3, 8] {
        let tree = Tree::new(50_000);
        let mut crew = Crew::<Linux, _>::new(policies(), workers, 4);
        let mut changes = 0;
        thread::scope(|scope| {
            for seat in 0..workers {
                let (crew, tree) = (&crew, &tree);
                scope.spawn(move || run(crew, tree, seat));
            }
            crew.submit(item(0), Put::PLAIN).expect("there is room");
            while tree.left.load(Relaxed) > 0 {
                changes += 1;
                assert!(crew.policy().put_in_charge(changes % 4));
                thread::sleep(Duration::from_micros(50));
            }
        });
        tree.assert_done();
        assert_eq!(crew.take_left(), None);
        assert!(changes > 1, "it has changed while they ran");
    }
}

/// The worker that draws a ticket takes the task for which the ticket was left, although the policy
/// itself steals from no worker.
#[test]
fn who_draws_a_ticket_goes_to_whose_it_is() {
    let nobody = Scheme::new(Fifo, Steal { share: Share::HalfOfMany(u64::MAX) });
    let crew = Crew::<Linux, _>::new(Tickets::new(nobody, 2, Share::One, 4), 2, 4);
    let mut busy = crew.worker(0).expect("a free seat");
    let mut free = crew.worker(1).expect("a free seat");
    for task in 0..2 {
        busy.push(item(task), Put::PLAIN).expect("there is room");
    }
    assert_eq!(free.next_task(), Some(item(0)));
    assert_eq!(busy.next_task(), Some(item(1)));
}

/// A worker that was asked hands over its first task when it makes the second.
#[test]
fn who_is_asked_hands_over_its_first_task_with_the_next() {
    let policy = Requests::<Linux, _>::sticky(Scheme::new(Lifo, HALF), 2);
    let crew = Crew::new(policy, 2, 4);
    let mut busy = crew.worker(0).expect("a free seat");
    busy.push(item(1), Put::PLAIN).expect("there is room");
    thread::scope(|scope| {
        let asks = scope.spawn(|| crew.worker(1).expect("a free seat").next_task());
        while !asks.is_finished() {
            // The first task is handed over when the worker was asked.
            busy.push(item(2), Put::PLAIN).expect("there is room");
            let left: Vec<_> = iter::from_fn(|| busy.try_next_task().map(node)).collect();
            match left[..] {
                [2, 1] => busy.push(item(1), Put::PLAIN).expect("there is room"),
                [2] => break,
                _ => panic!("{left:?}"),
            }
        }
        assert_eq!(asks.join().expect("it is well").map(node), Some(1));
    });
}

/// Each task is also run once by policies that have one queue for all workers, even if that is
/// full.
#[test]
fn each_task_is_run_once_from_queues_that_all_share() {
    for (workers, room) in [(1, 1 << 14), (3, 1 << 14), (3, 8)] {
        check(Ranked::new(Deadlines { usual_ns: 1_000_000 }, 1, room), workers, 20_000);
        let aging = Aging { level_ns: 1_000_000, usual: 0 };
        check(Ranked::new(aging, 2 * workers, room), workers, 20_000);
        check(Staged::new(2, room), workers, 20_000);
    }
}

/// Thefts also go through the table.
#[test]
fn each_task_is_run_once_by_a_policy_in_a_box() {
    for workers in [1, 3] {
        check(BoxedPolicy::new(Scheme::new(Lifo, HALF)), workers, 20_000);
        check(BoxedPolicy::new(in_blocks(Lifo)), workers, 20_000);
        check(BoxedPolicy::new(BoxedPolicy::new(LifoSlot::new(HALF))), workers, 20_000);
        check(BoxedPolicy::new(Staged::new(2, 1 << 14)), workers, 20_000);
    }
}

/// A task in the slot of a busy worker goes to another worker.
#[test]
fn what_is_in_a_slot_is_had_when_it_is_old() {
    let crew = Crew::<Linux, _>::new(LifoSlot::new(HALF), 2, 4);
    let mut busy = crew.worker(0).expect("a free seat");
    busy.push(item(7), Put::PLAIN).expect("there is room");
    assert_eq!(crew.worker(1).expect("a free seat").next_task(), Some(item(7)));
    assert_eq!(busy.try_next_task(), None);
}

/// Full queues make workers run their own new tasks: nothing is lost.
#[test]
fn what_there_is_no_room_for_comes_back() {
    check(Scheme::new(Fifo, HALF).capacity(2, 2), 3, 20_000);
}

/// Workers sleep, and are woken for each task.
#[test]
fn a_task_at_a_time_from_outside_is_run() {
    const TASKS: u64 = 2_000;
    let ran = AtomicU64::new(0);
    let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, HALF), 3, 64);
    thread::scope(|scope| {
        for seat in 0..3 {
            let mut worker = crew.worker(seat).expect("a free seat");
            let ran = &ran;
            scope.spawn(move || {
                while worker.next_task().is_some() {
                    ran.fetch_add(1, Relaxed);
                }
            });
        }
        for task in 0..TASKS {
            crew.submit(item(task), Put::PLAIN).expect("there is room");
            while ran.load(Relaxed) <= task {
                thread::yield_now();
            }
        }
        crew.close();
    });
    assert_eq!(ran.load(Relaxed), TASKS);
}

#[test]
fn a_seat_is_taken_once_and_free_again() {
    let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, HALF), 1, 4);
    let worker = crew.worker(0).expect("a free seat");
    assert!(crew.worker(0).is_none() && crew.worker(1).is_none());
    drop(worker);
    assert!(crew.worker(0).is_some());
}

#[test]
fn what_nobody_has_run_is_there_at_the_end() {
    let mut crew = Crew::<Linux, _>::new(Scheme::new(Lifo, HALF), 2, 4);
    crew.submit(item(1), Put::PLAIN).expect("there is room");
    crew.worker(1).expect("a free seat").push(item(2), Put::PLAIN).expect("there is room");
    let mut left = [crew.take_left(), crew.take_left()].map(|left| left.map(node));
    left.sort_unstable();
    assert_eq!((left, crew.take_left()), ([Some(1), Some(2)], None));
}

/// First in, first out; the first theft panics.
struct Panics(AtomicBool);

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl Policy<Linux> for Panics {
    type Queue = Deque<Linux>;
    type State = ();

    fn queue(&self) -> Deque<Linux> {
        Deque::new(4, 4)
    }

    fn pop(&self, own: &Own<'_, Deque<Linux>>, (): &mut ()) -> Option<Item> {
        own.pop_front()
    }

    fn steal(
        &self,
        own: &Own<'_, Deque<Linux>>,
        (): &mut (),
        others: &Others<'_, Deque<Linux>>,
    ) -> Stolen {
        assert!(self.0.swap(true, Relaxed), "the first theft");
        others.try_each(0..others.count(), |victim| own.steal(victim, |there| there))
    }
}

/// A worker that searches when the policy panics no longer counts as searching: others are woken as
/// before, whether the worker has ended or continues the task that it was in.
#[test]
fn a_policy_that_panics_loses_no_wake() {
    [true, false].into_iter().for_each(loses_no_wake);
}

fn loses_no_wake(is_gone: bool) {
    let crew = Crew::<Linux, _>::new(Panics(AtomicBool::new(false)), 2, 4);
    let mut first = crew.worker(0).expect("a free seat");
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| first.next_task()));
    assert!(panicked.is_err());
    let mut goes_on = (!is_gone).then_some(first);
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        let mut second = crew.worker(1).expect("a free seat");
        scope.spawn(move || {
            while let Some(task) = second.next_task() {
                ran.send(node(task)).expect("somebody waits for it");
            }
        });
        for task in 0..100 {
            crew.submit(item(task), Put::PLAIN).expect("there is room");
            let run = runs.recv_timeout(Duration::from_secs(20));
            if run != Ok(task) {
                crew.close();
                drop(goes_on.take());
                panic!("task {task}: {run:?}");
            }
        }
        crew.close();
        // The others stay as long as the worker may make tasks.
        drop(goes_on);
    });
}

/// Tasks are run even if each worker ends early, with tasks of its own left.
#[test]
fn who_comes_looks_outside_first() {
    let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, HALF), 1, 4);
    crew.worker(0).expect("a free seat").push(item(1), Put::PLAIN).expect("there is room");
    for number in 2..100 {
        crew.submit(item(number), Put::PLAIN).expect("there is room");
        let mut worker = crew.worker(0).expect("a free seat");
        assert_eq!(worker.try_next_task(), Some(item(number)));
    }
}

/// An item that a caller has made up is not a task.
#[test]
#[should_panic(expected = "the policy has tasks already")]
fn a_policy_brings_no_tasks() {
    let policy = Ranked::new(Deadlines { usual_ns: 0 }, 1, 8);
    policy.submit(&RelaxedQueue::new(8), item(1), Some(1)).expect("there is room");
    drop(Crew::<Linux, _>::new(policy, 1, 8));
}

#[test]
#[should_panic(expected = "the queue has tasks already")]
fn nor_does_a_queue_for_what_has_no_room() {
    let queue = MultiQueue::<Linux>::new(1, 8);
    queue.push(item(1), &mut Lot::new(1)).expect("there is room");
    drop(Spill::onto(Scheme::new(Fifo, HALF), queue));
}

#[test]
fn what_a_worker_has_kept_to_itself_is_found_when_it_is_gone() {
    let crew = Crew::<Linux, _>::new(in_blocks(Lifo), 2, 4);
    crew.worker(0).expect("a free seat").push(item(7), Put::PLAIN).expect("there is room");
    crew.close();
    assert_eq!(crew.worker(1).expect("a free seat").next_task(), Some(item(7)));
}

/// Tasks that the worker shares are found by others.
#[test]
fn what_a_worker_shares_is_found() {
    let crew = Crew::<Linux, _>::new(in_blocks(Fifo), 2, 4);
    let mut busy = crew.worker(0).expect("a free seat");
    let mut free = crew.worker(1).expect("a free seat");
    busy.push(item(7), Put::PLAIN).expect("there is room");
    thread::scope(|scope| {
        let task = scope.spawn(move || free.next_task());
        while crew.stats().rests == 0 {
            thread::yield_now();
        }
        assert!(!task.is_finished(), "it is in the block that is being filled");
        busy.share();
        assert_eq!(task.join().expect("it is well"), Some(item(7)));
    });
}

/// A worker in a task lets others run the tasks that it makes, although the crew is closed.
#[test]
fn who_is_in_a_task_keeps_others_from_their_end() {
    for _ in 0..200 {
        let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, HALF), 2, 4);
        crew.submit(item(0), Put::PLAIN).expect("there is room");
        crew.close();
        let ran = AtomicU64::new(0);
        let work = |seat| {
            let mut worker = crew.worker(seat).expect("a free seat");
            while let Some(task) = worker.next_task() {
                ran.fetch_add(1, Relaxed);
                if task == item(0) {
                    worker.push(item(1), Put::PLAIN).expect("there is room");
                    while ran.load(Relaxed) < 2 {
                        thread::yield_now();
                    }
                }
            }
        };
        // Both workers are there before either ends.
        let both = Barrier::new(2);
        let (work, both) = (&work, &both);
        thread::scope(|scope| {
            for seat in 0..2 {
                scope.spawn(move || {
                    both.wait();
                    work(seat);
                });
            }
        });
        assert_eq!(ran.load(Relaxed), 2);
    }
}

/// The state of the workers, as seen by an observer.
#[test]
fn what_workers_are_at_is_seen() {
    let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, HALF), 2, 4).spares(1).recorded(16);
    assert_eq!(crew.look().workers, []);
    assert_eq!(crew.latest_ns(), [None, None]);
    crew.submit(item(0), Put::PLAIN).expect("there is room");
    let mut first = crew.worker(1).expect("a free seat");
    assert_eq!(crew.look().shared, 1);
    assert_eq!(first.next_task(), Some(item(0)));
    first.push(item(1), Put::PLAIN).expect("there is room");
    let look = crew.look();
    let [working] = look.workers[..] else { panic!("{look:?}") };
    assert_eq!((working.seat, working.state), (1, State::Runs));
    assert_eq!((&look.queued[..], look.shared), (&[0, 1][..], 0));
    assert!(!crew.is_at_rest());
    // The next task is a new turn.
    assert_eq!(first.next_task(), Some(item(1)));
    assert_ne!(crew.look().workers[0].turn, working.turn);
    assert_eq!(first.leave(), Some(1));
    assert_eq!(crew.look().workers[0].state, State::Away);
    drop(first);
    thread::scope(|scope| {
        for seat in 0..2 {
            let mut worker = crew.worker(seat).expect("a free seat");
            scope.spawn(move || assert_eq!(worker.next_task(), None));
        }
        while !crew.is_at_rest() {
            thread::yield_now();
        }
        let look = crew.look();
        assert!(look.workers.iter().all(|worker| worker.state == State::Rests), "{look:?}");
        assert_eq!(look.workers.len(), 2);
        crew.close();
    });
    assert!(crew.latest_ns()[1].is_some());
}

#[test]
fn a_worker_with_a_seat_does_not_wait_for_room() {
    let scheme = Scheme::new(Fifo, Steal { share: Share::Half }).capacity(2, 2);
    let crew = Crew::<Linux, _>::new(scheme, 1, 2);
    let mut worker = crew.worker(0).expect("a free seat");
    let put = Put { room: Room::Wait, ..Put::PLAIN };
    let refused = (0..8).filter(|&task| worker.push(item(task), put).is_err()).count();
    assert_eq!(refused as u64, crew.stats().refused);
    assert!(refused > 0);
    let outside = Put { outside: true, ..put };
    assert!(worker.push(item(8), outside).is_err(), "not into the queue for tasks from outside");
    // If room is made, no task is refused.
    let put = Put { room: Room::Make, ..Put::PLAIN };
    assert!((8..16).all(|task| worker.push(item(task), put).is_ok()));
    let left = iter::from_fn(|| worker.try_any_task()).count();
    assert_eq!(left, 16 - refused);
}

#[test]
fn a_task_as_from_outside_is_for_any_worker() {
    let crew = Crew::<Linux, _>::new(Scheme::new(Fifo, Steal { share: Share::Half }), 2, 8);
    let [mut maker, mut other] = [0, 1].map(|seat| crew.worker(seat).expect("a free seat"));
    maker.push(item(1), Put::PLAIN).expect("there is room");
    let found = Cell::new(0);
    let put = Put { outside: true, wake: Wake::Later(&found), ..Put::PLAIN };
    maker.push(item(2), put).expect("there is room");
    assert_eq!(found.get(), 1);
    // This happens before it steals the task that was there first.
    assert_eq!(other.try_any_task(), Some(item(2)));
    assert_eq!(maker.try_next_task(), Some(item(1)));
}
