//! Models of queues with many producers and consumers: each item is taken out once, by a thread
//! that sees what was done before it was put in; and the answers are those of a sequential queue,
//! or bag.

use antiphon_check::linearizability::queues::QueueAnswer::{Got, Nothing, Pushed};
use antiphon_check::linearizability::queues::QueueCall::{self, Front, Push};
use antiphon_check::linearizability::queues::{Order, Queue, QueueAnswer};
use antiphon_check::{Check, FailureKind, History, probe};
use antiphon_sync::queue::{self, Full, Item, Lot};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, all_of, model};
use crate::ledger::{Ledger, found, settle};
use crate::program::Program;

type RelaxedQueue = queue::RelaxedQueue<Check>;
type MultiQueue = queue::MultiQueue<Check>;
type RankedQueue = queue::RankedQueue<Check>;
type KFifo = queue::KFifo<Check>;

pub fn entries() -> Vec<Entry> {
    let impatient = PLAIN.expiries(1);
    all_of([
        Subject("relaxed-queue").models([
            model("bag-1+1", bag(relaxed::<4>, &[TWICE_IN, TWICE_OUT]), PLAIN),
            model("bag-2+1", bag(relaxed::<2>, &[IN, IN, TWICE_OUT]), PLAIN),
            model("bag-1+2", bag(relaxed::<2>, &[TWICE_IN, OUT, OUT]), PLAIN),
            model("bag-both-2", bag(relaxed::<2>, &[IN_OUT, IN_OUT]), PLAIN),
            model("laps-1+1", bag(relaxed::<1>, &[TWICE_IN, TWICE_OUT]), impatient),
            model("laps-2+2", bag(relaxed::<1>, FOUR), impatient).by_lot(10_000),
            model("size-1+1", counted(), PLAIN).fails(FailureKind::Panic),
            model("passes-the-stopped-1+1", stopped(), impatient).reaches(&["passed"]),
        ]),
        Subject("multi-queue").models([
            model("bag-1+1", bag(multi::<2>, &[TWICE_IN, TWICE_OUT]), PLAIN),
            model("bag-both-2", bag(multi::<2>, &[IN_OUT, IN_OUT]), PLAIN),
            model("bag-2+1", bag(multi::<1>, &[IN, IN, TWICE_OUT]), PLAIN),
            model("bag-grows-1+1", bag(growing::<2>, &[TWICE_IN, TWICE_OUT]), PLAIN),
            model("bag-grows-2+1", bag(growing::<2>, &[IN, TWICE_IN, OUT]), PLAIN).by_lot(10_000),
            model("bag-grows-both-2", bag(growing::<3>, &[IN_OUT_IN, IN_OUT]), PLAIN)
                .by_lot(20_000),
        ]),
        Subject("ranked-queue").models([
            model("queue-1+1", ranked(1, &[TWICE_IN, TWICE_OUT]), PLAIN),
            model("queue-both-2", ranked(1, &[IN_OUT, IN_OUT]), PLAIN),
            model("bag-both-2", ranked(2, &[IN_OUT, IN_OUT]), PLAIN),
        ]),
        Subject("k-fifo").models([
            model("queue-1+1", fifo::<1>(1, &[TWICE_IN, TWICE_OUT]), PLAIN),
            model("queue-both-2", fifo::<1>(1, &[IN_OUT, IN_OUT]), PLAIN),
            model("queue-2+1", fifo::<1>(1, &[IN, IN, TWICE_OUT]), PLAIN),
            model("queue-burnt-2+1", fifo::<1>(1, &[IN, IN, TWICE_OUT]), impatient).by_lot(20_000),
            model("queue-1+2", fifo::<1>(1, &[TWICE_IN, OUT, OUT]), PLAIN),
            model("queue-laps-1+1", fifo::<1>(1, &[AROUND, OUT]), PLAIN),
            model("queue-laps-both-2", fifo::<1>(1, &[IN_OUT, IN_OUT_IN]), PLAIN),
            model("queue-passed-both-2", fifo::<1>(1, &[TWO_LAPS, IN_OUT]), PLAIN).by_lot(20_000),
            model("bounded-1+1", fifo::<2>(2, &[THRICE_IN, THRICE_OUT]), impatient),
            model("bounded-2+1", fifo::<2>(2, &[TWICE_IN, IN, TWICE_OUT]), PLAIN),
            model("bounded-both-2", fifo::<2>(2, &[IN_OUT, IN_OUT]), impatient),
            model("bounded-2+2", fifo::<2>(2, FOUR), impatient).by_lot(10_000),
            model("passes-the-stopped-1+1", burnt(), impatient).reaches(&["passed"]).by_lot(20_000),
            model("passes-the-stopped-all-1+1", burnt(), impatient).long(),
        ]),
    ])
}

