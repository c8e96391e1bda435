//! Tests that a thread returns soon from a barrier, also on a large machine; and that permits are
//! handed around in order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, count, finished, now, work};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::policy::None;
use antiphon_sync::wait::{Barrier, CrowdForm, Semaphore};

/// Much longer than it takes to come, to wait and to fall asleep.
const LONG_NS: u64 = 100_000;

/// The standard form, except that the releasing thread wakes all others itself.
struct Alone;

impl Form for Alone {}

impl CrowdForm for Alone {
    const ALONE: u32 = u32::MAX;
}

fn run(simulation: Simulation, limit_ns: u64) -> Outcome {
    simulation.run(limit_ns).unwrap_or_else(|stuck| panic!("{stuck}"))
}

/// `threads` threads come to a barrier, `apart_ns` one after the other; the last when all others
/// have fallen asleep, if it is `late`. Returns when the last one came, and when all have returned.
fn meet<F: CrowdForm>(threads: usize, apart_ns: u64, late: bool) -> (u64, u64, Outcome) {
    let barrier = Rc::new(OwnLine(Barrier::<Sim, F>::new(threads as u32)));
    let (came, back) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (last_came, last_back) = (Rc::clone(&came), Rc::clone(&back));
    // All sockets are at one distance: so growth with the number of threads is not caused by
    // distances.
    let machine = Machine::two_sockets().shape(8, 24);
    let simulation = Simulation::new(machine, 1).threads(threads, move |number| {
        work(1 + number as u64 * apart_ns);
        if number == threads - 1 {
            work(if late { LONG_NS } else { 1 });
            last_came.set(now());
        }
        barrier.0.wait();
        last_back.set(last_back.get().max(now()));
    });
    let outcome = run(simulation, 0);
    (came.get(), back.get(), outcome)
}

#[test]
fn those_that_are_woken_at_a_barrier_wake_others() {
    fn wakes<F: CrowdForm>(threads: usize) -> u64 {
        let (came, back, outcome) = meet::<F>(threads, 2_000, true);
        assert_eq!(outcome.counts.wakes, threads as u64 - 1, "each sleeper is woken, and once");
        back - came
    }
    let (shared, alone) = (wakes::<Standard>(192), wakes::<Alone>(192));
    assert!(2 * shared < alone, "{shared} ns, and {alone} ns where one wakes all");
    // One thread wakes a few waiters: a chain of wakes would take longer.
    assert_eq!(wakes::<Standard>(6), wakes::<Alone>(6));
}

/// A thread that finds that others are coming too backs off: otherwise each of `n` threads would
/// delay all others `n` times.
#[test]
fn many_that_come_at_once_get_out_of_each_others_way() {
    let (_, few, _) = meet::<Standard>(48, 0, false);
    let (_, many, _) = meet::<Standard>(192, 0, false);
    assert!(many < 8 * few, "{few} ns for 48, {many} ns for four times as many");
}

#[test]
fn waiters_have_their_permits_in_the_order_in_which_they_came() {
    const WAITERS: usize = 12;
    for together in [true, false] {
        let semaphore = Rc::new(OwnLine(Semaphore::<Sim, None>::new(0)));
        let order = Rc::new(RefCell::new(Vec::new()));
        let had = Rc::clone(&order);
        let machine = Machine::two_sockets();
        let simulation = Simulation::new(machine, 1).threads(WAITERS + 1, move |number| {
            work(number as u64 * LONG_NS);
            if number < WAITERS {
                semaphore.0.acquire();
                return had.borrow_mut().push(number);
            }
            let times = if together { 1 } else { WAITERS as u32 };
            for _ in 0..times {
                assert_eq!(semaphore.0.release(WAITERS as u32 / times), Ok(()));
                work(LONG_NS);
            }
        });
        let _ = run(simulation, 0);
        assert!(order.borrow().iter().copied().eq(0..WAITERS), "{order:?}");
    }
}

/// Threads that hold a permit most of the time, more of them than permits and than cores: each has
/// at least a tenth of an equal share, whatever their timing. If a head waits for the CPU of a
/// thread that overtakes it, that thread must not have the permits for slice after slice.
#[test]
fn nobody_is_kept_from_the_permits() {
    const THREADS: usize = 12;
    for (seed, hold_ns, out_ns) in [(1, 5_000, 400), (4, 5_000, 500), (4, 4_700, 500)] {
        let semaphore = Rc::new(OwnLine(Semaphore::<Sim, None>::new(2)));
        let machine = Machine::two_sockets().shape(2, 4);
        let simulation = Simulation::new(machine, seed).threads(THREADS, move |_| {
            while !finished() {
                semaphore.0.acquire();
                work(hold_ns);
                assert_eq!(semaphore.0.release(1), Ok(()));
                count();
                work(out_ns);
            }
        });
        let outcome = run(simulation, 100_000_000);
        let least = outcome.operations.iter().min().copied().unwrap_or(0);
        let mean = outcome.operations.iter().sum::<u64>() / THREADS as u64;
        let case = (seed, hold_ns, out_ns);
        assert!(10 * least > mean, "{case:?}: {:?}", outcome.operations);
    }
}

/// Returns the longest time that a thread waits for `wanted` of two permits, which two others
/// release and retake at once; on its own core, or on that of one of them.
fn overtaken(wanted: u32, crowded: bool, seed: u64) -> u64 {
    let semaphore = Rc::new(OwnLine(Semaphore::<Sim, None>::new(2)));
    let longest = Rc::new(Cell::new(0));
    let (taken, noted) = (Rc::clone(&semaphore), Rc::clone(&longest));
    let overtake = move |number: usize| {
        work(1 + number as u64 * 2_500);
        while !finished() {
            taken.0.acquire();
            work(5_000);
            assert_eq!(taken.0.release(1), Ok(()));
        }
    };
    let wait = move || {
        work(LONG_NS);
        while !finished() {
            let began = now();
            semaphore.0.acquire_many(wanted);
            noted.set(noted.get().max(now() - began));
            assert_eq!(semaphore.0.release(wanted), Ok(()));
            work(20_000);
        }
    };
    let machine = Machine::two_sockets().shape(2, 2);
    let core = if crowded { 0 } else { 2 };
    let simulation = Simulation::new(machine, seed).threads(2, overtake).thread_on(core, wait);
    let _ = run(simulation, 20_000_000);
    longest.get()
}

/// The bound of bypass: a signalled waiter is overtaken for its patience, and then gets its permits
/// as soon as those that are taken by then are released.
#[test]
fn a_called_waiter_is_overtaken_for_its_patience_and_no_longer() {
    let patience_ns = u64::from(Standard::PATIENCE_NS);
    // The bound beside its patience: a wake from an idle state, and the release by the others.
    for wanted in [1, 2] {
        let waited = overtaken(wanted, false, 1);
        assert!(waited < 3 * patience_ns, "{wanted} of 2: {waited} ns");
    }
    // Others check only sometimes whether it is due, and have measured its lateness when it had to
    // wait for a core that was still in use: its patience is twenty times that.
    let waited = [1, 2, 3, 4, 5, 6, 7, 8].map(|seed| overtaken(1, true, seed));
    println!("simulated, on a core with one that overtakes it, in ns: {waited:?}");
    assert!(waited.iter().all(|&waited| waited < 12 * patience_ns), "{waited:?}");
}
