//! By how many items the queues of many let an item be overtaken: its rank error.
//!
//! Threads put in and take out in turn, with so many items there from the beginning. An item has
//! overtaken each other one that was certainly put in before, and certainly not taken out before:
//! one operation had ended when the other began. So a queue in order has no errors however threads
//! are stopped, and the others at least as many as are said here.
//!
//! Two columns are real threads, two a simulated machine of 8 sockets and 192 cores, and the same
//! source; of the latter also what an item costs, in simulated nanoseconds of all threads together.
//!
//! `cargo run --release -p antiphon-sync --example rank_error`

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_platform::Platform;
use antiphon_sim::{Machine, Sim, Simulation};
use antiphon_sync::queue::{Item, KFifo, Lot, MultiQueue, RelaxedQueue};

/// Items that are there from the beginning, and how many each thread puts in.
const THERE: u64 = 512;
const REAL: u64 = 40_000;
const SIMULATED: u64 = 200;

trait Many {
    fn put(&self, item: Item, lot: &mut Lot) -> bool;
    fn take(&self, lot: &mut Lot) -> Option<Item>;
}

impl<P: Platform> Many for RelaxedQueue<P> {
    fn put(&self, item: Item, _: &mut Lot) -> bool {
        self.push(item).is_ok()
    }
    fn take(&self, _: &mut Lot) -> Option<Item> {
        self.pop()
    }
}

impl<P: Platform> Many for MultiQueue<P> {
    fn put(&self, item: Item, lot: &mut Lot) -> bool {
        self.push(item, lot).is_ok()
    }
    fn take(&self, lot: &mut Lot) -> Option<Item> {
        self.pop(lot)
    }
}

impl<P: Platform> Many for KFifo<P> {
    fn put(&self, item: Item, lot: &mut Lot) -> bool {
        self.push(item, lot).is_ok()
    }
    fn take(&self, lot: &mut Lot) -> Option<Item> {
        self.pop(lot)
    }
}