/// A queue with many producers and consumers.
trait Many: Send + Sync + 'static {
    fn put(&self, item: Item, lot: &mut Lot) -> Result<(), Full>;
    fn get(&self, lot: &mut Lot) -> Option<Item>;
}

impl Many for RelaxedQueue {
    fn put(&self, item: Item, _: &mut Lot) -> Result<(), Full> {
        self.push(item)
    }
    fn get(&self, _: &mut Lot) -> Option<Item> {
        self.pop()
    }
}

impl Many for MultiQueue {
    fn put(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        self.push(item, lot)
    }
    fn get(&self, lot: &mut Lot) -> Option<Item> {
        self.pop(lot)
    }
}

/// Uses one rank for all items.
impl Many for RankedQueue {
    fn put(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        self.push(item, 7, lot)
    }
    fn get(&self, lot: &mut Lot) -> Option<Item> {
        self.pop(lot)
    }
}

impl Many for KFifo {
    fn put(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        self.push(item, lot)
    }
    fn get(&self, lot: &mut Lot) -> Option<Item> {
        self.pop(lot)
    }
}

fn relaxed<const CAPACITY: usize>() -> RelaxedQueue {
    RelaxedQueue::new(CAPACITY)
}

/// Creates a queue of two shards.
fn multi<const CAPACITY: usize>() -> MultiQueue {
    MultiQueue::new(2, CAPACITY)
}

/// Creates a queue of one shard with room for one item, which adds shards when needed.
fn growing<const MOST: usize>() -> MultiQueue {
    MultiQueue::growing(1, MOST, 1)
}

/// A step of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Put,
    Take,
}

use Step::{Put, Take};

/// Seeds of the first thread. With `SHARDS` it puts in at one shard, and checks the other first
/// when it takes out; the second thread does the reverse. `CELLS` does the same for cells.
const SHARDS: u64 = 16;
const CELLS: u64 = 17;

const IN: &[Step] = &[Put];
const TWICE_IN: &[Step] = &[Put, Put];
const THRICE_IN: &[Step] = &[Put, Put, Put];
const OUT: &[Step] = &[Take];
const TWICE_OUT: &[Step] = &[Take, Take];
const THRICE_OUT: &[Step] = &[Take, Take, Take];
const IN_OUT: &[Step] = &[Put, Take];
const IN_OUT_IN: &[Step] = &[Put, Take, Put];
const TWO_LAPS: &[Step] = &[Put, Put, Take, Put, Take, Take, Put];
const AROUND: &[Step] = &[Put, Put, Take, Put];
const FOUR: &[&[Step]] = &[TWICE_IN, IN, TWICE_OUT, OUT];

fn bag<Q: Many>(new: fn() -> Q, scripts: &'static [&'static [Step]]) -> Program {
    passing(new, Order::None, SHARDS, scripts)
}

/// With one shard, items come out in the order in which they were put in.
fn ranked(shards: usize, scripts: &'static [&'static [Step]]) -> Program {
    let order = if shards == 1 { Order::Exact } else { Order::None };
    passing(move || RankedQueue::new(shards, 4), order, SHARDS, scripts)
}

/// A queue whose order is relaxed within `K`: an exact queue if `K` is 1.
fn fifo<const K: usize>(capacity: usize, scripts: &'static [&'static [Step]]) -> Program {
    passing(move || KFifo::new(capacity, K), Order::Within(K), CELLS, scripts)
}

