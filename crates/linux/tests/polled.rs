//! Tests of wakers that are left with nodes: none is woken twice or lost, and the nodes can be used
//! for parking afterwards.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Parked, Platform, PolledWait, WaiterRef};
use support::{Node, never};

/// Counts wakes, and unparks a thread of `std`.
struct Counts(AtomicU32, Thread);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Release);
        self.1.unpark();
    }
}

fn counts() -> (Arc<Counts>, Waker) {
    let counts = Arc::new(Counts(AtomicU32::new(0), thread::current()));
    (counts.clone(), counts.into())
}

fn leave(node: Node, waker: &Waker) -> bool {
    // SAFETY: the node was taken by the test, which does not park before it takes the waker back.
    unsafe { Linux::leave_waker(node.waiter, waker.clone()) }
}

fn take(node: Node) {
    // SAFETY: the node was taken by the test, which has left a waker or nothing, and does not park.
    unsafe { Linux::take_waker(node.waiter) }
}

#[test]
fn a_waker_is_woken_once_or_taken_back() {
    let (counts, waker) = counts();
    let node = Node::take();
    // First takes whatever earlier users have left there.
    take(node);
    assert!(leave(node, &waker));
    assert_eq!(Arc::strong_count(&counts), 3);
    Linux::unpark(node.reference());
    Linux::unpark(node.reference());
    assert_eq!(counts.0.load(Acquire), 1);
    take(node);
    assert!(leave(node, &waker));
    take(node);
    assert_eq!(Arc::strong_count(&counts), 2, "it is gone");
    // A wake that came before is reported and consumed.
    Linux::unpark(node.reference());
    assert!(!leave(node, &waker));
    assert_eq!((counts.0.load(Acquire), Arc::strong_count(&counts)), (1, 2));
    assert!(leave(node, &waker));
    take(node);
    node.give();
}

/// The owner waits for each round by a waker or parked, and sometimes with another node; a waking
/// thread is often late, and finds the next content. A lost wake ends at a deadline.
#[test]
fn no_wake_is_lost_though_others_are_late() {
    const ROUNDS: u32 = 20_000;
    const WAKERS: usize = 2;
    static ROUND: AtomicU32 = AtomicU32::new(0);
    static DONE: [AtomicU32; WAKERS] = [const { AtomicU32::new(0) }; WAKERS];
    /// The thread to wake.
    static WAITER: AtomicU64 = AtomicU64::new(0);

    let wakes = |done: &'static AtomicU32| {
        for round in 1..=ROUNDS {
            while ROUND.load(Acquire) < round {
                thread::yield_now();
            }
            let waiter = WaiterRef::from_bits(WAITER.load(Relaxed)).expect("a node");
            done.store(round, Release);
            Linux::unpark(waiter);
        }
    };
    let (counts, waker) = counts();
    thread::scope(|scope| {
        DONE.iter().for_each(|done| _ = scope.spawn(move || wakes(done)));
        let mut node = Node::take();
        for round in 1..=ROUNDS {
            if round % 16 == 0 {
                node.give();
                node = Node::take();
            }
            WAITER.store(node.reference().bits(), Relaxed);
            ROUND.store(round, Release);
            let over = || DONE.iter().all(|done| done.load(Acquire) >= round);
            while !over() {
                if round % 3 == 0 {
                    assert_eq!(Linux::park(node.waiter, never()), Parked::Woken, "a lost wake");
                } else {
                    wait_by(node, &waker, &counts);
                }
            }
        }
        node.give();
    });
    drop(waker);
    assert_eq!(Arc::strong_count(&counts), 1, "none is left");
}

/// Leaves the waker until it is woken, or finds that it is not needed.
fn wait_by(node: Node, waker: &Waker, counts: &Counts) {
    let seen = counts.0.load(Acquire);
    if !leave(node, waker) {
        return;
    }
    let begun = Instant::now();
    while counts.0.load(Acquire) == seen {
        thread::park_timeout(Duration::from_secs(1));
        assert!(begun.elapsed() < Duration::from_secs(60), "a lost wake");
    }
    take(node);
}
