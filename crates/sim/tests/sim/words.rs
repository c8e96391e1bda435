//! Tests of `wait_on` and `wake_on`: places, order, deadlines, and costs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Atomics, Clock, Clocks as _, Deadline, Parked, WordWaits as _};
use antiphon_sim::{
    Description, Machine, Model, Outcome, OwnLine, Sim, Simulation, WaitsOn, Why, name_line, now,
    work,
};

use crate::machines::{SMALL, wrong};
use crate::{small, time};

type Long = Rc<OwnLine<<Sim as Atomics>::U64>>;

/// Far more than it takes to fall asleep.
const LONG_NS: u64 = 10_000;

fn long() -> Long {
    Rc::new(OwnLine(Atomic::ZERO))
}

fn priced() -> Machine {
    Machine { call_ns: 100, park_ns: 600, wake_ns: 800, ..small() }
}

fn wake(word: &Long, places: u32, count: u32) -> u32 {
    Sim::wake_on(&raw const word.0, places, count)
}

/// Threads on CPUs from 1 on, which come one after the other, sleep in these places until they are
/// woken once. The waker, which comes last, on CPU 0, gets the list of those that are back, in that
/// order.
fn sleepers(
    machine: Machine,
    places: &[u32],
    waker: impl FnOnce(&Long, &RefCell<Vec<usize>>) + 'static,
) -> Outcome {
    let (word, back) = (long(), Rc::new(RefCell::new(Vec::new())));
    let last_ns = LONG_NS * (places.len() as u64 + 1);
    let mut simulation = Simulation::new(machine, 1);
    for (number, &place) in places.iter().enumerate() {
        let (word, back) = (Rc::clone(&word), Rc::clone(&back));
        simulation = simulation.thread_on(number as u32 + 1, move || {
            work(LONG_NS * (number as u64 + 1));
            assert_eq!(Sim::wait_on(&word.0, 0, place, None), Parked::Woken);
            back.borrow_mut().push(number);
        });
    }
    let simulation = simulation.thread_on(0, move || {
        work(last_ns);
        waker(&word, &back);
    });
    simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"))
}

#[test]
fn those_of_a_place_are_woken_by_themselves() {
    let outcome = sleepers(small(), &[0, 31, 0, 31], |word, back| {
        assert_eq!(wake(word, 1 << 30, u32::MAX), 0, "nobody is there");
        assert_eq!(wake(word, 1 << 31, u32::MAX), 2);
        work(LONG_NS);
        assert_eq!(*back.borrow(), [1, 3]);
        assert_eq!(wake(word, 1 << 31 | 1, u32::MAX), 2, "those of the other are there still");
    });
    assert_eq!((outcome.counts.parks, outcome.counts.wakes), (4, 4));
}

#[test]
fn as_many_as_are_asked_for_are_woken_in_the_order_in_which_they_came() {
    let _ = sleepers(small(), &[7, 3, 7, 7, 7], |word, back| {
        assert_eq!(wake(word, 1 << 7, 0), 0);
        for (count, all) in [(1, &[0][..]), (2, &[0, 2, 3]), (2, &[0, 2, 3, 4])] {
            let before = back.borrow().len();
            assert_eq!(wake(word, 1 << 7, count) as usize, all.len() - before);
            work(LONG_NS);
            assert_eq!(*back.borrow(), all);
        }
        assert_eq!(wake(word, u32::MAX, u32::MAX), 1);
    });
}

#[test]
fn who_sees_another_value_does_not_sleep() {
    let simulation = Simulation::new(priced(), 1).thread(|| {
        let word = long();
        word.0.swap(7 << 32 | 5, Relaxed);
        let m = priced();
        let ns = time(|| assert_eq!(Sim::wait_on(&word.0, 6, 0, None), Parked::Woken));
        assert_eq!(ns, m.call_ns + m.hit_ns + m.rmw_ns, "a call, the word, the lock");
        // The other half is not compared.
        let deadline = Some(Deadline { clock: Clock::Monotonic, ns: now() + LONG_NS });
        assert_eq!(Sim::wait_on(&word.0, 5, 0, deadline), Parked::TimedOut);
    });
    assert_eq!(simulation.run(0).expect("it ends").counts.parks, 1);
}

