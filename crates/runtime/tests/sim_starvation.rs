//! Tests which policies are starvation-free: a ready task is eventually run, although each task
//! makes two others ready for ever.
//!
//! Workers take turns on one simulated thread, and a task takes a microsecond of simulated time:
//! each run is the same. The docs of each policy state the expected result.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_runtime::sched::{
    Adaptive, Aging, BoxedPolicy, Crew, Deadlines, Fifo, InBlocks, Lifo, LifoSlot, Order, Policy,
    Put, Ranked, Requests, Reverse, Scheme, Share, Spill, Staged, Steal, Stochastic, Switch,
    Tickets, Worker,
};
use antiphon_sim::{Machine, Sim, Simulation, work};
use antiphon_sync::queue::Item;

const HALF: Steal = Steal { share: Share::Half };
/// Duration of a task, in nanoseconds.
const TASK_NS: u64 = 1_000;
/// Number of other tasks after which the waiting task counts as starving.
const PATIENCE: u64 = 1_000;
/// Number of a worker's tasks before the waiting task; as many are behind it.
const BEFORE: u64 = 3;

/// Ranks of the waiting task, and of all others.
type Ranks = (Option<u64>, Option<u64>);
const NONE: Ranks = (None, None);

fn item(number: u64) -> Item {
    Item::new(8 * (512 + number)).expect("a word for an item")
}

fn push<Y: Policy<Sim>>(worker: &mut Worker<'_, Sim, Y>, task: Item, rank: Option<u64>) {
    worker.push(task, Put { rank, ..Put::PLAIN }).expect("room");
}

/// Returns how many tasks are run before the waiting task; `None` if it is not run.
fn waits<Y: Policy<Sim>>(policy: Y, workers: usize, (mine, theirs): Ranks) -> Option<u64> {
    let (waiting, other) = (item(0), item(1));
    let crew = Crew::<Sim, Y>::new(policy, workers, 4);
    let mut workers: Vec<_> = (0..workers).map(|seat| crew.worker(seat).expect("a seat")).collect();
    for half in 0..2 {
        for worker in &mut workers {
            (0..BEFORE).for_each(|_| push(worker, other, theirs));
        }
        if half == 0 {
            push(&mut workers[0], waiting, mine);
        }
    }
    for run in 0..PATIENCE {
        let turn = run as usize % workers.len();
        let worker = &mut workers[turn];
        if worker.try_next_task().expect("there is always one") == waiting {
            return Some(run);
        }
        work(TASK_NS);
        (0..2).for_each(|_| push(worker, other, theirs));
    }
    None
}

/// Runs [`waits`] on a simulated thread.
fn waits_for<Y: Policy<Sim> + 'static>(
    policy: fn() -> Y,
    workers: usize,
    ranks: Ranks,
) -> Option<u64> {
    let waited = Rc::new(Cell::new(None));
    let told = waited.clone();
    let _ = Simulation::new(Machine::eight_sockets(), 1)
        .thread(move || told.set(waits(policy(), workers, ranks)))
        .run(u64::MAX / 2)
        .expect("nobody waits");
    waited.get()
}

#[track_caller]
fn runs_within<Y: Policy<Sim> + 'static>(
    most: u64,
    policy: fn() -> Y,
    workers: usize,
    ranks: Ranks,
) {
    let waited = waits_for(policy, workers, ranks);
    assert!(waited.is_some_and(|tasks| tasks <= most), "{waited:?} with {workers} workers");
}

#[track_caller]
fn starves<Y: Policy<Sim> + 'static>(policy: fn() -> Y, workers: usize, ranks: Ranks) {
    assert_eq!(waits_for(policy, workers, ranks), None, "{workers} workers");
}

/// Asserts that a policy with this order is starvation-free.
macro_rules! fair {
    ($most:expr, $policy:expr) => {
        runs_within($most, || $policy, 1, NONE);
        runs_within(2 * $most, || $policy, 2, NONE);
    };
}

fn of<O: Order>(order: O) -> Scheme<O, Steal> {
    Scheme::new(order, HALF)
}

fn in_blocks<O: Order>(order: O) -> Scheme<O, Steal, InBlocks<4>> {
    of(order).queues(InBlocks::default())
}

#[test]
fn the_first_first_starves_none() {
    fair!(BEFORE, of(Fifo));
}

#[test]
fn the_last_first_starves() {
    starves(|| of(Lifo), 1, NONE);
    starves(|| of(Lifo), 2, NONE);
}

#[test]
fn who_comes_to_the_first_again_and_again_starves_none() {
    fair!(7 + BEFORE, of(Switch { every: 7 }));
    fair!(5 * (BEFORE + 1), of(Reverse { every: 5 }));
    // Almost surely: this is one run.
    fair!(PATIENCE, of(Stochastic { first: 64 }));
    starves(|| of(Stochastic { first: 0 }), 1, NONE);
}

#[test]
fn what_is_old_has_its_turn() {
    const AGE: u64 = 50;
    // Twice the age plus the tasks that were there before; readings of the clock also take time.
    fair!(2 * AGE + BEFORE, of(Adaptive { age_ns: AGE * TASK_NS }));
    starves(|| of(Adaptive { age_ns: u64::MAX }), 1, NONE);
}

