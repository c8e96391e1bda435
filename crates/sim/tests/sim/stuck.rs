//! A simulation that can't go on says so, and what each thread waits for.

use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Clock, Deadline, Platform};
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, WaitsOn, Why, name_line, work};

use crate::toys::{Lock, Ttas};
use crate::{arena, small, word};

#[test]
fn a_cycle_of_locks_is_reported() {
    let locks = Rc::new([OwnLine(Ttas::NEW), OwnLine(Ttas::NEW)]);
    let body = |first: usize| {
        let locks = Rc::clone(&locks);
        move || {
            name_line(&locks[first], ["a", "b"][first]);
            locks[first].lock();
            work(10_000);
            locks[1 - first].lock();
        }
    };
    let stuck =
        Simulation::new(small(), 1).thread(body(0)).thread(body(1)).run(0).expect_err("a cycle");
    assert_eq!(stuck.why, Why::Deadlock);
    let names: Vec<_> = stuck
        .waits
        .iter()
        .map(|wait| match wait.on {
            WaitsOn::Word { name, value, .. } => (wait.thread, name, value),
            _ => panic!("{wait} does not spin"),
        })
        .collect();
    assert_eq!(names, [(0, Some("b"), 1), (1, Some("a"), 1)]);
    assert!(stuck.to_string().contains("thread 0 on core 0 spins on line"), "{stuck}");
}

#[test]
fn spinners_that_share_a_core_are_a_deadlock_too() {
    let flag = word();
    let wait = || {
        let flag = Rc::clone(&flag);
        move || {
            flag.wait_while(Acquire, |v| v == 0);
        }
    };
    let stuck = Simulation::new(small(), 1)
        .thread_on(0, wait())
        .thread_on(0, wait())
        .thread_on(1, wait())
        .thread_on(1, wait())
        .thread_on(2, || work(100))
        .run(0)
        .expect_err("nobody sets the flag");
    assert_eq!((stuck.why, stuck.waits.len()), (Why::Deadlock, 4));
    assert!(stuck.at_ns < 3 * small().slice_ns, "found when the first slice ends");
}

#[test]
fn a_sleeper_that_nobody_wakes_is_reported() {
    let stuck = Simulation::new(small(), 1)
        .thread(|| {
            let id = arena().take().expect("a free node");
            let _ = Sim::park(arena().resolve(id).expect("just taken"), None);
        })
        .run(0)
        .expect_err("nobody wakes it");
    assert_eq!(stuck.why, Why::Deadlock);
    assert_eq!(stuck.waits[0].on, WaitsOn::Unpark);
}

#[test]
fn no_time_is_too_far_ahead() {
    let deadline = Deadline { clock: Clock::Monotonic, ns: u64::MAX };
    let sleeps = move || {
        let id = arena().take().expect("a free node");
        let _ = Sim::park(arena().resolve(id).expect("just taken"), Some(deadline));
    };
    let works = || (0..3).for_each(|_| work(u64::MAX));
    let run = |simulation: Simulation| simulation.run(u64::MAX).expect_err("it has no end").why;
    assert_eq!(run(Simulation::new(small(), 1).thread(sleeps)), Why::Overrun);
    assert_eq!(run(Simulation::new(small(), 1).thread(works)), Why::Overrun);
}

#[test]
fn a_thread_that_does_not_end_is_reported() {
    let stuck = Simulation::new(small(), 1)
        .thread(|| {
            loop {
                work(1_000);
            }
        })
        .grace_ns(1_000_000)
        .run(1_000_000)
        .expect_err("it never ends");
    assert_eq!((stuck.why, stuck.waits.len()), (Why::Overrun, 1));
}

#[test]
fn a_deadline_behind_the_end_is_no_deadlock() {
    let stuck = Simulation::new(small(), 1)
        .thread(|| {
            let id = arena().take().expect("a free node");
            let deadline = Deadline { clock: Clock::Monotonic, ns: 5_000_000 };
            let _ = Sim::park(arena().resolve(id).expect("just taken"), Some(deadline));
        })
        .grace_ns(1_000_000)
        .run(1_000_000)
        .expect_err("it sleeps for longer");
    assert_eq!(stuck.why, Why::Overrun);
}

#[test]
fn a_panic_gets_out_and_leaves_nothing_behind() {
    struct Unlock(Rc<OwnLine<Ttas>>);
    impl Drop for Unlock {
        fn drop(&mut self) {
            self.0.unlock();
        }
    }
    let lock = Rc::new(OwnLine(Ttas::NEW));
    let simulation = {
        let lock = Rc::clone(&lock);
        Simulation::new(Machine { slice_ns: 100, ..small() }, 1).threads(12, move |number| {
            lock.lock();
            let _unlock = Unlock(Rc::clone(&lock));
            work(1_000);
            assert_ne!(number, 3, "the panic of a simulated thread");
        })
    };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run(0)));
    let message = caught.expect_err("thread 3 panics");
    assert!(message.downcast_ref::<String>().expect("text").contains("the panic of"));
    let flag = word();
    let simulation = Simulation::new(small(), 1).thread(move || flag.store(1, Relaxed));
    let _ = simulation.run(0).expect("a new simulation works");
}