#[test]
fn a_deadline_ends_the_sleep_in_either_clock_and_leaves_nobody_behind() {
    let simulation = Simulation::new(priced(), 1).thread(|| {
        let (word, m) = (long(), priced());
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let deadline = Some(Deadline { clock, ns: Sim::now(clock) + 30_000 });
            let ns = time(|| assert_eq!(Sim::wait_on(&word.0, 0, 0, deadline), Parked::TimedOut));
            assert_eq!(ns, 30_000 + m.wake_latency_ns);
        }
        assert_eq!(wake(&word, 1, 1), 0);
    });
    let _ = simulation.run(0).expect("deadlines pass");
}

/// The deadline passes while the wake is under way: a sleeper that was chosen does not return a
/// timeout.
#[test]
fn who_was_chosen_has_not_timed_out() {
    for late_ns in 0..2_000 {
        let (word, woken) = (long(), Rc::new(Cell::new(0)));
        let (of_waker, told) = (Rc::clone(&word), Rc::clone(&woken));
        let simulation = Simulation::new(priced(), 1)
            .thread_on(0, move || {
                let deadline = Some(Deadline { clock: Clock::Monotonic, ns: LONG_NS });
                let parked = Sim::wait_on(&word.0, 0, 0, deadline);
                work(LONG_NS);
                assert_eq!(parked == Parked::Woken, woken.get() == 1, "{late_ns}");
            })
            .thread_on(1, move || {
                work(LONG_NS - 1_000 + late_ns);
                told.set(wake(&of_waker, 1, 1));
            });
        let _ = simulation.run(0).expect("both end");
    }
}

/// WORD-1.
#[test]
fn a_wake_behind_a_change_at_any_instant_ends_the_wait() {
    for delay_ns in 0..2_000 {
        let word = long();
        let of_waker = Rc::clone(&word);
        // The waker is faster in the kernel than the sleeper.
        let simulation = Simulation::new(Machine { park_ns: 900, wake_ns: 110, ..priced() }, 1)
            .thread_on(0, move || {
                while word.0.load(Relaxed) == 0 {
                    let _ = Sim::wait_on(&word.0, 0, 0, None);
                }
            })
            .thread_on(1, move || {
                work(1 + delay_ns);
                of_waker.0.store(1, Relaxed);
                wake(&of_waker, 1, 1);
            });
        let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{delay_ns}: {stuck}"));
    }
}

/// A call for all, and the rest of a wake for each.
#[test]
fn one_call_is_paid_once() {
    let m = priced();
    let line_ns = |from| m.transfer_ns(from, 0);
    // The lock was the last sleeper's; each sleeper's line comes from its CPU, of either socket.
    let lines_ns = line_ns(5) + (1..=5).map(line_ns).sum::<u64>();
    let each_ns = m.wake_ns - m.call_ns;
    let _ = sleepers(priced(), &[0; 5], move |word, _| {
        assert_eq!(time(|| assert_eq!(wake(word, 1, 5), 5)), m.call_ns + lines_ns + 5 * each_ns);
        work(LONG_NS);
        assert_eq!(time(|| assert_eq!(wake(word, 1, 5), 0)), m.call_ns + m.rmw_ns, "nobody");
    });
}

