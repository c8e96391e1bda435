//! Cost of passing an item through a queue, compared with crossbeam's.
//!
//! The queues take turns, so that what a machine does meanwhile hits all of them. Times are medians
//! of all turns, of all threads together for an item. `cargo run --release -p antiphon-sync
//! --example queues`

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, LazyLock};
use std::time::Instant;

use antiphon_linux::{Linux, pin, usable};
use antiphon_sync::queue::{
    Blocks, ChaseLev, Deque, Item, KFifo, Lot, MultiQueue, RelaxedQueue, Stolen, WorkQueue,
};
use crossbeam_deque::{Steal, Stealer, Worker};
use crossbeam_queue::{ArrayQueue, SegQueue};

const TURNS: usize = 31;
/// Items of a turn, and how many a worker puts in before it takes out.
const ITEMS: u64 = 200_000;
const BATCH: u64 = 100;

fn item(number: u64) -> Item {
    Item::new(8 * (512 + number)).expect("a word for an item")
}

/// A worker's queue: what the worker does with it, and what a thief does, which says how many it
/// has got.
trait Work: Sync {
    fn put(&self, item: Item);
    fn take(&self) -> Option<Item>;
    fn thief(&self, done: &AtomicBool) -> u64;
}

impl<Q: WorkQueue + Sync> Work for (Q, fn() -> Q) {
    fn put(&self, item: Item) {
        // SAFETY: one thread is the owner, here and below.
        unsafe { self.0.push(item) }.expect("room for a batch");
    }
    fn take(&self) -> Option<Item> {
        // SAFETY: as above.
        unsafe { self.0.pop_back() }
    }
    fn thief(&self, done: &AtomicBool) -> u64 {
        let (mine, mut got) = (self.1(), 0);
        while !done.load(Relaxed) {
            // SAFETY: `mine` is this thread's, and empty.
            if let Stolen::Got(item) = unsafe { self.0.steal_into(&mine, |size| size) } {
                black_box(item);
                got += 1;
                // SAFETY: as above.
                while let Some(item) = unsafe { mine.pop_back() } {
                    black_box(item);
                    got += 1;
                }
            }
        }
        got
    }
}

/// Crossbeam's: the owner's half does not leave its thread, so it is the one that asks.
struct Crossbeam {
    worker: Worker<Item>,
    stealer: Stealer<Item>,
}

// SAFETY: `worker` is used by the one thread that is the owner.
unsafe impl Sync for Crossbeam {}

impl Crossbeam {
    fn new() -> Self {
        let worker = Worker::new_lifo();
        Self { stealer: worker.stealer(), worker }
    }
}

impl Work for Crossbeam {
    fn put(&self, item: Item) {
        self.worker.push(item);
    }
    fn take(&self) -> Option<Item> {
        self.worker.pop()
    }
    fn thief(&self, done: &AtomicBool) -> u64 {
        let (mine, mut got) = (Worker::new_lifo(), 0);
        while !done.load(Relaxed) {
            if let Steal::Success(item) = self.stealer.steal_batch_and_pop(&mine) {
                black_box(item);
                got += 1;
                while let Some(item) = mine.pop() {
                    black_box(item);
                    got += 1;
                }
            }
        }
        got
    }
}

/// A queue of many: a thread puts in and takes out.
trait Many: Sync {
    fn put(&self, item: Item, lot: &mut Lot) -> bool;
    fn take(&self, lot: &mut Lot) -> Option<Item>;
}

macro_rules! many {
    ($queue:ty, |$self:ident, $item:ident, $lot:ident| $put:expr, $take:expr) => {
        impl Many for $queue {
            fn put(&$self, $item: Item, $lot: &mut Lot) -> bool {
                $put
            }
            fn take(&$self, $lot: &mut Lot) -> Option<Item> {
                $take
            }
        }
    };
}

many!(RelaxedQueue<Linux>, |self, item, _lot| self.push(item).is_ok(), self.pop());
many!(MultiQueue<Linux>, |self, item, lot| self.push(item, lot).is_ok(), self.pop(lot));
many!(KFifo<Linux>, |self, item, lot| self.push(item, lot).is_ok(), self.pop(lot));
many!(ArrayQueue<Item>, |self, item, _lot| self.push(item).is_ok(), self.pop());
many!(
    SegQueue<Item>,
    |self, item, _lot| {
        self.push(item);
        true
    },
    self.pop()
);

/// Keeps a thread on a CPU. The main thread is on one too, and knows of all others.
fn stay(thread: usize) {
    static CPUS: LazyLock<Vec<u32>> = LazyLock::new(usable);
    pin(CPUS[thread % CPUS.len()]).expect("a usable CPU");
}

