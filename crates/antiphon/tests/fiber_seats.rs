//! Threads with fibers that lose their seats, end, or have no stacks left: their tasks run on other
//! threads, or later on these.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use antiphon::fiber::{STACK_BYTES, is_fiber, yield_now};
use antiphon::pool::{Builder, Pool, blocking, join};
use antiphon::{Event, Latch};

fn fibers(threads: usize, stack_bytes: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(stack_bytes) }
}

/// The fibers block one after the other, and then wait; there are two threads for all of them.
#[test]
fn a_thread_whose_fibers_wait_has_another_seat() {
    // With patience, because the other thread may be about to wait when one blocks.
    let pool = fibers(1, STACK_BYTES).spares(1).patience(Duration::from_millis(1));
    let pool = pool.build().expect("fibers");
    let (go_on, mut waiting) = (Arc::new(Latch::new(1)), Vec::new());
    for _ in 0..10 {
        let ((ask, asked), go_on) = (mpsc::channel(), go_on.clone());
        waiting.push(pool.spawn(move || {
            // This thread can run no other fiber meanwhile.
            let said = blocking(|| asked.recv());
            go_on.wait();
            said
        }));
        pool.spawn(move || ask.send(42)).join().expect("no panic").expect("it is awaited");
    }
    go_on.count_down(1);
    for fiber in waiting {
        assert_eq!(fiber.join().expect("no panic"), Ok(42));
    }
}

/// Only the other thread can run the tasks that the fiber forks then.
#[test]
fn the_threads_of_a_closed_pool_stay_for_fibers_that_wait() {
    for _ in 0..10 {
        let pool = fibers(2, STACK_BYTES).spares(0).build().expect("fibers");
        let (began, event) = (Arc::new(Latch::new(1)), Arc::new(Event::new()));
        let waits = {
            let (began, event) = (began.clone(), event.clone());
            pool.spawn(move || {
                began.count_down(1);
                event.wait();
                let ran = AtomicBool::new(false);
                let until_it_ran = || {
                    // Each time that another worker is seen resting, it gets the oldest fork.
                    while !ran.load(Relaxed) {
                        join(|| (), || ());
                    }
                };
                join(until_it_ran, || ran.store(true, Relaxed));
            })
        };
        began.wait();
        let drops = thread::spawn(move || drop(pool));
        // Time for the other thread to end, if it were to.
        thread::sleep(Duration::from_millis(5));
        event.set();
        waits.join().expect("no panic");
        drops.join().expect("no panic");
    }
}

/// Stacks are so large that there are only a few.
#[test]
fn where_stacks_are_few_tasks_wait_for_one() {
    const HUGE: usize = 1 << 44;
    const TASKS: usize = 100;
    let pool = fibers(2, HUGE).build().expect("one, at least");
    let (ended, on_threads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    pool.scope(|scope| {
        for _ in 0..TASKS {
            scope.spawn(|| {
                on_threads.fetch_add(usize::from(!is_fiber()), Relaxed);
                for _ in 0..10 {
                    yield_now();
                }
                antiphon::fiber::sleep(Duration::from_micros(100));
                ended.fetch_add(1, Relaxed);
            });
        }
    });
    assert_eq!(ended.load(Relaxed), TASKS);
    // Tasks run on the thread's own stack only if another thread had all stacks.
    assert!(on_threads.load(Relaxed) < TASKS);
}
