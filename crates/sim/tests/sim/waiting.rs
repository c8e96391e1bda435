//! Tests that a spinning thread misses no write, and that spinning has the right cost.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget};
use antiphon_sim::{Machine, OwnLine, Simulation, now, work};

use crate::toys::{Lock, Ttas};
use crate::{Word, small, word};

#[test]
fn a_write_at_any_instant_ends_the_wait() {
    let m = small();
    for core in [1, 4] {
        for delay in 0..2 * (m.memory_ns(0) + m.transfer_ns(0, 4)) {
            // The second word makes the line change without an end to the wait.
            let pair = Rc::new(OwnLine([Word::ZERO, Word::ZERO]));
            let other = Rc::clone(&pair);
            let simulation = Simulation::new(small(), 1)
                .thread_on(0, move || assert_eq!(pair[0].wait_while(Acquire, |v| v == 0), 5))
                .thread_on(core, move || {
                    other[1].fetch_add(1, Relaxed);
                    work(delay);
                    other[1].store(3, Relaxed);
                    other[0].store(5, Release);
                });
            let _ = simulation.run(0).expect("the wait ends");
        }
    }
}

#[test]
fn a_write_hit_wakes_watchers() {
    let m = Machine { slice_ns: 10_000, ..small() };
    let flag = word();
    let other = Rc::clone(&flag);
    let hit_ns = m.hit_ns;
    let outcome = Simulation::new(m, 1)
        .thread_on(0, move || {
            flag.wait_while(Acquire, |v| v == 0);
        })
        .thread_on(0, move || {
            // The line came to this core with the waiter's read.
            let begin = now();
            other.store(1, Release);
            assert_eq!(now() - begin, hit_ns, "the core owns the line");
        })
        .run(0)
        .expect("the wait ends");
    assert_eq!(outcome.counts.memory_reads, 1);
}

#[test]
fn an_access_in_flight_is_not_preempted() {
    // Slices end in the middle of nearly every transfer.
    for slice_ns in [10, 50, 77] {
        let machine = Machine { slice_ns, switch_ns: 5, ..small().shape(2, 1) };
        let shared = Rc::new(OwnLine((Ttas::NEW, Word::ZERO)));
        let outcome = Simulation::new(machine, slice_ns)
            .threads(6, {
                let shared = Rc::clone(&shared);
                move |_| {
                    for _ in 0..100 {
                        shared.0.0.lock();
                        let seen = shared.0.1.load(Relaxed);
                        work(20);
                        shared.0.1.store(seen + 1, Relaxed);
                        shared.0.0.unlock();
                    }
                }
            })
            .run(0)
            .expect("nobody waits for ever");
        assert_eq!(shared.0.1.load(Relaxed), 600);
        assert!(outcome.counts.preemptions > 600, "slices are that short");
    }
}

#[test]
fn spinning_is_free_until_the_line_changes() {
    let run = |wait_ns| {
        let flag = word();
        let other = Rc::clone(&flag);
        let outcome = Simulation::new(small(), 1)
            .thread_on(0, move || {
                flag.wait_while(Acquire, |v| v == 0);
            })
            .thread_on(1, move || {
                work(wait_ns);
                other.store(1, Release);
            })
            .run(0)
            .expect("the wait ends");
        outcome.counts
    };
    assert_eq!(run(1_000), run(1_000_000_000));
    assert_eq!(run(1_000).local_transfers, 2, "the store's, and one of the waiter");
}

#[test]
fn a_budget_ends_the_spin() {
    let m = small();
    let flag = word();
    let simulation = Simulation::new(m.clone(), 1).thread(move || {
        flag.load(Relaxed);
        let begin = now();
        assert_eq!(flag.spin_while(Acquire, Budget::ns(5_000), |v| v == 0), Err(0));
        assert_eq!(now() - begin, m.hit_ns + 5_000);
        assert_eq!(flag.spin_while(Acquire, Budget::NONE, |v| v == 0), Err(0));
        assert_eq!(now() - begin, 2 * m.hit_ns + 5_000);
        assert_eq!(flag.spin_while(Acquire, Budget::NONE, |v| v == 1), Ok(0));
    });
    let _ = simulation.run(0).expect("the budgets end");
}

