//! Fibers when a task, a worker or a pool ends early, by a panic or a drop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;

use antiphon::fiber::{STACK_BYTES, is_fiber, yield_now};
use antiphon::pool::{
    Builder, Pool,
    policy::{Lifo, Policy, Scheme, Steal},
};
use antiphon::{Event, Latch};
use antiphon_linux::Linux;
use antiphon_runtime::sched::{Others, Own};
use antiphon_sync::queue::{Deque, Item, Stolen};

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

/// Panics when it is asked for a task, after the flag is set.
struct Fails(Arc<AtomicBool>);

// SAFETY: tasks go into the worker's queue, and come out of queues.
unsafe impl Policy<Linux> for Fails {
    type Queue = Deque<Linux>;
    type State = ();

    fn queue(&self) -> Deque<Linux> {
        Deque::new(128, 1 << 20)
    }

    fn pop(&self, own: &Own<'_, Deque<Linux>>, (): &mut ()) -> Option<Item> {
        assert!(!self.0.load(Acquire), "told to fail");
        own.pop_front()
    }

    fn steal(
        &self,
        own: &Own<'_, Deque<Linux>>,
        (): &mut (),
        others: &Others<'_, Deque<Linux>>,
    ) -> Stolen {
        others.try_each(0..others.count(), |victim| own.steal(victim, |there| there / 2))
    }
}

/// On another thread, they would use that thread's thread-locals.
#[test]
fn fibers_go_on_where_they_began_though_the_policy_panics() {
    let fails = Arc::new(AtomicBool::new(false));
    let pool = fibers(1).build_with(Fails(fails.clone())).expect("fibers");
    let (began, event) = (Arc::new(Latch::new(8)), Arc::new(Event::new()));
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (began, event) = (began.clone(), event.clone());
            pool.spawn(move || {
                let me = thread::current().id();
                began.count_down(1);
                event.wait();
                yield_now();
                (me, thread::current().id())
            })
        })
        .collect();
    began.wait();
    fails.store(true, Release);
    // Until the policy is asked, after the wake-up of the first fiber.
    while waiting.iter().all(|fiber| !fiber.is_finished()) {
        event.set();
        thread::yield_now();
    }
    // Later threads must not get the fibers of earlier ones.
    let other = fibers(1).build().expect("fibers");
    let last = other.spawn(yield_now);
    while waiting.iter().any(|fiber| !fiber.is_finished()) {
        event.set();
        thread::yield_now();
    }
    last.join().expect("no panic");
    for fiber in waiting {
        let (before, after) = fiber.join().expect("no panic");
        assert_eq!(before, after);
    }
}

/// A closure that runs when this is dropped.
struct Then<F: FnMut()>(F);

impl<F: FnMut()> Drop for Then<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A fiber that unwinds can't let other fibers run, which would make room.
#[test]
fn one_that_unwinds_makes_more_than_there_is_room_for() {
    const TASKS: usize = 1_000;
    let policy = Scheme::new(Lifo, Steal::default()).capacity(2, 2);
    let pool = Arc::new(fibers(1).room(2).build_with(policy).expect("fibers"));
    let (inner, ran) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let count = ran.clone();
    let panicked = pool.spawn(move || {
        let _makes = Then(|| {
            for _ in 0..TASKS {
                let count = count.clone();
                drop(inner.spawn(move || count.fetch_add(1, Relaxed)));
            }
        });
        panic!("unwinds");
    });
    let panicked: thread::Result<()> = panicked.join();
    assert!(panicked.is_err());
    while ran.load(Relaxed) < TASKS {
        thread::yield_now();
    }
}

/// The fiber's thread is blocked, and was the only one to run the awaited task.
#[test]
fn one_that_unwinds_waits_for_a_task_of_its_pool() {
    let pool = Arc::new(fibers(1).spares(1).build().expect("fibers"));
    let inner = pool.clone();
    let panicked = pool.spawn(move || {
        let _waits = Then(|| inner.spawn(|| ()).join().expect("no panic"));
        panic!("unwinds");
    });
    let panicked: thread::Result<()> = panicked.join();
    assert!(panicked.is_err());
}

/// The other pool waits for a fiber of the same thread.
#[test]
fn one_that_drops_another_pool_lets_others_run() {
    let pool = fibers(1).spares(0).build().expect("fibers");
    let event = Event::new();
    pool.scope(|scope| {
        scope.spawn(|| {
            // Both have begun before the other pool is dropped.
            let (begun, told) = (Latch::new(1), Arc::new(Event::new()));
            pool.scope(|scope| {
                let (other, ends) = (fibers(1).build().expect("fibers"), told.clone());
                let waits = other.spawn(move || ends.wait());
                let (begun, told, event) = (&begun, &told, &event);
                scope.spawn(move || {
                    begun.count_down(1);
                    event.wait();
                    told.set();
                });
                begun.wait();
                event.set();
                drop(other);
                waits.join().expect("no panic");
            });
        });
    });
}

/// The payload of a panic waits when it is dropped.
#[test]
fn what_is_dropped_of_a_panic_waits() {
    struct Waits(Arc<Event>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.wait();
        }
    }
    let (pool, event) = (fibers(1).build().expect("fibers"), Arc::new(Event::new()));
    let panicked: Result<(), Box<dyn Any + Send>> = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            scope.spawn(|| {
                assert!(is_fiber());
                scope.spawn(|| panic!("the last"));
                scope.spawn({
                    let event = event.clone();
                    move || panic_any(Waits(event))
                });
                panic!("the first");
            });
            scope.spawn(|| {
                // Both other tasks are over, except for the drops of their values.
                (0..8).for_each(|_| yield_now());
                event.set();
            });
        });
    }));
    assert_eq!(panicked.expect_err("a panic").downcast_ref(), Some(&"the first"));
}
