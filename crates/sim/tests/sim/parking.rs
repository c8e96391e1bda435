//! Tests of `park` and `unpark`: the token, generations, deadlines, and costs.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{
    Atomic, Clock, Clocks as _, Deadline, Parked, Platform, Waiter, WaiterRef,
};
use antiphon_sim::{Machine, Sim, Simulation, now, work};

use crate::{arena, small};

fn node() -> (&'static Waiter<Sim>, WaiterRef) {
    let id = arena().take().expect("a free node");
    let node = arena().resolve(id).expect("just taken");
    (node, arena().reference(id.index()).expect("in use"))
}

fn at(clock: Clock, ns: u64) -> Option<Deadline> {
    Some(Deadline { clock, ns })
}

/// Runs a sleeper and a waker that learns the sleeper's node.
fn pair(sleeper: impl FnOnce(&Waiter<Sim>) + 'static, waker: impl FnOnce(WaiterRef) + 'static) {
    pair_on(small(), sleeper, waker);
}

fn pair_on(
    machine: Machine,
    sleeper: impl FnOnce(&Waiter<Sim>) + 'static,
    waker: impl FnOnce(WaiterRef) + 'static,
) {
    let name = Rc::new(Cell::new(None));
    let told = Rc::clone(&name);
    let simulation = Simulation::new(machine, 1)
        .thread_on(0, move || {
            let (node, reference) = node();
            told.set(Some(reference));
            sleeper(node);
        })
        .thread_on(1, move || {
            work(10_000);
            waker(name.get().expect("the sleeper was faster"));
        });
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn an_unpark_that_came_first_is_not_lost() {
    pair(
        |node| {
            work(20_000);
            let begin = now();
            assert_eq!(Sim::park(node, None), Parked::Woken);
            assert!(now() - begin < small().park_ns, "did not sleep");
        },
        Sim::unpark,
    );
}

#[test]
fn two_unparks_are_one_token() {
    pair(
        |node| {
            work(20_000);
            assert_eq!(Sim::park(node, None), Parked::Woken);
            assert_eq!(Sim::park(node, at(Clock::Monotonic, 50_000)), Parked::TimedOut);
        },
        |reference| {
            Sim::unpark(reference);
            Sim::unpark(reference);
        },
    );
}

#[test]
fn an_unpark_of_an_earlier_use_of_the_node_does_nothing() {
    pair(
        |node| assert_eq!(Sim::park(node, at(Clock::Monotonic, 50_000)), Parked::TimedOut),
        |mut reference| {
            reference.generation -= 2;
            Sim::unpark(reference);
        },
    );
}

#[test]
fn a_sleeper_is_woken_after_the_latency() {
    let woken_at = Rc::new(Cell::new(0));
    let seen = Rc::clone(&woken_at);
    pair(
        move |node| {
            assert_eq!(Sim::park(node, None), Parked::Woken);
            woken_at.set(now());
        },
        move |reference| {
            Sim::unpark(reference);
            let returned = now();
            work(100_000);
            // The sleeper takes its token, which the waker's cache has, and goes on.
            let m = small();
            assert_eq!(seen.get(), returned + m.wake_latency_ns + m.transfer_ns(0, 1));
        },
    );
}

#[test]
fn an_unpark_at_any_instant_ends_the_sleep() {
    for delay in 0..1_500 {
        // The waker is faster in the kernel than the sleeper.
        pair_on(
            Machine { park_ns: 900, wake_ns: 10, ..small() },
            move |node| {
                work(9_500);
                assert_eq!(Sim::park(node, None), Parked::Woken);
            },
            move |reference| {
                work(delay);
                Sim::unpark(reference);
            },
        );
    }
}

#[test]
fn a_deadline_ends_the_sleep_in_either_clock() {
    let simulation = Simulation::new(small(), 1).thread(|| {
        let (node, _) = node();
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let deadline = Sim::now(clock) + 30_000;
            let begin = now();
            assert_eq!(Sim::park(node, at(clock, deadline)), Parked::TimedOut);
            let slept = now() - begin;
            let m = small();
            assert_eq!(slept, 30_000 + m.wake_latency_ns + m.rmw_ns);
            assert_eq!(Sim::park(node, at(clock, 0)), Parked::TimedOut);
        }
        assert_eq!(node.token.load(Relaxed), 0);
    });
    let outcome = simulation.run(0).expect("deadlines pass");
    assert_eq!(outcome.counts.parks, 4);
}
