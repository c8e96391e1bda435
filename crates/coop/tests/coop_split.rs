//! Tests of timers in a separate thread: order, cancelling, the timers that are left at the end,
//! and the tiers.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread;

use antiphon_coop::{Split, SplitOptions, Tier};
use antiphon_linux::schedule;
use antiphon_platform::ThreadId;

const MS: u64 = 1_000_000;

fn start() -> Option<Split> {
    Split::start(SplitOptions::default()).inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

#[test]
fn timers_run_in_the_order_of_their_releases_and_not_before() {
    let Some(timers) = start() else { return };
    let (send, receive) = mpsc::channel();
    let begin = Split::now_ns() + 20 * MS;
    // Submitted in a different order, from several threads.
    thread::scope(|scope| {
        for first in 0..4_u64 {
            let (timers, send) = (&timers, send.clone());
            scope.spawn(move || {
                for at in 0..100 {
                    let number = (at * 37 % 100) * 4 + first;
                    let (release, send) = (begin + number * 50_000, send.clone());
                    timers.submit(release, move |late| {
                        assert!(Split::now_ns() >= release + late);
                        let _ = send.send((number, release));
                    });
                }
            });
        }
    });
    let mut ran: Vec<_> = (0..400).map(|_| receive.recv().expect("all run")).collect();
    assert_eq!(timers.tardiness().count(), 400);
    // Timers that were late when submitted may be out of order; none of these can be late.
    let late = timers.tardiness().most_ns();
    let in_order = ran.is_sorted();
    ran.sort_unstable();
    assert!(ran.iter().enumerate().all(|(at, (number, _))| at as u64 == *number));
    assert!(in_order || late > 20 * MS, "{late} ns late, and out of order");
    assert_eq!(timers.panics(), 0);
}

#[test]
fn an_earlier_timer_wakes_the_thread_from_a_long_sleep() {
    let Some(timers) = start() else { return };
    let (send, receive) = mpsc::channel();
    let far = timers.submit(Split::now_ns() + 3_600_000 * MS, |_| panic!("an hour has passed"));
    for at in 0..200 {
        let send = send.clone();
        timers.submit(Split::now_ns() + at % 3 * MS / 10, move |_| send.send(at).unwrap_or(()));
        assert_eq!(receive.recv(), Ok(at));
    }
    assert!(far.cancel());
}

#[test]
fn a_timer_is_cancelled_once_and_one_that_has_run_is_not() {
    let Some(timers) = start() else { return };
    let (send, receive) = mpsc::channel();
    let ran = timers.submit(0, move |_| send.send(()).unwrap_or(()));
    assert_eq!(receive.recv(), Ok(()));
    assert!(!ran.cancel());
    let count = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&count);
    let release = Split::now_ns() + 5 * MS;
    let waits = timers.submit(release, move |_| {
        counts.fetch_add(1, Relaxed);
    });
    let in_time = waits.cancel();
    assert!(!waits.cancel());
    let (send, receive) = mpsc::channel();
    timers.submit(release + MS, move |_| send.send(()).unwrap_or(()));
    assert_eq!(receive.recv(), Ok(()));
    assert_eq!(count.load(Relaxed), u32::from(!in_time));
}

#[test]
fn a_callback_that_panics_keeps_no_others_from_theirs() {
    let Some(timers) = start() else { return };
    timers.submit(0, |_| std::panic::resume_unwind(Box::new("on purpose")));
    let (send, receive) = mpsc::channel();
    timers.submit(1, move |_| send.send(()).unwrap_or(()));
    assert_eq!((receive.recv(), timers.panics()), (Ok(()), 1));
}

#[test]
fn what_is_not_due_is_dropped_with_the_last_clone() {
    let Some(timers) = start() else { return };
    let held = Arc::new(());
    let other = timers.clone();
    for at in 0..10 {
        let held = Arc::clone(&held);
        timers.submit(Split::now_ns() + (3_600_000 + at) * MS, move |_| drop(held));
    }
    drop(timers);
    assert_eq!(Arc::strong_count(&held), 11);
    // A callback may own the last handle.
    let (send, receive) = mpsc::channel();
    let last = other.clone();
    other.submit(0, move |_| {
        drop(last);
        send.send(()).unwrap_or(());
    });
    assert_eq!(receive.recv(), Ok(()));
    drop(other);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_worker_has_a_long_slice_and_then_its_own() {
    let Some(timers) = start() else { return };
    thread::spawn(move || {
        let me = ThreadId(0);
        let before = schedule::slice_ns(me);
        let worker = timers.worker();
        assert_eq!(schedule::slice_ns(me), Ok(SplitOptions::default().worker_slice_ns));
        drop(worker);
        assert_eq!(schedule::slice_ns(me), before);
    })
    .join()
    .expect("the worker has failed");
}

#[test]
fn the_tier_changes_while_timers_run() {
    let Some(timers) = start() else { return };
    let (send, receive) = mpsc::channel();
    for round in 0..20 {
        let priority = (round % 2 == 1).then_some(1);
        match timers.set_priority(priority) {
            Ok(()) => {
                let tier = if priority.is_some() { Tier::RealTimeSplit } else { Tier::Split };
                assert_eq!(timers.tier(), tier);
            }
            Err(refused) => {
                eprintln!("skipped: {refused}");
                assert_eq!(timers.tier(), Tier::Split);
            }
        }
        let send = send.clone();
        timers.submit(Split::now_ns() + MS / 2, move |_| send.send(round).unwrap_or(()));
        assert_eq!(receive.recv(), Ok(round));
    }
}
