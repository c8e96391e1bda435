//! Work takes longer on slow cores, and beside a busy hardware thread.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Atomic;
use antiphon_sim::{Level, Machine, Simulation, Topology, work};

use crate::{small, time, word};

/// Two cores of two hardware threads each, on which work takes 1.6 times as long while both run;
/// the second core is half as fast.
fn machine() -> Machine {
    let level = |name: &str, units: &[u32]| Level {
        name: name.to_owned(),
        units: units.to_vec(),
        transfer_ns: vec![40],
        memory_ns: vec![],
        interrupt_ns: vec![],
        cache_ns: None,
        crowded_permille: None,
    };
    let cores = Level { crowded_permille: Some(1_600), ..level("core", &[0, 0, 1, 1]) };
    let all = Level { memory_ns: vec![90], ..level("machine", &[0; 4]) };
    let topology = Topology::new(vec![cores, all], vec![]).expect("a machine");
    Machine { topology: topology.with_pace(vec![1_000, 1_000, 2_000, 2_000]), ..small() }
}

#[test]
fn a_slow_core_takes_longer_for_the_same_work() {
    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, || assert_eq!(time(|| work(1_000)), 1_000))
        .thread_on(2, || assert_eq!(time(|| work(1_000)), 2_000));
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn a_busy_hardware_thread_slows_the_other_one_down() {
    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, || work(10_000))
        .thread_on(1, || {
            work(100);
            assert_eq!(time(|| work(1_000)), 1_600, "both run");
            work(20_000);
            assert_eq!(time(|| work(1_000)), 1_000, "the other is over");
        })
        .thread_on(2, || {
            work(20_000);
            assert_eq!(time(|| work(1_000)), 2_000, "others are on another core");
        });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn a_hardware_thread_that_spins_leaves_the_core_to_the_other_one() {
    let flag = word();
    let seen = Rc::clone(&flag);
    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, move || {
            seen.wait_while(Relaxed, |flag| flag == 0);
            work(20_000);
        })
        .thread_on(1, move || {
            work(10_000);
            assert_eq!(time(|| work(1_000)), 1_000, "the other spins");
            flag.store(1, Relaxed);
            work(1_000);
            assert_eq!(time(|| work(1_000)), 1_600, "the other computes");
        });
    let _ = simulation.run(0).expect("both end");
}
