//! Cores are shared by slices.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_platform::{
    Atomic, Budget, CpuId, Hint, Hints as _, Platform, RANK, SocketId, Topology as _,
};
use antiphon_sim::{Counts, Machine, Sim, Simulation, Why, now, set_rank, work};

use crate::{Word, small, word};

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

/// A spinner and another thread on its core: when the other first runs, and what was counted.
fn beside_a_spinner(
    machine: Machine,
    spin: impl Fn(&Word) + Clone + 'static,
    late_ns: u64,
) -> (u64, Counts) {
    let flag = word();
    let (other, begun) = (Rc::clone(&flag), Rc::new(Cell::new(0)));
    let noted = Rc::clone(&begun);
    let outcome = Simulation::new(machine, 1)
        .thread_on(0, move || spin(&flag))
        .thread_on(0, move || {
            noted.set(now());
            work(late_ns);
            other.store(1, Release);
        })
        .run(0)
        .expect("both end");
    (begun.get(), outcome.counts)
}

#[test]
fn a_spinner_with_a_budget_keeps_its_core_for_a_slice() {
    let m = Machine { slice_ns: 50_000, ..small() };
    let spin = |flag: &Word| {
        let _ = flag.spin_while(Acquire, Budget::ns(100_000), |v| v == 0);
    };
    let (begun, counts) = beside_a_spinner(m.clone(), spin, 0);
    assert_eq!(begun, m.switch_ns + m.slice_ns + m.switch_ns);
    assert_eq!(counts.yields, 0);
}

#[test]
fn a_spinner_without_an_end_lets_others_run_when_its_patience_is_over() {
    let m = small();
    let spin = |flag: &Word| _ = flag.wait_while(Acquire, |v| v == 0);
    let patience_ns = u64::from(Budget::PATIENCE.ns);
    let (begun, counts) = beside_a_spinner(m.clone(), spin, 0);
    // Its first look is at a line of the memory.
    assert_eq!(begun, m.switch_ns + m.memory_ns(0) + patience_ns + m.switch_ns);
    assert_eq!((counts.yields, counts.preemptions, counts.switches), (1, 0, 3));
}

#[test]
fn a_spinner_that_was_preempted_yields_before_it_looks() {
    let m = Machine { slice_ns: 5_000, ..small() };
    let spin = |flag: &Word| _ = flag.wait_while(Acquire, |v| v == 0);
    // Its slice is over before its patience; so is that of the other, which then has all it needs.
    let (_, counts) = beside_a_spinner(m, spin, 9_000);
    assert_eq!((counts.yields, counts.preemptions), (1, 2));
}

#[test]
fn who_yields_makes_room_for_equals_and_not_for_others() {
    let urgent = |rank| {
        move |flag: &Word| {
            set_rank(rank);
            flag.wait_while(Acquire, |v| v == 0);
        }
    };
    let m = Machine { slice_ns: 50_000, ..small() };
    let (begun, counts) = beside_a_spinner(m.clone(), urgent(RANK), 0);
    assert!(begun < m.slice_ns && counts.yields == 1, "{begun}, {counts:?}");
    let flag = word();
    let spinning = urgent(RANK + 1);
    let outcome = Simulation::new(m, 1)
        .thread_on(0, move || spinning(&flag))
        .thread_on(0, || panic!("the spinner is more urgent until it ends"))
        .thread_on(4, move || work(1_000_000))
        .grace_ns(500_000)
        .run(0)
        .expect_err("nobody ends the spin");
    assert_eq!(outcome.why, Why::Overrun);
}

#[test]
fn a_spinner_alone_yields_in_vain_and_does_not_look_meanwhile() {
    let m = Machine { yield_ns: 5_000, ..small() };
    let patience_ns = u64::from(Budget::PATIENCE.ns);
    // When a spinner sees what another writes at that time.
    let seen = |written_ns: u64| {
        let flag = word();
        let (other, seen) = (Rc::clone(&flag), Rc::new(Cell::new(0)));
        let noted = Rc::clone(&seen);
        let outcome = Simulation::new(m.clone(), 1)
            .thread_on(0, move || {
                flag.wait_while(Acquire, |v| v == 0);
                noted.set(now());
            })
            .thread_on(1, move || {
                work(written_ns);
                other.store(1, Release);
            })
            .run(0);
        assert_eq!(outcome.expect("both end").counts.yields, 0, "nobody is there");
        seen.get()
    };
    let begun_ns = m.switch_ns + m.memory_ns(0);
    let call = |turn: u64| begun_ns + patience_ns + turn * (patience_ns + m.yield_ns);
    for turn in 0..3 {
        let (call, back) = (call(turn), call(turn) + m.yield_ns);
        assert!(seen(call - 1_000 - m.switch_ns) < call);
        assert_eq!(seen(call + 1_000 - m.switch_ns), back + m.transfer_ns(0, 1));
        let late = seen(back + 1_000 - m.switch_ns);
        assert!((back + 1_000..back + 1_500).contains(&late), "{late}");
    }
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
fn crowded_is_a_core_with_a_queue_or_spinners_for_all_other_cores() {
    let machine = || Machine { slice_ns: 10_000, ..small().shape(1, 3) };
    let spinner = || {
        Sim::hint(Hint::SpinBegin);
        work(100_000);
        Sim::hint(Hint::SpinEnd);
    };
    let simulation = Simulation::new(machine(), 1).thread_on(0, spinner).thread_on(1, || {
        work(5_000);
        assert!(!Sim::crowded(), "a second spinner leaves one core of three");
        assert!(!Sim::roomy(), "which is that of who is waited for");
        Sim::hint(Hint::SpinBegin);
        assert!(!Sim::crowded(), "its own spin does not count");
        Sim::hint(Hint::SpinEnd);
    });
    let _ = simulation.run(0).expect("both end");

    let simulation = Simulation::new(machine(), 1)
        .thread_on(0, spinner)
        .thread_on(0, spinner)
        .thread_on(1, || {
            work(50_000);
            assert!(Sim::crowded(), "two spin, one of them preempted, and a third has no core");
            work(500_000);
            assert!(!Sim::crowded(), "they have ended");
            assert!(Sim::roomy(), "its own spin would leave two cores of three");
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
