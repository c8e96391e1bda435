//! Tests of load balancing, idle states and the time of interrupts.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_platform::{Clock, Deadline, LightUnlock as _, Platform, Topology as _};
use antiphon_sim::{Idle, Machine, Model, Sim, Simulation, now, work};

use crate::{arena, small, time};

fn balanced(machine: Machine) -> Simulation {
    Simulation::new(machine, 1).model(Model { balance: true, ..Model::default() })
}

const LONG_NS: u64 = 10_000_000;

#[test]
fn a_core_without_work_pulls_a_thread_that_waits() {
    let machine = || Machine { slice_ns: 1_000_000, ..small().shape(1, 4) };
    let crowd = |simulation: Simulation| {
        // Four short ones and four long ones; the cores of the short ones help.
        let body = |number: usize| work(if number < 6 { 1_000 } else { LONG_NS });
        simulation.threads(8, body).thread_on(3, || work(LONG_NS)).run(0).expect("all end")
    };
    let (moved, stayed) = (crowd(balanced(machine())), crowd(Simulation::new(machine(), 1)));
    assert_eq!(stayed.counts.migrations, 0);
    assert!(moved.counts.migrations > 0);
    assert!(moved.end_ns < LONG_NS + LONG_NS / 2, "{} ns", moved.end_ns);
    assert!(stayed.end_ns > 2 * LONG_NS, "{} ns", stayed.end_ns);
}

#[test]
fn a_thread_that_was_put_on_a_core_stays_there() {
    let mut simulation = balanced(small());
    for _ in 0..3 {
        simulation = simulation.thread_on(2, || {
            work(LONG_NS);
            assert_eq!(Sim::cpu().0, 2);
        });
    }
    let outcome = simulation.run(0).expect("all end");
    assert_eq!(outcome.counts.migrations, 0);
}

#[test]
fn who_is_woken_goes_to_the_nearest_core_that_is_idle() {
    let simulation = balanced(small())
        // Sleeps; meanwhile its core gets a thread that stays, and so do its neighbours.
        .thread(|| {
            let id = arena().take().expect("a free node");
            let node = arena().resolve(id).expect("just taken");
            let deadline = Deadline { clock: Clock::Monotonic, ns: 100_000 };
            let _ = Sim::park(node, Some(deadline));
            assert_eq!(Sim::cpu().0, 2);
        })
        .thread_on(0, || work(LONG_NS))
        .thread_on(1, || work(LONG_NS));
    let outcome = simulation.run(0).expect("all end");
    assert_eq!(outcome.counts.migrations, 1);
}

/// How long after its deadline at `ns` a sleeper on an idle core runs again.
fn oversleeps(ns: u64) -> u64 {
    let state = |after_ns, exit_ns| Idle { after_ns, exit_ns };
    let machine = Machine { idle: vec![state(0, 2_000), state(600_000, 133_000)], ..small() };
    let late = Rc::new(Cell::new(0));
    let told = Rc::clone(&late);
    let simulation = Simulation::new(machine, 1).thread(move || {
        let id = arena().take().expect("a free node");
        let node = arena().resolve(id).expect("just taken");
        let _ = Sim::park(node, Some(Deadline { clock: Clock::Monotonic, ns }));
        told.set(now() - ns);
    });
    let _ = simulation.run(0).expect("it ends");
    late.get()
}

#[test]
fn a_core_that_has_slept_for_long_takes_longer_to_wake() {
    assert_eq!(oversleeps(2_000_000) - oversleeps(100_000), 131_000);
}

#[test]
fn a_heavy_fence_takes_time_from_those_that_run() {
    let m = small();
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, || {
            work(1_000);
            for _ in 0..3 {
                Sim::heavy_fence().expect("never refused");
            }
        })
        .thread_on(4, move || {
            assert_eq!(time(|| work(100_000)), 100_000 + 3 * m.interrupt.handle_ns);
        });
    let _ = simulation.run(0).expect("both end");
}
