//! Cores are shared by slices.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, CpuId, Platform, SocketId};
use antiphon_sim::{Machine, Sim, Simulation, now, work};

use crate::{small, word};

#[test]
fn threads_fill_sockets_and_share_cores_beyond() {
    let simulation = Simulation::new(small(), 1).threads(12, |number| {
        assert_eq!(Sim::cpu(), CpuId(number as u32 % 8));
        assert_eq!(Sim::socket(), SocketId(number as u32 % 8 / 4));
        assert_eq!(Sim::thread().0 as usize, number + 1);
        assert!(Sim::numa() && Sim::alive(Sim::thread()));
    });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn two_threads_halve_a_core_and_pay_for_switching() {
    let m = Machine { slice_ns: 10_000, ..small() };
    let ends = Rc::new(Cell::new([0; 2]));
    let mut simulation = Simulation::new(m.clone(), 1);
    for number in 0..2 {
        let ends = Rc::clone(&ends);
        simulation = simulation.thread_on(3, move || {
            work(100_000);
            let mut both = ends.get();
            both[number] = now();
            ends.set(both);
        });
    }
    let outcome = simulation.run(0).expect("both end");
    // Ten slices each, in turn; the last of one thread ends as the other's tenth begins.
    assert_eq!(outcome.counts.switches, 20);
    assert_eq!(outcome.end_ns, 200_000 + 20 * m.switch_ns);
    let [first, second] = ends.get();
    assert_eq!(second - first, 10_000 + m.switch_ns);
}

#[test]
fn a_thread_alone_is_not_preempted() {
    let outcome = Simulation::new(small(), 1).thread(|| work(100_000_000)).run(0).expect("it ends");
    assert_eq!((outcome.counts.preemptions, outcome.counts.switches), (0, 1));
}

#[test]
fn a_spinner_keeps_its_core_for_a_slice() {
    let m = Machine { slice_ns: 50_000, ..small() };
    let flag = word();
    let other = Rc::clone(&flag);
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, move || {
            flag.wait_while(Acquire, |v| v == 0);
        })
        .thread_on(0, move || {
            assert!(now() >= m.slice_ns, "waits for the spinner's slice to end");
            other.store(1, Release);
        });
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn a_slice_does_not_end_within_an_access() {
    let m = Machine { slice_ns: 10_000, ..small() };
    let shared = word();
    let (seen, late) = (Rc::clone(&shared), m.switch_ns + m.slice_ns + 1_000);
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, move || {
            work(m.slice_ns - 10);
            shared.store(1, Release);
        })
        .thread_on(0, || work(100_000))
        .thread_on(4, move || {
            work(late);
            assert_eq!(seen.load(Acquire), 1, "the store did not wait for the next slice");
        });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn a_spinner_sees_nothing_before_it_is_back() {
    let m = Machine { slice_ns: 10_000, switch_ns: 5_000, ..small() };
    let flag = word();
    let other = Rc::clone(&flag);
    let transfer_ns = m.transfer_ns(0, 4);
    let simulation = Simulation::new(m, 1)
        .thread_on(0, move || {
            flag.wait_while(Acquire, |v| v == 0);
            // Its slice ended at 15 us, the other ran from 20 to 25, and the way back takes 5.
            assert_eq!(now(), 30_000 + transfer_ns);
        })
        .thread_on(0, || work(5_000))
        .thread_on(4, move || {
            work(22_000);
            other.store(1, Release);
        });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn crowded_is_a_core_with_a_queue_or_spinners_for_all_cores() {
    let flag = word();
    let spin = || {
        let flag = Rc::clone(&flag);
        move || {
            flag.wait_while(Acquire, |v| v == 0);
        }
    };
    let machine = || Machine { slice_ns: 10_000, ..small().shape(1, 2) };
    let release = Rc::clone(&flag);
    let simulation = Simulation::new(machine(), 1).thread_on(0, spin()).thread_on(1, move || {
        assert!(!Sim::crowded());
        work(5_000);
        assert!(!Sim::crowded(), "one spinner on two cores");
        release.store(1, Release);
    });
    let _ = simulation.run(0).expect("both end");

    flag.store(0, Relaxed);
    let release = Rc::clone(&flag);
    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, spin())
        .thread_on(0, spin())
        .thread_on(1, move || {
            work(100_000);
            assert!(Sim::crowded(), "two spinners, one of them preempted");
            release.store(1, Release);
        });
    let _ = simulation.run(0).expect("all end");

    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, || {
            work(1_000);
            assert!(Sim::crowded(), "another thread wants this core");
        })
        .thread_on(0, || assert!(!Sim::crowded()));
    let _ = simulation.run(0).expect("both end");
}
