//! Tests of queues between real threads: each item comes out once.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::thread;

use antiphon_linux::Linux;
use antiphon_sync::queue::{self, Full, Item, Link, Lot, Stolen, WorkQueue};

const ITEMS: u64 = 100_000;

/// The number of times that each item was taken.
struct Taken(Vec<AtomicU8>);

impl Taken {
    fn new(items: u64) -> Self {
        Self((0..items).map(|_| AtomicU8::new(0)).collect())
    }

    fn note(&self, item: Item) {
        self.0[(item.word() / 8 - 512) as usize].fetch_add(1, Relaxed);
    }

    fn assert_once(&self) {
        for (number, times) in self.0.iter().enumerate() {
            assert_eq!(times.load(Relaxed), 1, "item {number}");
        }
    }
}

fn item(number: u64) -> Item {
    Item::new(8 * (512 + number)).expect("a word for an item")
}

type Deque = queue::Deque<Linux>;

/// The owner puts in and takes out at both ends, two thieves take half of the items that are there.
fn owner_and_thieves<Q: WorkQueue + Sync>(deque: &Q, new: fn() -> Q) {
    let (taken, done) = (Taken::new(ITEMS), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mine = new();
                loop {
                    let last = done.load(Relaxed);
                    // SAFETY: `mine` is this thread's.
                    let stolen = unsafe { deque.steal_into(&mine, |size| size) };
                    if let Stolen::Got(first) = stolen {
                        taken.note(first);
                    }
                    // SAFETY: `mine` is this thread's.
                    while let Some(other) = unsafe { mine.pop_front() } {
                        taken.note(other);
                    }
                    if last && stolen == Stolen::Empty {
                        break;
                    }
                }
            });
        }
        for number in 0..ITEMS {
            // SAFETY: this thread is the owner.
            unsafe {
                while let Err(Full(_)) = deque.push(item(number)) {
                    deque.pop_back().into_iter().for_each(|item| taken.note(item));
                }
                if number % 3 == 0 {
                    deque.pop_back().into_iter().for_each(|item| taken.note(item));
                }
                if number % 7 == 0 {
                    deque.pop_front().into_iter().for_each(|item| taken.note(item));
                }
            }
        }
        // SAFETY: this thread is the owner.
        while !unsafe { deque.share() } {
            thread::yield_now();
        }
        done.store(true, Relaxed);
    });
    // SAFETY: this thread is the owner.
    while let Some(item) = unsafe { deque.pop_back() } {
        taken.note(item);
    }
    taken.assert_once();
}

#[test]
fn a_deque_gives_each_item_once() {
    owner_and_thieves(&Deque::new(64, 64), || Deque::new(32, 32));
}

#[test]
fn a_deque_that_grows_gives_each_item_once() {
    owner_and_thieves(&Deque::new(2, 1 << 16), || Deque::new(2, 32));
}

#[test]
fn a_deque_of_chase_and_lev_gives_each_item_once() {
    owner_and_thieves(&queue::ChaseLev::<Linux>::new(2, 1 << 16), || queue::ChaseLev::new(2, 32));
}

#[test]
fn a_deque_of_blocks_gives_each_item_once() {
    let new = || queue::Blocks::<Linux, 4>::new(64);
    owner_and_thieves(&new(), new);
}

/// A thread that puts items in need not notify others of items that only it can see.
#[test]
fn a_deque_of_blocks_keeps_what_fills_none() {
    let deque = queue::Blocks::<Linux, 3>::new(8);
    let kept = |number| {
        // SAFETY: there is one thread.
        unsafe {
            deque.push(item(number)).expect("room");
            deque.keeps_last()
        }
    };
    for (number, keeps) in [true, true, true, false, true, true, false].into_iter().enumerate() {
        let empty = deque.is_empty();
        assert_eq!(kept(number as u64), keeps, "{number}");
        assert!(!keeps || deque.is_empty() == empty);
    }
    // SAFETY: there is one thread.
    assert!(unsafe { deque.share() && !deque.keeps_last() });
}

/// Two threads put in and two take out.
fn many(
    push: impl Fn(Item, &mut Lot) -> Result<(), Full> + Sync,
    pop: impl Fn(&mut Lot) -> Option<Item> + Sync,
) {
    let (taken, done) = (Taken::new(2 * ITEMS), AtomicBool::new(false));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (taken, done, pop) = (&taken, &done, &pop);
            scope.spawn(move || {
                let mut lot = Lot::new(seed);
                loop {
                    let last = done.load(Relaxed);
                    match pop(&mut lot) {
                        Some(item) => taken.note(item),
                        None if last => break,
                        None => thread::yield_now(),
                    }
                }
            });
        }
        let put = |first| {
            let mut lot = Lot::new(first);
            for number in first..first + ITEMS {
                while push(item(number), &mut lot).is_err() {
                    thread::yield_now();
                }
            }
        };
        let other = scope.spawn(move || put(ITEMS));
        put(0);
        other.join().expect("the other puts in");
        done.store(true, Relaxed);
    });
    taken.assert_once();
}

#[test]
fn a_relaxed_queue_gives_each_item_once() {
    let queue = queue::RelaxedQueue::<Linux>::new(16);
    many(|item, _| queue.push(item), |_| queue.pop());
    assert!(queue.is_empty());
}