type Queue = Box<dyn Many + Sync>;
/// The name of a queue, and how to make it on real threads and on simulated ones.
type Row = (&'static str, fn() -> [Queue; 2]);

macro_rules! row {
    ($name:literal, $new:expr) => {
        ($name, || {
            fn new<P: Platform>() -> Queue {
                Box::new($new)
            }
            [new::<Linux>(), new::<Sim>()]
        })
    };
}

const ROWS: [Row; 7] = [
    row!("k-FIFO, k = 1", KFifo::<P>::new(4096, 1)),
    row!("k-FIFO, k = 8", KFifo::<P>::new(4096, 8)),
    row!("k-FIFO, k = 64", KFifo::<P>::new(4096, 64)),
    row!("relaxed", RelaxedQueue::<P>::new(4096)),
    row!("multi-queue of 4", MultiQueue::<P>::new(4, 1024)),
    row!("multi-queue of 16", MultiQueue::<P>::new(16, 256)),
    row!("multi-queue of 128", MultiQueue::<P>::new(128, 64)),
];

/// When an item was put in and taken out: each time a beginning and an end.
#[derive(Clone, Copy)]
struct Life {
    put: [u64; 2],
    taken: [u64; 2],
}

/// An operation of a thread: the item, whether it was put in or taken out, and when.
type Did = (u64, bool, [u64; 2]);

fn item(number: u64) -> Item {
    Item::new(8 * (512 + number)).expect("a word for an item")
}

/// Puts items in and takes as many out, with `away` between.
fn work(queue: &dyn Many, thread: u64, items: u64, now: impl Fn() -> u64, away: fn()) -> Vec<Did> {
    let mut lot = Lot::new(thread);
    let mut did = Vec::with_capacity(2 * items as usize);
    for number in 0..items {
        let number = THERE + thread * items + number;
        let begin = now();
        assert!(queue.put(item(number), &mut lot), "room for what was taken");
        did.push((number, true, [begin, now()]));
        away();
        let begin = now();
        if let Some(taken) = queue.take(&mut lot) {
            did.push((taken.word() / 8 - 512, false, [begin, now()]));
        }
        away();
    }
    did
}

fn fill(queue: &dyn Many) {
    let mut lot = Lot::new(u64::MAX);
    for number in 0..THERE {
        assert!(queue.put(item(number), &mut lot), "room for what is there at first");
    }
}

/// On real threads: mean and maximum.
fn real(queue: &(dyn Many + Sync), threads: u64) -> (f64, u64) {
    fill(queue);
    let begin = Instant::now();
    let now = || THERE + begin.elapsed().as_nanos() as u64;
    let did = std::thread::scope(|scope| {
        let worker = |thread| scope.spawn(move || work(queue, thread, REAL, now, || ()));
        let workers: Vec<_> = (0..threads).map(worker).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join();
        workers.into_iter().flat_map(|worker| join(worker).expect("it does not panic")).collect()
    });
    errors(did, THERE + threads * REAL)
}

/// On simulated threads: mean, maximum, and nanoseconds an item.
fn simulated(queue: Queue, threads: u64) -> (f64, u64, f64) {
    let (queue, did) = (Rc::new(queue), Rc::new(RefCell::new(Vec::new())));
    let mine = (Rc::clone(&queue), Rc::clone(&did));
    let filled = Rc::clone(&queue);
    let first = Simulation::new(Machine::eight_sockets(), 1).thread(move || fill(&**filled));
    let _ = first.run(u64::MAX / 4).expect("it ends");
    let simulation = Simulation::new(Machine::eight_sockets(), 1);
    let body = move |thread| {
        let now = || THERE + antiphon_sim::now();
        let mut all = work(&**mine.0, thread as u64, SIMULATED, now, || antiphon_sim::think(200));
        mine.1.borrow_mut().append(&mut all);
    };
    let _ = simulation.threads(threads as usize, body).run(u64::MAX / 4).expect("it ends");
    let did = did.take();
    let took = did.iter().map(|(.., [_, end])| end - THERE).max().unwrap_or(0) as f64;
    let (mean, most) = errors(did, THERE + threads * SIMULATED);
    (mean, most, took / (threads * SIMULATED) as f64)
}

/// Of each item that was taken, how many it has overtaken: mean and maximum.
fn errors(did: Vec<Did>, items: u64) -> (f64, u64) {
    let never = Life { put: [u64::MAX; 2], taken: [u64::MAX; 2] };
    let mut lives = vec![never; items as usize];
    for (number, life) in (0..THERE).zip(&mut lives) {
        life.put = [number; 2];
    }
    for (number, is_put, when) in did {
        let life = &mut lives[number as usize];
        *(if is_put { &mut life.put } else { &mut life.taken }) = when;
    }
    let mut by_begin = lives.clone();
    by_begin.sort_unstable_by_key(|life| life.put[0]);
    lives.sort_unstable_by_key(|life| life.put[1]);
    let mut taken: Vec<u64> = lives.iter().map(|life| life.taken[0]).collect();
    taken.sort_unstable();
    let (mut before, mut tree) = (lives.iter().peekable(), Counts::new(taken.len()));
    let (mut sum, mut most, mut count) = (0, 0, 0);
    for life in by_begin {
        while let Some(other) = before.next_if(|other| other.put[1] < life.put[0]) {
            tree.add(taken.partition_point(|&begin| begin < other.taken[0]));
        }
        if life.taken[1] < u64::MAX {
            let later = tree.all - tree.below(taken.partition_point(|&at| at <= life.taken[1]));
            (sum, most, count) = (sum + later, most.max(later), count + 1);
        }
    }
    (sum as f64 / count as f64, most)
}

/// How many were added below each place: a tree of Fenwick's.
struct Counts {
    tree: Vec<u64>,
    all: u64,
}

impl Counts {
    fn new(places: usize) -> Self {
        Self { tree: vec![0; places + 1], all: 0 }
    }

    fn add(&mut self, place: usize) {
        self.all += 1;
        let mut at = place + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, place: usize) -> u64 {
        let (mut at, mut count) = (place, 0);
        while at > 0 {
            count += self.tree[at];
            at &= at - 1;
        }
        count
    }
}

fn main() {
    println!("rank errors, mean and maximum; {THERE} items there from the beginning");
    println!("{:20}{:>32}{:>52}", "", "threads here", "simulated, 192 cores");
    println!("{:20}{:>16}{:>16}{:>26}{:>26}", "", 2, 8, 8, 64);
    for (name, new) in ROWS {
        print!("{name:20}");
        for threads in [2, 8] {
            let (mean, most) = real(&*new()[0], threads);
            print!("{mean:>9.2}{most:>7}");
        }
        for threads in [8, 64] {
            let [_, queue] = new();
            let (mean, most, ns) = simulated(queue, threads);
            print!("{mean:>9.2}{most:>7}{ns:>7.0} ns");
        }
        println!();
    }
}
