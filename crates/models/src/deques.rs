//! Models of a worker's deque: each item is taken out once, by a thread that sees what was done
//! before it was put in; and the answers are those of a sequential queue.

use antiphon_check::linearizability::queues::QueueAnswer::{Empty, Full, Got, Nothing, Pushed};
use antiphon_check::linearizability::queues::QueueCall::{self, Back, Front, Push};
use antiphon_check::linearizability::queues::{Order, Queue, QueueAnswer};
use antiphon_check::{Check, History};
use antiphon_sync::queue::{self, Stolen, WorkQueue};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, all_of, model};
use crate::ledger::{Ledger, found, settle};
use crate::program::Program;

type ChaseLev = queue::ChaseLev<Check>;
type Deque = queue::Deque<Check>;
type Slotted = queue::Slotted<Check>;
/// The queue of small blocks.
type Blocks = queue::Blocks<Check, 2>;

pub fn entries() -> Vec<Entry> {
    all_of([
        Subject("deque").models([
            model("back-1+1", stealing(LAST_OUT, 2, 4, &[2]), PLAIN),
            model("back-1+2", stealing(LAST_OUT, 2, 4, &[1, 1]), PLAIN),
            model("front-1+1", stealing(FIRST_OUT, 2, 4, &[2]), PLAIN),
            model("grows-1+1", stealing(GROWS, 2, 8, &[2]), PLAIN),
            model("laps-1+1", stealing(LAPS, 2, 2, &[2]), PLAIN),
            model("laps-1+2", stealing(LAPS, 2, 2, &[2, 2]), PLAIN).by_lot(5_000),
            model("half-1+1", halving(four, LAST_OUT, &[2]), PLAIN),
            model("half-1+2", halving(four, LAST_OUT, &[1, 1]), PLAIN),
            model("half-both-ends-1+2", halving(four, BOTH, &[2, 1]), PLAIN).by_lot(10_000),
            model("half-refilled-1+2", halving(four, REFILLED, &[2, 2]), PLAIN).by_lot(10_000),
            model("seen-laps-1+1", seen(|| Deque::new(4, 4), 3, &[Last, Last]), PLAIN),
            model("seen-grows-1+1", seen(|| Deque::new(2, 4), 2, &[In, In]), PLAIN),
        ]),
        Subject("chase-lev").models([
            model("back-1+1", stealing_one(LAST_OUT, 2, 4, &[2]), PLAIN),
            model("back-1+2", stealing_one(LAST_OUT, 2, 4, &[1, 1]), PLAIN),
            model("front-1+1", stealing_one(FIRST_OUT, 2, 4, &[2]), PLAIN),
            model("laps-1+1", stealing_one(LAPS, 2, 2, &[2]), PLAIN),
        ]),
        Subject("blocks").models([
            model("in-order-1+1", in_blocks_of_one(FIRST_OUT, &[2]), PLAIN),
            model("in-order-both-ends-1+1", in_blocks_of_one(LAPS, &[2]), PLAIN),
            model("half-1+1", halving(blocks, BLOCKS, &[2]), PLAIN),
            model("half-1+2", halving(blocks, BLOCKS, &[1, 1]), PLAIN),
            model("half-both-ends-1+2", halving(blocks, BLOCKS_BOTH, &[2, 1]), PLAIN),
            model("full-1+1", halving(blocks, FILLS, &[1]), PLAIN),
        ]),
        Subject("slotted").models([
            model("once-1+1", halving(slotted, SLOT, &[2]), PLAIN),
            model("once-1+2", halving(slotted, SLOT, &[1, 1]), PLAIN),
            model("once-full-1+1", halving(slotted, SLOT_FULL, &[2]), PLAIN),
            model("once-aged-1+1", halving(aged, SLOT, &[2]), PLAIN),
            model("seen-1+1", seen(slotted, 1, &[In, Last]), PLAIN),
            model("seen-moved-1+1", seen(slotted, 1, &[In, In, Last]), PLAIN),
        ]),
    ])
}

fn four() -> Deque {
    Deque::new(4, 4)
}

fn blocks() -> Blocks {
    Blocks::new(2)
}

/// Thieves get the item in the slot at once.
fn slotted() -> Slotted {
    Slotted::new(2, 2, 0)
}

/// Thieves get the item in the slot after a few readings of the clock.
fn aged() -> Slotted {
    Slotted::new(2, 2, 2)
}

/// A step of a deque's owner.
#[derive(Clone, Copy)]
enum Step {
    In,
    Last,
    First,
    Share,
}

use Step::{First, In, Last, Share};

const LAST_OUT: &[Step] = &[In, In, In, Last, Last];
const FIRST_OUT: &[Step] = &[In, In, First, First];
const GROWS: &[Step] = &[In, In, In, Last];
const LAPS: &[Step] = &[In, In, Last, In, First, In];
const BOTH: &[Step] = &[In, In, In, In, First, Last, Last];
const BLOCKS: &[Step] = &[In, In, In, In, Share, Last, Last, In];
const BLOCKS_BOTH: &[Step] = &[In, In, In, In, In, First, Last, Last, First];
const FILLS: &[Step] = &[In, In, In, In, In, In, In, Last];
const SLOT: &[Step] = &[In, In, Last, First];
const SLOT_FULL: &[Step] = &[In, In, In, In, First];
const REFILLED: &[Step] = &[In, In, In, In, Last, Last, Last, In, In, Last];

fn told(stolen: Stolen) -> QueueAnswer {
    match stolen {
        Stolen::Got(item) => Got(item.word()),
        Stolen::Empty => Empty,
        Stolen::Retry => Nothing,
    }
}

