//! Tests of the state that CPUs share, with threads in place of CPUs; and of a run queue. Models
//! check the shared state more thoroughly; these tests add a real processor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_platform::{Atomic, Atomics};
use antiphon_wakeup::inbox::{self, Linked, Wake};
use antiphon_wakeup::pending::{self, ACTIONS};
use antiphon_wakeup::run_queue::RunQueue;
use antiphon_wakeup::slot;
use antiphon_wakeup::token::{self, Woken};
use antiphon_wakeup::words::Words;

type Inbox = inbox::Inbox<Entry>;
type Pending = pending::Pending<Words>;
type Token = <Words as Atomics>::U32;
type Link = inbox::Link<Words>;

struct Entry {
    link: Link,
    number: u64,
    taken: AtomicU64,
}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Entry {
    type Words = Words;

    fn link(&self) -> &Link {
        &self.link
    }
}

impl Entry {
    fn leak(number: u64) -> &'static Self {
        Box::leak(Box::new(Self { link: Link::NEW, number, taken: AtomicU64::new(0) }))
    }
}

/// Number of rounds of tests with threads.
const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };

/// Senders put each of their entries in once; the receiver halts whenever the inbox is empty, and
/// only an "interrupt" wakes it. If an interrupt were missing, the test would never end.
#[test]
fn an_inbox_gives_each_entry_once_and_wakes_a_halted_receiver() {
    let (inbox, interrupt) = (Arc::new(Inbox::NEW), Arc::new(AtomicBool::new(false)));
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let (inbox, interrupt) = (inbox.clone(), interrupt.clone());
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let entry = Entry::leak(sender * ROUNDS + round);
                    // SAFETY: a new entry, which is never freed.
                    if unsafe { inbox.put(entry) } == Wake::Interrupt {
                        interrupt.store(true, Release);
                    }
                }
            })
        })
        .collect();
    let mut left = 3 * ROUNDS;
    let mut last = BTreeMap::new();
    while left > 0 {
        let mut taken: Vec<&Entry> = Vec::new();
        // SAFETY: entries are never freed.
        taken.extend(inbox.take().map(|entry| unsafe { &*entry }));
        for entry in taken.iter().rev() {
            assert_eq!(entry.taken.fetch_add(1, Relaxed), 0, "an entry was taken twice");
            let before = last.insert(entry.number / ROUNDS, entry.number);
            assert!(before.is_none_or(|before| before < entry.number), "out of order");
            left -= 1;
        }
        if left > 0 && taken.is_empty() {
            inbox.halt(|| {
                while !interrupt.swap(false, Acquire) {
                    thread::yield_now();
                }
            });
        }
    }
    senders.into_iter().for_each(|sender| sender.join().expect("no sender panics"));
    assert!(inbox.is_empty());
}