/// The latency of each begins when it has been paid for.
#[test]
fn who_is_back_was_woken_for_the_price_of_those_before() {
    let (word, back_at) = (long(), Rc::new(RefCell::new(Vec::new())));
    let of_waker = Rc::clone(&word);
    let seen = Rc::clone(&back_at);
    let mut simulation = Simulation::new(priced(), 1);
    for cpu in 1..=3 {
        let (word, back_at) = (Rc::clone(&word), Rc::clone(&back_at));
        simulation = simulation.thread_on(cpu, move || {
            work(LONG_NS * u64::from(cpu));
            let _ = Sim::wait_on(&word.0, 0, 0, None);
            back_at.borrow_mut().push(now());
        });
    }
    let simulation = simulation.thread_on(0, move || {
        work(4 * LONG_NS);
        wake(&of_waker, 1, 3);
        let (woken, m) = (now(), priced());
        work(LONG_NS);
        let each_ns = m.wake_ns - m.call_ns;
        let expected = [2, 1, 0].map(|earlier| woken - earlier * each_ns + m.wake_latency_ns);
        assert_eq!(*seen.borrow(), expected);
    });
    let _ = simulation.run(0).expect("all are woken");
}

/// A waker has to look at sleepers that it passes over; but once that line is in its cache, not
/// again far.
#[test]
fn who_is_passed_over_costs_the_waker_a_line() {
    let m = priced();
    let _ = sleepers(priced(), &[0, 0, 0, 1], move |word, _| {
        let lines_ns = (1..=4).map(|from| m.transfer_ns(from, 0)).sum::<u64>();
        let each_ns = m.wake_ns - m.call_ns;
        let far_ns = m.call_ns + m.transfer_ns(4, 0) + lines_ns + each_ns;
        assert_eq!(time(|| assert_eq!(wake(word, 2, 1), 1)), far_ns);
        let near_ns = m.call_ns + m.rmw_ns + 3 * m.hit_ns + 3 * each_ns;
        assert_eq!(time(|| assert_eq!(wake(word, 1, 3), 3)), near_ns);
    });
}

/// Calls for one word at a time have its lock in the order in which they came.
#[test]
fn who_comes_to_a_lock_that_another_has_waits() {
    let word = long();
    let took = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(priced(), 1);
    for cpu in 0..3 {
        let (word, took) = (Rc::clone(&word), Rc::clone(&took));
        simulation = simulation.thread_on(cpu, move || {
            work(LONG_NS);
            let ns = time(|| assert_eq!(wake(&word, 1, 1), 0));
            took.borrow_mut().push(ns);
        });
    }
    let _ = simulation.run(0).expect("they end");
    let m = priced();
    let hand_over_ns = m.transfer_ns(0, 1);
    let first_ns = m.call_ns + m.rmw_ns;
    assert_eq!(*took.borrow(), [0, 1, 2].map(|before| first_ns + before * hand_over_ns));
}

#[test]
fn sleepers_that_nobody_wakes_are_reported() {
    let word = long();
    let simulation = Simulation::new(small(), 1).thread(move || {
        name_line(&*word, "the word");
        let _ = Sim::wait_on(&word.0, 0, 0, None);
    });
    let stuck = simulation.run(0).expect_err("nobody wakes it");
    assert_eq!(stuck.why, Why::Deadlock);
    let [wait] = &stuck.waits[..] else { panic!("{stuck}") };
    assert!(matches!(wait.on, WaitsOn::Wake { name: Some("the word"), offset: 0, .. }), "{stuck}");
    assert!(stuck.to_string().contains("sleeps on line"), "{stuck}");
}

#[test]
fn threads_may_sleep_on_words_and_fibers_may_not() {
    for fibers in [false, true] {
        let simulation = Simulation::new(small(), 1)
            .model(Model { fibers, ..Model::default() })
            .thread(move || assert_eq!(Sim::waits_on_words(), !fibers));
        let _ = simulation.run(0).expect("it ends");
    }
}

#[test]
fn a_machine_file_may_say_what_of_a_wake_is_the_call() {
    let park = "park = { ns = 600";
    let with = |ns: u32| format!("call = {{ ns = {ns}, measured = \"x\" }}\n{park}");
    let call_ns = |text: &str| Description::parse(text).expect("it is sound").machine.call_ns;
    assert_eq!((call_ns(SMALL), call_ns(&SMALL.replacen(park, &with(600), 1))), (0, 600));
    let (line, what) = wrong(park, &with(601));
    assert!(line == "[os]" && what.contains("os.call is 601 ns, more than os.park"), "{what}");
}