/// Threads put in and take out. No item is lost, a thread that finds nothing is right, and the
/// items found agree with `order`.
fn passing<Q: Many>(
    new: impl Fn() -> Q + Send + Sync + 'static,
    order: Order,
    seed: u64,
    scripts: &'static [&'static [Step]],
) -> Program {
    let steps = || scripts.iter().copied().flatten();
    let items = steps().filter(|step| **step == Put).count();
    Program::new(scripts.len() as u32, steps().count() as u32, move |scope| {
        let queue = scope.share(new());
        let ledger = scope.share(Ledger::new(items));
        let history = scope.share(History::new());
        let mut number = 0;
        for (thread, &script) in scripts.iter().enumerate() {
            let mut lot = Lot::new(seed + thread as u64);
            let first = number;
            number += script.iter().filter(|step| **step == Put).count();
            scope.spawn(move || {
                let mut numbers = first..;
                for step in script {
                    match step {
                        Put => put(queue, ledger, history, &mut lot, numbers.next().unwrap_or(0)),
                        Take => {
                            let answer = history.record(Front, || found(queue.get(&mut lot)));
                            settle(ledger, answer);
                        }
                    }
                }
            });
        }
        scope.finally(move || {
            let mut lot = Lot::new(0);
            while let Some(item) = queue.get(&mut lot) {
                history.record(Front, || Got(item.word()));
                ledger.take(item);
            }
            ledger.assert_all_taken();
            history.assert_linearizable(&Queue::new(order, usize::MAX));
        });
    })
}

/// `Full` is no answer of a bag: other threads may be about to use the room.
fn put(
    queue: &impl Many,
    ledger: &Ledger,
    history: &History<QueueCall, QueueAnswer>,
    lot: &mut Lot,
    number: usize,
) {
    let item = ledger.make(number);
    let put = || queue.put(item, lot).map_or(Nothing, |()| Pushed);
    if history.record(Push(item.word()), put) == Nothing {
        ledger.made[number].set(false);
    }
}

/// KF-5: one thread seems to be stopped in a cell that it has claimed, one of two. So another finds
/// no room for its second item, but takes everything else that it has put in. Must reach `passed`.
fn burnt() -> Program {
    Program::new(2, 6, |scope| {
        let queue = scope.share(KFifo::new(1, 1));
        let ledger = scope.share(Ledger::new(4));
        let push = move |number: usize| {
            let item = ledger.make(number);
            let pushed = queue.push(item, &mut Lot::new(0));
            if pushed.is_err() {
                ledger.made[number].set(false);
            }
            pushed.ok().map(|()| item)
        };
        let pop = move || queue.pop(&mut Lot::new(0)).inspect(|&item| ledger.take(item));
        scope.spawn(move || {
            push(0);
        });
        scope.spawn(move || {
            let (first, _) = (push(1), push(2));
            let taken = pop();
            let third = push(3);
            if (taken, pop()) == (first, third) && third.is_some() {
                probe("passed");
            }
        });
        scope.finally(move || {
            while pop().is_some() {}
            ledger.assert_all_taken();
        });
    })
}

/// One thread puts an item in, takes it out, and puts another in, so the queue never has two. The
/// checker must find a reader that counts two: it loads the head before the first item is taken,
/// and the tail after the second is in. So the size is no linearizable operation (document 002,
/// section 2.3.4), and `len` is only a hint.
fn counted() -> Program {
    Program::new(2, 2, |scope| {
        let queue = scope.share(RelaxedQueue::new(4));
        let ledger = scope.share(Ledger::new(2));
        scope.spawn(move || {
            assert!(queue.push(ledger.make(0)).is_ok());
            let first = queue.pop().expect("no other thread takes items");
            ledger.take(first);
            assert!(queue.push(ledger.make(1)).is_ok());
        });
        scope.spawn(move || assert!(queue.len() < 2, "the queue never has two items"));
    })
}

/// RLX-3: one thread seems to be stopped between its draw and its cell; another puts an item in
/// behind it, and a thread that takes out gets that item. Must reach `passed`.
fn stopped() -> Program {
    Program::new(2, 3, |scope| {
        let queue = scope.share(RelaxedQueue::new(4));
        let ledger = scope.share(Ledger::new(2));
        scope.spawn(move || assert!(queue.push(ledger.make(0)).is_ok()));
        scope.spawn(move || {
            let drawn = queue.len() == 1;
            let second = ledger.make(1);
            assert!(queue.push(second).is_ok());
            let taken = queue.pop();
            taken.into_iter().for_each(|item| ledger.take(item));
            if drawn && taken == Some(second) {
                probe("passed");
            }
        });
        scope.finally(move || {
            std::iter::from_fn(|| queue.pop()).for_each(|item| ledger.take(item));
            ledger.assert_all_taken();
        });
    })
}