/// Each sender posts its action again after it was run; interrupts are sent only if `post` returns
/// `true`. If an action were lost, its sender would wait for ever.
#[test]
fn a_pending_action_is_not_lost() {
    let (pending, interrupt) = (Arc::new(Pending::NEW), Arc::new(AtomicBool::new(false)));
    let ran: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
    let actions = [0_usize, 63, 64, ACTIONS - 1];
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let (pending, interrupt, ran) = (pending.clone(), interrupt.clone(), ran.clone());
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    if pending.post(actions[sender]) {
                        interrupt.store(true, Release);
                    }
                    while ran[sender].load(Acquire) == round {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut idle = Instant::now();
    while senders.iter().any(|sender| !sender.is_finished()) {
        if !interrupt.swap(false, Acquire) {
            assert!(idle.elapsed() < Duration::from_secs(60), "an action was lost");
            thread::yield_now();
            continue;
        }
        pending.drain(|action| {
            let sender = actions.iter().position(|&other| other == action).expect("posted");
            ran[sender].fetch_add(1, Release);
        });
        idle = Instant::now();
    }
    senders.into_iter().for_each(|sender| sender.join().expect("no sender panics"));
    assert!(ran.iter().all(|ran| ran.load(Relaxed) == ROUNDS), "an action ran twice");
}

/// A sleeper, a waker and a deadline: each sleep makes the sleeper runnable once.
#[test]
fn a_token_makes_its_sleeper_runnable_once() {
    let (word, runnable) = (Arc::new(Token::ZERO), Arc::new(AtomicU64::new(0)));
    let (theirs, counted) = (word.clone(), runnable.clone());
    let waker = thread::spawn(move || {
        for _ in 0..ROUNDS {
            if token::wake(&*theirs) == Woken::Asleep {
                counted.fetch_add(1, Release);
            }
            thread::yield_now();
        }
    });
    let mut sleeps = 0;
    while !waker.is_finished() {
        if !token::fall_asleep(&*word) {
            continue;
        }
        sleeps += 1;
        if token::expire(&*word) {
            runnable.fetch_add(1, Relaxed);
        }
        while runnable.load(Acquire) < sleeps {
            thread::yield_now();
        }
        token::wake_up(&*word);
    }
    waker.join().expect("it does not panic");
    assert_eq!(runnable.load(Relaxed), sleeps);
}

#[test]
fn a_wake_that_comes_first_is_not_lost() {
    let word = Token::ZERO;
    assert_eq!(token::wake(&word), Woken::No);
    assert!(!token::fall_asleep(&word));
    assert!(token::fall_asleep(&word));
    assert_eq!(token::wake(&word), Woken::Asleep);
    assert!(!token::expire(&word));
    assert!(token::wake_up(&word));
}

#[test]
fn a_halted_cpu_looks_at_its_last_sleeper() {
    let word = Token::ZERO;
    assert!(!token::rest(&word), "there is no sleeper");
    assert!(token::fall_asleep(&word) && token::rest(&word));
    assert!(!token::rise(&word), "not woken");
    assert!(token::rest(&word));
    assert_eq!(token::wake(&word), Woken::Last);
    assert_eq!(token::wake(&word), Woken::No);
    assert!(token::rise(&word) && token::wake_up(&word));
    assert!(token::fall_asleep(&word) && token::rest(&word));
    assert!(token::expire(&word));
    assert_eq!(token::wake(&word), Woken::No);
}

#[test]
fn a_run_queue_serves_in_the_order_of_arrival() {
    let inbox = Inbox::NEW;
    let mut queue = RunQueue::<Entry>::NEW;
    let put = |number| {
        // SAFETY: a new entry, which is never freed.
        assert_eq!(unsafe { inbox.put(Entry::leak(number)) }, Wake::No);
    };
    // SAFETY: a new entry, which is never freed.
    unsafe { queue.push(Entry::leak(0)) };
    (1..4).for_each(put);
    // SAFETY: the entries were in the inbox, and are never freed.
    unsafe { queue.push_all(inbox.take()) };
    // SAFETY: a new entry, which is never freed.
    unsafe { queue.push(Entry::leak(4)) };
    // SAFETY: the inbox was empty, so no entry is pushed.
    unsafe { queue.push_all(inbox.take()) };
    // SAFETY: entries are never freed.
    let order: Vec<_> =
        std::iter::from_fn(|| queue.pop()).map(|entry| unsafe { (*entry).number }).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert!(queue.is_empty());
}

#[test]
fn an_entry_that_was_dropped_with_its_list_is_put_in_alone() {
    let inbox = Inbox::NEW;
    let entries: [&Entry; 3] = [0, 1, 2].map(Entry::leak);
    let put = |entry: &'static Entry| {
        // SAFETY: the entry is in no inbox: it is new, or was dropped; and it is never freed.
        assert_eq!(unsafe { inbox.put(entry) }, Wake::No);
    };
    entries.into_iter().for_each(put);
    let mut taken = inbox.take();
    assert_eq!(taken.next(), Some(&raw const *entries[2]));
    drop(taken);
    assert!(inbox.is_empty());
    put(entries[1]);
    assert_eq!(inbox.take().collect::<Vec<_>>(), [&raw const *entries[1]]);
}

#[test]
fn a_watch_sees_what_is_put_in() {
    let inbox = Inbox::NEW;
    let mut watched = 0;
    inbox.watch(|word| {
        assert!(word.is_empty());
        // SAFETY: a new entry, which is never freed.
        assert_eq!(unsafe { inbox.put(Entry::leak(0)) }, Wake::No, "it is watched");
        assert!(!word.is_empty());
        word.wait();
        watched += 1;
    });
    inbox.watch(|_| watched += 1);
    assert_eq!(watched, 1, "there is an entry");
    assert_eq!(inbox.take().count(), 1);
}

#[test]
fn a_slot_is_filled_with_any_action() {
    let slot = slot::Slot::<Words>::NEW;
    for action in [0, u16::MAX] {
        assert!(slot.fill(action));
        assert!(!slot.fill(1), "it is not free");
        slot.retract(action ^ 1);
        assert_eq!(slot.empty(), Some(action));
        assert_eq!(slot.empty(), None);
        assert!(slot.fill(action));
        slot.retract(action);
        assert_eq!(slot.empty(), None, "it was taken back");
    }
}
