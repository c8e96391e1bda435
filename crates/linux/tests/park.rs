//! Tests of park and unpark: no wake is lost, and deadlines end waits in both clocks.

mod support;

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline, Parked, Platform, WaiterRef};
use support::{Node, after, never};

/// Threads in a ring pass a baton; each parks until it has come round.
#[test]
fn a_baton_is_never_lost() {
    const THREADS: usize = 5;
    const ROUNDS: u32 = 4_000;
    static TURNS: [AtomicU32; THREADS] = [const { AtomicU32::new(0) }; THREADS];

    let nodes: Vec<_> = (0..THREADS).map(|_| Node::take()).collect();
    let references: Vec<_> = nodes.iter().map(|node| node.reference()).collect();
    thread::scope(|scope| {
        for me in 0..THREADS {
            let (nodes, references) = (&nodes, &references);
            scope.spawn(move || {
                let next = (me + 1) % THREADS;
                for round in 1..=ROUNDS {
                    while me != 0 && TURNS[me].load(Acquire) < round
                        || me == 0 && TURNS[me].load(Acquire) < round - 1
                    {
                        let parked = Linux::park(nodes[me].waiter, never());
                        assert_eq!(parked, Parked::Woken, "a wake was lost");
                    }
                    TURNS[next].fetch_add(1, Release);
                    Linux::unpark(references[next]);
                }
            });
        }
    });
    assert!(TURNS.iter().all(|turns| turns.load(Relaxed) == ROUNDS));
    nodes.into_iter().for_each(Node::give);
}

/// One wake per round, and a sleeper that counts only wakes that it got: a wake lost to a timeout
/// would leave it waiting.
#[test]
fn a_wake_that_meets_a_timeout_is_not_lost() {
    const ROUNDS: u32 = 3_000;
    static ROUND: AtomicU32 = AtomicU32::new(0);

    let node = Node::take();
    let reference = node.reference();
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 1..=ROUNDS {
                // Or a later one: a wake may be spurious too.
                while ROUND.load(Acquire) < round {
                    thread::yield_now();
                }
                // Around the deadline, now before and now after.
                let until = after(Clock::Monotonic, u64::from(round % 64) * 2_000);
                while Linux::now(Clock::Monotonic) < until.ns {}
                Linux::unpark(reference);
            }
        });
        for round in 1..=ROUNDS {
            let give_up = never();
            ROUND.store(round, Release);
            while Linux::park(node.waiter, Some(after(Clock::Monotonic, 10_000))) != Parked::Woken {
                let now = Linux::now(Clock::Monotonic);
                assert!(give_up.is_some_and(|never| now < never.ns), "a wake was lost");
            }
        }
    });
    node.give();
}

#[test]
fn a_deadline_ends_a_park_in_both_clocks() {
    let node = Node::take();
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let deadline = after(clock, 2_000_000);
        while Linux::park(node.waiter, Some(deadline)) == Parked::Woken {}
        assert!(Linux::now(clock) >= deadline.ns);
        let past = Deadline { clock, ns: 0 };
        assert_eq!(Linux::park(node.waiter, Some(past)), Parked::TimedOut);
    }
    node.give();
}

#[test]
fn a_wake_before_the_park_makes_it_return() {
    let node = Node::take();
    Linux::unpark(node.reference());
    Linux::unpark(node.reference());
    assert_eq!(Linux::park(node.waiter, None), Parked::Woken);
    let past = Deadline { clock: Clock::Monotonic, ns: 1 };
    assert_eq!(Linux::park(node.waiter, Some(past)), Parked::TimedOut, "two wakes are one");
    node.give();
}

#[test]
fn a_wake_for_an_earlier_owner_does_nothing() {
    let node = Node::take();
    let stale = node.reference();
    node.give();
    let node = Node::take();
    assert_eq!(node.id.index(), stale.index, "the thread's own cache comes first");
    Linux::unpark(stale);
    Linux::unpark(WaiterRef { index: u32::MAX, generation: 1 });
    let past = Deadline { clock: Clock::Monotonic, ns: 1 };
    assert_eq!(Linux::park(node.waiter, Some(past)), Parked::TimedOut);
    node.give();
}