#[test]
fn a_change_within_the_budget_is_seen() {
    let flag = word();
    let other = Rc::clone(&flag);
    let simulation = Simulation::new(small(), 1)
        .thread_on(0, move || {
            assert_eq!(flag.spin_while(Acquire, Budget::ns(5_000), |v| v < 2), Ok(2));
            assert!(now() < 5_000);
        })
        .thread_on(4, move || {
            work(1_000);
            other.store(1, Release);
            work(1_000);
            other.store(2, Release);
        });
    let _ = simulation.run(0).expect("the wait ends");
}

/// When a waiter sees a change that another thread makes `after_ns` from its first look, counted
/// from there; `spin` is given the word.
fn seen_after(
    machine: &Machine,
    after_ns: u64,
    spin: impl Fn(&Word) -> Result<u32, u32> + 'static,
) -> (Result<u32, u32>, u64) {
    let flag = word();
    let (other, seen) = (Rc::clone(&flag), Rc::new(Cell::new((Ok(0), 0))));
    let (noted, read_ns) = (Rc::clone(&seen), machine.memory_ns(0));
    let simulation = Simulation::new(machine.clone(), 1)
        .thread_on(0, move || {
            flag.load(Relaxed);
            let begin = now();
            let found = spin(&flag);
            noted.set((found, now() - begin));
        })
        .thread_on(1, move || {
            work(read_ns + after_ns);
            other.store(1, Release);
        });
    let _ = simulation.run(0).expect("both end");
    seen.get()
}

#[test]
fn a_waiter_looks_when_its_pause_is_over_and_not_before() {
    let m = Machine { look_ns: 500, ..small() };
    let transfer_ns = m.transfer_ns(0, 1);
    for (after_ns, look_ns) in [(100, 500), (300, 500), (600, 1_000), (1_700, 2_000)] {
        let spin = |flag: &Word| Ok(flag.wait_while(Acquire, |v| v == 0));
        let (found, took_ns) = seen_after(&m, after_ns, spin);
        assert_eq!((found, took_ns), (Ok(1), m.hit_ns + look_ns + transfer_ns), "{after_ns}");
    }
    let at_once = Machine { look_ns: 0, ..m };
    let spin = |flag: &Word| Ok(flag.wait_while(Acquire, |v| v == 0));
    let (_, took_ns) = seen_after(&at_once, 600, spin);
    assert!((600..800).contains(&took_ns), "{took_ns}");
}

#[test]
fn who_backs_off_looks_after_twice_as_long_each_time_and_at_the_end() {
    let m = small();
    let transfer_ns = m.transfer_ns(0, 1);
    for (after_ns, look_ns) in [(100, 300), (400, 600), (700, 1_200), (1_500, 2_000)] {
        let budget = Budget::ns(2_000).backing_off(300);
        let spin = move |flag: &Word| flag.spin_while(Acquire, budget, |v| v == 0);
        let (found, took_ns) = seen_after(&m, after_ns, spin);
        assert_eq!((found, took_ns), (Ok(1), m.hit_ns + look_ns + transfer_ns), "{after_ns}");
    }
}

#[test]
fn a_budget_ends_with_a_look() {
    let m = Machine { look_ns: 300, ..small() };
    let spin = |budget| move |flag: &Word| flag.spin_while(Acquire, budget, |v| v == 0);
    let never = 1_000_000;
    assert_eq!(seen_after(&m, never, spin(Budget::ns(1))), (Err(0), m.hit_ns + 300));
    assert_eq!(seen_after(&m, never, spin(Budget::ns(601))), (Err(0), m.hit_ns + 900));
    assert_eq!(seen_after(&m, never, spin(Budget::NONE)), (Err(0), m.hit_ns));
}
