//! The same seed gives the same schedule: in this process, in others, and beside others.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use antiphon::deterministic::{Pool, Runner, Schedule, sleep, work};

/// Uses every feature: closures and futures that spawn others, scopes, timers, panics.
fn busy(pool: Pool) -> u32 {
    let sum = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let sum = sum.clone();
            pool.spawn(move || {
                work(Duration::from_nanos(300));
                let half = pool.spawn(move || number / 2);
                let awaited = pool.spawn_future(async move {
                    sleep(Duration::from_micros(u64::from(number % 5))).await;
                    half.await.expect("it does not panic")
                });
                sum.fetch_add(awaited.join().expect("it does not panic"), Relaxed);
                assert_ne!(number, 7, "one of them panics");
            })
        })
        .collect();
    let panicked = tasks.into_iter().filter_map(|task| task.join().err()).count();
    let mut parts = [0; 4];
    pool.scope(|scope| {
        parts.iter_mut().for_each(|part| scope.spawn(|| *part = 1));
    });
    sum.load(Relaxed) + parts.iter().sum::<u32>() + panicked as u32
}

/// The sum of all halves, the parts of the scope and one panic.
const TOLD: u32 = 90 + 4 + 1;

fn schedule(seed: u64) -> Schedule {
    let run = Runner::new().run(seed, busy).expect("nobody fails");
    assert_eq!(run.returned, TOLD);
    run.schedule
}

#[test]
fn a_seed_is_a_schedule() {
    let first = schedule(1);
    let _elsewhere: Vec<_> = (0..37).map(|size| vec![0_u8; 24 * size]).collect();
    let again = schedule(1);
    assert_eq!(first.to_string(), again.to_string());
    assert_eq!(first.fingerprint(), again.fingerprint());
    let others: Vec<_> = (2..12).map(|seed| schedule(seed).fingerprint()).collect();
    for (place, other) in others.iter().enumerate() {
        assert!(*other != first.fingerprint() && !others[place + 1..].contains(other));
    }
}

/// Not only the times differ, but also the workers of tasks, and their order.
#[test]
fn seeds_differ_in_who_runs_what() {
    let order = |seed| {
        let schedule = schedule(seed);
        let steps = schedule.steps().iter();
        steps.map(|step| (step.by, step.task, step.what.clone())).collect::<Vec<_>>()
    };
    let orders: Vec<_> = (0..10).map(order).collect();
    for (place, order) in orders.iter().enumerate() {
        assert!(!orders[place + 1..].contains(order), "seed {place} comes again");
    }
}

const CHILD: &str = "ANTIPHON_TEST_CHILD";

#[test]
fn a_seed_is_the_same_schedule_in_other_processes() {
    if std::env::var_os(CHILD).is_some() {
        print!("{}", schedule(7));
        return;
    }
    let expected = schedule(7).to_string();
    for pad in ["", "x", "a longer value that moves the stack of the process"] {
        let program = std::env::current_exe().expect("this program's path");
        let name = "seeds::a_seed_is_the_same_schedule_in_other_processes";
        let child = Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, pad)
            .output()
            .expect("this program runs again");
        assert!(child.status.success());
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains(&expected), "{expected} is not in {said}");
    }
}

#[test]
fn runs_beside_each_other_share_nothing() {
    let alone = schedule(3);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| schedule(3))).collect();
        for other in others {
            assert_eq!(other.join().expect("it ends"), alone);
        }
    });
}
