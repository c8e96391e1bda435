//! Events, latches and event counts with real threads: crowds, deadlines, and memory that is
//! unmapped as soon as allowed.

mod common;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{self, CrowdForm, Unpolled};
use common::page::Page;

type Event<F = Standard> = wait::Event<Linux, Distance, F>;
type EventCount<F = Standard> = wait::EventCount<Linux, Distance, F>;

fn in_us(us: u64) -> Option<Deadline> {
    Some(Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 })
}

/// The event used as a lock, whose waiters sometimes give up.
fn exclude<F: CrowdForm>(threads: u32, rounds: u32) {
    let event = Event::<F>::NEW;
    let (inside, total) = (AtomicU32::new(0), AtomicU32::new(0));
    event.set();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 0..rounds {
                    while !event.wait_until(in_us(u64::from(round % 64))) {}
                    assert_eq!(inside.fetch_add(1, Relaxed), 0, "one set let two go");
                    total.fetch_add(1, Relaxed);
                    inside.fetch_sub(1, Relaxed);
                    event.set();
                }
            });
        }
    });
    assert_eq!(total.load(Relaxed), threads * rounds);
    assert!(event.try_wait() && !event.try_wait(), "set, and once");
}

#[test]
fn a_set_lets_one_go() {
    exclude::<Standard>(2, 3_000);
    exclude::<Standard>(12, 200);
    exclude::<Unpolled>(3, 1_000);
}

/// EVENT-3, EVENT-4: the waiter unmaps the event after its wait, while the setter is still in the
/// call.
#[test]
fn a_set_touches_nothing_afterwards() {
    for round in 0..500 {
        let page = Page::map();
        // SAFETY: all zero is an event that is not set; it is used until it is unmapped below.
        let event: &Event = unsafe { page.as_ref() };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !event.wait_until(in_us(round % 100)) {}
                // SAFETY: no thread may access it any more (the point of this test).
                unsafe { page.unmap() };
            });
            event.set();
        });
    }
}

/// Many threads put items and many take them, by a word without locks.
#[test]
fn a_notification_reaches_who_looks_for_nothing() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 2_000;
    let filled = EventCount::<Standard>::NEW;
    let items = AtomicU32::new(0);
    let take = || items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1)).is_ok();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    items.fetch_add(1, Relaxed);
                    filled.notify_one();
                }
            });
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    while !take() {
                        let key = filled.prepare();
                        if take() {
                            key.cancel();
                            break;
                        }
                        let _ = key.wait(None);
                    }
                }
            });
        }
    });
    assert_eq!(items.load(Relaxed), 0);
}

#[test]
fn to_notify_nobody_forgets_nobody() {
    let count = EventCount::<Standard>::NEW;
    let waiter = count.prepare();
    count.notify(0);
    assert!(count.has_waiters());
    count.notify_one();
    assert!(waiter.wait(in_us(5_000_000)));
}

#[test]
fn a_latch_lets_all_go() {
    for waiters in [1, 4, 40] {
        let latch = wait::Latch::<Linux>::new(3);
        assert!(!latch.wait_until(in_us(100)));
        let done = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..waiters {
                scope.spawn(|| {
                    latch.wait();
                    assert_eq!(done.load(Relaxed), 3, "somebody went on before all was done");
                });
            }
            for _ in 0..3 {
                thread::yield_now();
                done.fetch_add(1, Relaxed);
                latch.count_down(1);
            }
        });
        assert!(latch.is_open() && wait::Latch::<Linux>::new(0).is_open());
    }
}
