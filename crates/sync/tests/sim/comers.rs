//! Tests of a thread that comes to a mutex whose head sleeps: it need not sleep too, if the owner
//! is about to unlock.

use std::cell::RefCell;
use std::rc::Rc;

use antiphon_platform::{Clock, Deadline, Platform, Waiter};
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, work};
use antiphon_sync::lock::{Form, ShflMutex, Standard};

/// Time at which the owner begins to unlock, which takes half a microsecond, because it must find
/// out which waiter to wake. A waiter that came early has long fallen asleep.
const LEAVES_NS: u64 = 1_000_000;

/// Returns the order in which three threads have the mutex: the owner, 0; a sleeping waiter, 1; and
/// a thread that comes at `comes_ns`, 2.
fn order(comes_ns: u64) -> Vec<usize> {
    let shared = Rc::new((OwnLine(ShflMutex::<Sim>::NEW), RefCell::new(Vec::new())));
    let result = Rc::clone(&shared);
    let machine = Machine::two_sockets().shape(1, 4).without_jitter();
    let outcome = Simulation::new(machine, 1)
        .threads(3, move |number| {
            let (lock, order) = &*shared;
            work([1, 1_000, comes_ns][number]);
            assert_eq!(lock.0.is_locked(), number != 0);
            lock.0.lock();
            order.borrow_mut().push(number);
            work(if number == 0 { LEAVES_NS } else { 1 });
            // SAFETY: locked above.
            unsafe { lock.0.unlock() };
        })
        .run(0);
    let _ = outcome.unwrap_or_else(|stuck| panic!("{stuck}"));
    result.1.take()
}

#[test]
fn a_comer_that_finds_a_head_asleep_looks_before_it_sleeps() {
    assert_eq!(order(LEAVES_NS + 200), [0, 2, 1]);
}

#[test]
fn a_comer_that_has_looked_in_vain_waits_for_its_turn() {
    assert_eq!(order(LEAVES_NS - 20_000), [0, 1, 2]);
}

/// The time that each of five threads has run, in nanoseconds, when the first has held the mutex
/// for long. The others come one after the other, on two CPUs, each when those before it have
/// fallen asleep.
fn ran_ns() -> Vec<u64> {
    let lock = Rc::new(OwnLine(ShflMutex::<Sim>::NEW));
    let machine = Machine::two_sockets().shape(1, 2).without_jitter();
    let mut simulation = Simulation::new(machine, 1).account_at(LEAVES_NS / 2);
    for number in 0..5 {
        let lock = Rc::clone(&lock);
        simulation = simulation.thread_on(u32::from(number > 0), move || {
            let comes = Deadline { clock: Clock::Monotonic, ns: 100_000 * number };
            let bed = Waiter::NEW;
            let _ = Sim::park(&bed, Some(comes));
            lock.0.lock();
            work(if number == 0 { LEAVES_NS } else { 1 });
            // SAFETY: locked above.
            unsafe { lock.0.unlock() };
        });
    }
    let outcome = simulation.run(0);
    let mut outcome = outcome.unwrap_or_else(|stuck| panic!("{stuck}"));
    outcome.accounts.remove(0).ran_ns
}

#[test]
fn a_comer_behind_one_that_sleeps_does_not_spin_for_its_turn() {
    let ran_ns = ran_ns();
    let spin_ns = u64::from(Standard::QUEUE_SPIN.ns);
    // The head sleeps in a way that a comer does not see; a thread that comes then spins.
    let spins = ran_ns[2];
    for &ran in &ran_ns[3..] {
        assert!(ran > 0 && ran + spin_ns / 2 < spins, "{ran_ns:?}");
    }
}