/// Returns the number of items that a script puts in.
fn items(script: &[Step]) -> usize {
    script.iter().filter(|step| matches!(step, In)).count()
}

/// Does the steps of the owner; `note` records a call.
fn own(
    deque: &impl WorkQueue,
    ledger: &Ledger,
    script: &[Step],
    note: impl Fn(QueueCall, &dyn Fn() -> QueueAnswer) -> QueueAnswer,
) {
    let mut number = 0;
    for step in script {
        // SAFETY: one thread of the model is the owner.
        let answer = unsafe {
            match step {
                In => {
                    let item = ledger.make(number);
                    let push = || deque.push(item).map_or(Full, |()| Pushed);
                    let answer = note(Push(item.word()), &push);
                    if answer == Full {
                        ledger.made[number].set(false);
                    }
                    number += 1;
                    answer
                }
                Last => note(Back, &|| found(deque.pop_back())),
                First => note(Front, &|| found(deque.pop_front())),
                Share => {
                    deque.share();
                    Nothing
                }
            }
        };
        settle(ledger, answer);
    }
}

fn stealing(
    script: &'static [Step],
    capacity: usize,
    most: usize,
    thieves: &'static [u32],
) -> Program {
    telling(move || Deque::new(capacity, most), Deque::steal, most, script, thieves)
}

fn stealing_one(
    script: &'static [Step],
    capacity: usize,
    most: usize,
    thieves: &'static [u32],
) -> Program {
    telling(move || ChaseLev::new(capacity, most), ChaseLev::steal, most, script, thieves)
}

/// Uses blocks of one item, so that a thief takes one. A thief does not see items that are not
/// shared.
fn in_blocks_of_one(script: &'static [Step], thieves: &'static [u32]) -> Program {
    let new = || queue::Blocks::<Check, 1>::new(2);
    let steal = move |blocks: &_| {
        // SAFETY: the destination is a new queue of the caller.
        match unsafe { WorkQueue::steal_into(blocks, &new(), |_| 1) } {
            Stolen::Empty => Stolen::Retry,
            other => other,
        }
    };
    telling(new, steal, items(script), script, thieves)
}

/// An owner runs its script; each thief steals its number of times, one item at a time. The answers
/// must be linearizable for a queue of that capacity.
fn telling<Q: WorkQueue + 'static>(
    new: impl Fn() -> Q + Send + Sync + 'static,
    steal: impl Fn(&Q) -> Stolen + Copy + Send + Sync + 'static,
    room: usize,
    script: &'static [Step],
    thieves: &'static [u32],
) -> Program {
    let operations = script.len() as u32 + thieves.iter().sum::<u32>();
    Program::new(1 + thieves.len() as u32, operations, move |scope| {
        let deque = scope.share(new());
        let ledger = scope.share(Ledger::new(items(script)));
        let history = scope.share(History::new());
        scope.spawn(move || own(deque, ledger, script, |call, how| history.record(call, how)));
        scope.spawn_each(thieves, move |&times| {
            for _ in 0..times {
                settle(ledger, history.record(Front, || told(steal(deque))));
            }
        });
        scope.finally(move || {
            drain(deque, ledger);
            history.assert_linearizable(&Queue::new(Order::Exact, room));
        });
    })
}

/// [`stealing`] in which thieves take half, and the order is not checked.
fn halving<Q: WorkQueue + 'static>(
    new: fn() -> Q,
    script: &'static [Step],
    thieves: &'static [u32],
) -> Program {
    let operations = script.len() as u32 + thieves.iter().sum::<u32>();
    Program::new(1 + thieves.len() as u32, operations, move |scope| {
        let queue = scope.share(new());
        let ledger = scope.share(Ledger::new(items(script)));
        scope.spawn(move || own(queue, ledger, script, |_, how| how()));
        scope.spawn_each(thieves, move |&times| {
            let mine = new();
            for _ in 0..times {
                // SAFETY: the queue is the caller's, and is drained below.
                let stolen = unsafe { queue.steal_into(&mine, |size| size) };
                settle(ledger, told(stolen));
                drain_own(&mine, ledger);
            }
        });
        scope.finally(move || drain(queue, ledger));
    })
}

/// Takes out the remaining items; all other threads have ended.
fn drain(deque: &impl WorkQueue, ledger: &Ledger) {
    drain_own(deque, ledger);
    ledger.assert_all_taken();
}

fn drain_own(deque: &impl WorkQueue, ledger: &Ledger) {
    // SAFETY: the caller is the only owner.
    while let Some(item) = unsafe { deque.pop_back() } {
        ledger.take(item);
    }
}

/// A thread that checks a deque that is never empty finds it not empty: `there` items are put in
/// first.
fn seen<Q: WorkQueue + Send + Sync + 'static>(
    new: fn() -> Q,
    there: usize,
    script: &'static [Step],
) -> Program {
    Program::new(2, script.len() as u32 + 1, move |scope| {
        let deque = scope.share(new());
        let ledger = scope.share(Ledger::new(there + items(script)));
        for number in 0..there {
            // SAFETY: no other thread exists yet.
            unsafe { deque.push(ledger.make(number)) }.expect("room");
        }
        scope.spawn(move || {
            let mut number = there;
            for step in script {
                // SAFETY: one thread of the model is the owner.
                unsafe {
                    if matches!(step, In) {
                        deque.push(ledger.make(number)).expect("room");
                        number += 1;
                    } else {
                        ledger.take(deque.pop_back().expect("an item"));
                    }
                }
            }
        });
        scope.spawn(move || assert!(!deque.is_empty(), "an item is there throughout"));
        scope.finally(move || drain(deque, ledger));
    })
}