#[test]
fn a_slot_is_left_after_so_many_in_a_row() {
    // The first tasks were in the slot before it.
    fair!(4 * (2 * BEFORE + 1), LifoSlot::new(HALF));
    starves(|| LifoSlot::new(HALF).in_a_row(u32::MAX), 1, NONE);
}

/// In blocks, the order is the same.
#[test]
fn what_a_worker_keeps_to_itself_has_its_turn() {
    fair!(BEFORE, in_blocks(Fifo));
    fair!(5 * (BEFORE + 1), in_blocks(Reverse { every: 5 }));
    const AGE: u64 = 50;
    // The same bound; and blocks that are not full count as full.
    fair!(2 * AGE + BEFORE + 4, in_blocks(Adaptive { age_ns: AGE * TASK_NS }));
    starves(|| in_blocks(Lifo), 1, NONE);
    starves(|| in_blocks(Lifo), 2, NONE);
}

/// The first tasks do not fit into their worker's queue.
#[test]
fn what_is_spilt_has_its_turn() {
    fair!(61 * (2 * BEFORE + 1), Spill::new(of(Fifo).capacity(2, 2), 1, 1 << 14));
    fair!(61 * (2 * BEFORE + 1), Spill::locked(of(Fifo).capacity(2, 2), 1 << 14));
    fair!(2 * BEFORE, Tickets::new(of(Fifo), 1, Share::Half, 4));
}

/// A task on a worker's desk goes before the worker's own.
#[test]
fn what_was_asked_for_has_its_turn() {
    fair!(2 * BEFORE, Requests::new(of(Fifo), 2));
    fair!(2 * BEFORE, Requests::sticky(of(Fifo), 2));
}

#[test]
fn deadlines_starve_none_unless_they_stand_still() {
    let usual = || Ranked::<Sim, _>::new(Deadlines { usual_ns: 10 * TASK_NS }, 1, 1 << 14);
    runs_within(BEFORE, usual, 1, NONE);
    runs_within(2 * BEFORE, usual, 2, NONE);
    starves(usual, 1, (None, Some(0)));
    starves(usual, 2, (None, Some(0)));
    // Near the first, because there are several queues.
    let shards = || Ranked::<Sim, _>::new(Deadlines { usual_ns: 10 * TASK_NS }, 4, 1 << 14);
    runs_within(PATIENCE, shards, 2, NONE);
}

#[test]
fn priorities_grow_with_age() {
    const LEVEL: u64 = 10;
    let levels =
        || Ranked::<Sim, _>::new(Aging { level_ns: LEVEL * TASK_NS, usual: 2 }, 1, 1 << 14);
    // The task is three levels below the others, of which two become ready in the time that one
    // takes.
    let most = 2 * 3 * LEVEL + 2 * BEFORE;
    runs_within(most, levels, 1, (Some(3), Some(0)));
    runs_within(most + 2 * BEFORE, levels, 2, (Some(3), Some(0)));
    // Above the others, it runs at once; and a task without a level counts as one of the usual
    // level.
    assert_eq!(waits_for(levels, 1, (Some(0), Some(3))), Some(0));
    assert_eq!(waits_for(levels, 1, (Some(0), None)), Some(0));
    let never = || Ranked::<Sim, _>::new(Aging { level_ns: 1 << 60, usual: 0 }, 1, 1 << 14);
    starves(never, 1, (Some(1), Some(0)));
}

#[test]
fn a_stage_starves_that_is_nobodys_home() {
    let two = || Staged::<Sim>::new(2, 1 << 14);
    // Worker 0 is at home at stage 0.
    starves(two, 1, (Some(1), Some(0)));
    runs_within(BEFORE, two, 1, (Some(0), Some(1)));
    // Worker 1 is at stage 1.
    runs_within(2 * BEFORE, two, 2, (Some(1), Some(0)));
    runs_within(2 * BEFORE, two, 2, (Some(0), Some(0)));
}

/// Inside a box, a policy decides as it does outside.
#[test]
fn a_policy_in_a_box_decides_as_the_one_in_it() {
    fn same<Y>(policy: fn() -> Y, boxed: fn() -> BoxedPolicy<Sim>, ranks: Ranks)
    where
        Y: Policy<Sim> + 'static,
    {
        for workers in [1, 2] {
            let waited = waits_for(policy, workers, ranks);
            assert_eq!(waits_for(boxed, workers, ranks), waited);
        }
    }
    same(|| of(Fifo), || BoxedPolicy::new(of(Fifo)), NONE);
    same(|| of(Lifo), || BoxedPolicy::new(of(Lifo)), NONE);
    same(|| of(Reverse { every: 5 }), || BoxedPolicy::new(of(Reverse { every: 5 })), NONE);
    let twice = || BoxedPolicy::new(BoxedPolicy::new(of(Reverse { every: 5 })));
    same(|| of(Reverse { every: 5 }), twice, NONE);
    let staged = || Staged::<Sim>::new(2, 1 << 14);
    same(staged, || BoxedPolicy::new(Staged::new(2, 1 << 14)), (Some(1), Some(0)));
}