#[test]
fn a_multi_queue_gives_each_item_once() {
    let queue = queue::MultiQueue::<Linux>::new(3, 16);
    many(|item, lot| queue.push(item, lot), |lot| queue.pop(lot));
    assert!(queue.is_empty());
    let queue = queue::MultiQueue::<Linux>::growing(1, 7, 4);
    many(|item, lot| queue.push(item, lot), |lot| queue.pop(lot));
    assert!(queue.is_empty());
}

/// Queues are made when needed, one after the other, and no more than allowed.
#[test]
fn a_multi_queue_grows() {
    let (queue, mut lot) = (queue::MultiQueue::<Linux>::growing(1, 3, 4), Lot::new(1));
    for number in 0..12 {
        assert_eq!(queue.push(item(number), &mut lot), Ok(()));
    }
    assert_eq!(queue.push(item(12), &mut lot), Err(Full(item(12))));
    let mut taken: Vec<_> = std::iter::from_fn(|| queue.pop(&mut lot)).map(Item::word).collect();
    taken.sort_unstable();
    assert_eq!(taken, (0..12).map(|number| item(number).word()).collect::<Vec<_>>());
    assert!(queue.is_empty());
}

#[test]
fn a_k_fifo_gives_each_item_once() {
    for k in [1, 4] {
        let queue = queue::KFifo::<Linux>::new(16, k);
        many(|item, lot| queue.push(item, lot), |lot| queue.pop(lot));
        assert!(queue.is_empty());
    }
}

#[test]
fn a_k_fifo_has_its_room_and_keeps_its_bound() {
    for (capacity, k) in [(1, 1), (8, 1), (8, 3), (16, 8), (1, 8)] {
        let queue = queue::KFifo::<Linux>::new(capacity, k);
        let mut lot = Lot::new(capacity as u64);
        let mut there: Vec<u64> = (0..capacity as u64).collect();
        for &number in &there {
            assert_eq!(queue.push(item(number), &mut lot), Ok(()));
        }
        for number in there.len() as u64..1_000 {
            let taken = queue.pop(&mut lot).expect("one of them").word();
            let place = there.iter().position(|&other| item(other).word() == taken);
            assert!(place.expect("there") < k, "{there:?}");
            there.remove(place.expect("there"));
            assert_eq!(queue.push(item(number), &mut lot), Ok(()), "room for one of {capacity}");
            there.push(number);
        }
    }
}

/// Four threads put in and take out in turn: there are at most four items, and room for 16.
fn in_turn(
    push: impl Fn(Item, &mut Lot) -> Result<(), Full> + Sync,
    pop: impl Fn(&mut Lot) -> Option<Item> + Sync,
) {
    thread::scope(|scope| {
        for seed in 0..4 {
            let (push, pop) = (&push, &pop);
            scope.spawn(move || {
                let mut lot = Lot::new(seed);
                for number in 0..ITEMS / 4 {
                    assert_eq!(push(item(number), &mut lot), Ok(()));
                    pop(&mut lot);
                }
            });
        }
    });
}

#[test]
fn who_takes_out_what_it_puts_in_finds_room() {
    let relaxed = queue::RelaxedQueue::<Linux>::new(16);
    in_turn(|item, _| relaxed.push(item), |_| relaxed.pop());
    let multi = queue::MultiQueue::<Linux>::new(4, 4);
    in_turn(|item, lot| multi.push(item, lot), |lot| multi.pop(lot));
    let fifo = queue::KFifo::<Linux>::new(16, 4);
    in_turn(|item, lot| fifo.push(item, lot), |lot| fifo.pop(lot));
}

/// Each position of a lap has its own cell, on each lap.
#[test]
fn a_relaxed_queue_of_one_thread_is_a_queue() {
    for capacity in [1, 2, 8, 16, 64] {
        let queue = queue::RelaxedQueue::<Linux>::new(capacity);
        for number in 0..capacity as u64 {
            assert_eq!(queue.push(item(number)), Ok(()));
        }
        for number in 0..1_000 {
            let next = item(number + capacity as u64);
            assert_eq!(queue.push(next), Err(Full(next)));
            assert_eq!(queue.pop(), Some(item(number)));
            assert_eq!(queue.push(next), Ok(()), "room for one, of {capacity}");
        }
    }
}

#[test]
fn an_inbox_keeps_the_order_of_each_poster() {
    const EACH: usize = 50_000;
    let inbox = queue::Inbox::<Linux>::NEW;
    let links: Vec<_> = (0..2 * EACH).map(|_| Link::<Linux>::NEW).collect();
    let base = links.as_ptr().expose_provenance();
    thread::scope(|scope| {
        for first in [0, EACH] {
            let (inbox, links) = (&inbox, &links);
            scope.spawn(move || {
                for link in &links[first..first + EACH] {
                    let address = std::ptr::from_ref(link).expose_provenance() as u64;
                    // SAFETY: each link is used once, and lives until all threads have ended.
                    unsafe { inbox.push(Item::new(address).expect("an aligned address")) };
                }
            });
        }
        let mut next = [0, EACH];
        while next != [EACH, 2 * EACH] {
            // SAFETY: this thread is the owner.
            let Some(item) = (unsafe { inbox.pop() }) else {
                thread::yield_now();
                continue;
            };
            let number = (item.word() as usize - base) / size_of::<Link<Linux>>();
            let poster = &mut next[number / EACH];
            assert_eq!(*poster, number, "in order, and each once");
            *poster += 1;
        }
    });
    assert!(inbox.is_empty());
}