/// An owner's batches, with so many thieves: nanoseconds an item.
fn batches(queue: &dyn Work, thieves: usize) -> f64 {
    let (done, ready) = (AtomicBool::new(false), Barrier::new(thieves + 1));
    let steal = |cpu| {
        stay(cpu);
        ready.wait();
        queue.thief(&done)
    };
    std::thread::scope(|scope| {
        let steal = &steal;
        let thieves: Vec<_> = (1..=thieves).map(|cpu| scope.spawn(move || steal(cpu))).collect();
        stay(0);
        ready.wait();
        let (begin, mut own) = (Instant::now(), 0);
        for _ in 0..ITEMS / BATCH {
            (0..BATCH).for_each(|number| queue.put(item(number)));
            while let Some(item) = queue.take() {
                black_box(item);
                own += 1;
            }
        }
        let ns = begin.elapsed().as_nanos() as f64;
        done.store(true, Relaxed);
        let stolen: u64 = thieves.into_iter().map(|thief| thief.join().expect("it ends")).sum();
        assert_eq!(own + stolen, ITEMS, "each item is had once");
        ns / ITEMS as f64
    })
}

/// Threads put in and take out in turn: nanoseconds an item, from when the first begins until the
/// last has ended.
fn in_turn(queue: &dyn Many, threads: u64) -> f64 {
    let ready = Barrier::new(threads as usize);
    let work = |seed| {
        stay(seed as usize);
        let (mut lot, mut took) = (Lot::new(seed), 0);
        ready.wait();
        let begin = Instant::now();
        for number in 0..ITEMS / threads {
            assert!(queue.put(item(number), &mut lot), "room for what was taken");
            took += u64::from(queue.take(&mut lot).map(black_box).is_some());
        }
        (begin, Instant::now(), took)
    };
    let did: Vec<_> = std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads).map(|seed| scope.spawn(move || work(seed))).collect();
        workers.into_iter().map(|worker| worker.join().expect("it ends")).collect()
    });
    let mut lot = Lot::new(0);
    let left = std::iter::from_fn(|| queue.take(&mut lot)).count() as u64;
    let took = left + did.iter().map(|(.., took)| took).sum::<u64>();
    assert_eq!(took, ITEMS / threads * threads, "each item is had once");
    let begin = did.iter().map(|(begin, ..)| *begin).min();
    let end = did.iter().map(|(_, end, _)| *end).max();
    let took = end.zip(begin).map_or(0.0, |(end, begin)| (end - begin).as_nanos() as f64);
    took / ITEMS as f64
}

/// A subject: how it is called, and a turn of it.
type Subject<'a> = (&'static str, Box<dyn Fn() -> f64 + 'a>);

/// The last subject is what the others are compared with.
fn compare(title: &str, subjects: &[Subject<'_>]) {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); subjects.len()];
    for _ in 0..TURNS {
        for ((_, turn), times) in subjects.iter().zip(&mut times) {
            times.push(turn());
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let base = medians.last().copied().unwrap_or(1.0);
    println!("{title}");
    for ((name, _), ns) in subjects.iter().zip(&medians) {
        println!("  {name:28}{ns:>8.1} ns{:>8.2}", ns / base);
    }
}

fn main() {
    println!("median of {TURNS} turns: an item, and beside the last of each list");
    for thieves in [0, 1] {
        let deque = || Deque::<Linux>::new(256, 256);
        let chase_lev = || ChaseLev::<Linux>::new(256, 256);
        let blocks = || Blocks::<Linux>::new(64);
        let of = |queue: Box<dyn Work>| -> Box<dyn Fn() -> f64> {
            Box::new(move || batches(&*queue, thieves))
        };
        let subjects = [
            ("Deque", of(Box::new((deque(), deque as fn() -> _)))),
            ("ChaseLev", of(Box::new((chase_lev(), chase_lev as fn() -> _)))),
            ("Blocks", of(Box::new((blocks(), blocks as fn() -> _)))),
            ("crossbeam_deque::Worker", of(Box::new(Crossbeam::new()))),
        ];
        compare(&format!("batches of {BATCH}, {thieves} thieves"), &subjects);
    }
    for threads in [1, 2, 8] {
        let of = |queue: Box<dyn Many>| -> Box<dyn Fn() -> f64> {
            Box::new(move || in_turn(&*queue, threads))
        };
        let subjects = [
            ("RelaxedQueue", of(Box::new(RelaxedQueue::<Linux>::new(1024)))),
            ("MultiQueue of 4", of(Box::new(MultiQueue::<Linux>::new(4, 256)))),
            ("MultiQueue of 16", of(Box::new(MultiQueue::<Linux>::new(16, 64)))),
            ("KFifo, k = 1", of(Box::new(KFifo::<Linux>::new(1024, 1)))),
            ("KFifo, k = 8", of(Box::new(KFifo::<Linux>::new(1024, 8)))),
            ("crossbeam_queue::SegQueue", of(Box::new(SegQueue::new()))),
            ("crossbeam_queue::ArrayQueue", of(Box::new(ArrayQueue::new(1024)))),
        ];
        compare(&format!("in and out in turn, {threads} threads"), &subjects);
    }
}
