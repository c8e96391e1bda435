//! The parts of a run: time, timers, futures, scopes, and its boundary to the outside.

use std::future::{Future as _, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use antiphon::deterministic::{Pool, Runner, now, sleep, work};

const MS: Duration = Duration::from_millis(1);

fn run<T: 'static>(closure: impl FnOnce(Pool) -> T + 'static) -> T {
    Runner::new().run(1, closure).expect("nobody fails").returned
}

#[test]
fn time_is_virtual() {
    let day = Duration::from_secs(24 * 60 * 60);
    let run = Runner::new().limit(3 * day).run(1, move |pool| {
        let slept = pool.spawn_future(async move {
            sleep(day).await;
            now()
        });
        let slept = slept.join().expect("it does not panic");
        assert!((day..day + MS).contains(&slept), "{slept:?}");
        let worked = pool.spawn(move || {
            work(day);
            now()
        });
        assert!(worked.join().expect("it does not panic") >= slept + day);
    });
    assert!(run.expect("nobody fails").time >= 2 * day);
}

#[test]
fn sleepers_are_woken_in_the_order_of_time() {
    let woken = run(|pool| {
        let woken = Arc::new(Mutex::new(Vec::new()));
        // The sleepers wake one at a time: between two there is enough time for a poll.
        let sleepers: Vec<_> = [5, 1, 4, 2, 3]
            .map(|ms| {
                let woken = woken.clone();
                pool.spawn_future(async move {
                    sleep(ms * MS).await;
                    woken.lock().expect("no panic").push(ms);
                })
            })
            .into_iter()
            .collect();
        for sleeper in sleepers {
            sleeper.join().expect("it does not panic");
        }
        let woken = woken.lock().expect("no panic");
        woken.clone()
    });
    assert_eq!(woken, [1, 2, 3, 4, 5]);
}

#[test]
fn a_sleep_that_is_given_up_wakes_nobody() {
    let time = run(|pool| {
        let first = pool.spawn_future(async {
            let mut long = Box::pin(sleep(1_000 * MS));
            poll_fn(|context| {
                assert!(long.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(long);
            sleep(MS).await;
        });
        first.join().expect("it does not panic");
        now()
    });
    assert!(time < 2 * MS, "{time:?}");
}

/// The end of the closure drops sleeping tasks, as the drop of a pool does.
#[test]
fn who_sleeps_when_the_closure_has_returned_is_dropped() {
    struct Told(Arc<Mutex<Vec<&'static str>>>, &'static str);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.lock().expect("no panic").push(self.1);
        }
    }
    let told = Arc::new(Mutex::new(Vec::new()));
    let (sleeper, other) = (Told(told.clone(), "sleeper"), Told(told.clone(), "other"));
    let run = Runner::new().run(1, move |pool| {
        let begun = pool.spawn(|| ());
        pool.spawn_future(async move {
            begun.await.expect("it does not panic");
            sleep(1_000 * MS).await;
            drop(sleeper);
        });
        // Nothing can wake it.
        let lost = pool.spawn_future(async move {
            pending::<()>().await;
            drop(other);
        });
        assert!(lost.join().is_err());
        let task = pool.spawn(move || drop(pool.spawn(|| work(10 * MS))));
        drop(task);
    });
    let run = run.expect("nobody fails");
    // The tasks that were spawned were run.
    assert!((10 * MS..1_000 * MS).contains(&run.time), "{:?}", run.time);
    assert_eq!(*told.lock().expect("no panic"), ["other", "sleeper"]);
}

#[test]
fn a_worker_that_joins_runs_others_meanwhile() {
    let run = Runner::new().workers(1).run(1, |pool| {
        fn sum(pool: Pool, from: u64, to: u64) -> u64 {
            if to - from == 1 {
                return from;
            }
            let middle = from.midpoint(to);
            let right = pool.spawn(move || sum(pool, middle, to));
            sum(pool, from, middle) + right.join().expect("it does not panic")
        }
        pool.spawn(move || sum(pool, 0, 200)).join().expect("it does not panic")
    });
    assert_eq!(run.expect("nobody fails").returned, 199 * 200 / 2);
}

#[test]
fn a_scope_borrows_and_panics_with_its_tasks() {
    let told = run(|pool| {
        let mut squares = [0; 50];
        pool.scope(|scope| {
            for (number, square) in squares.iter_mut().enumerate() {
                scope.spawn(move || *square = number * number);
            }
        });
        assert_eq!(squares[7], 49);
        let scope = AssertUnwindSafe(|| pool.scope(|scope| scope.spawn(|| panic!("in a scope"))));
        catch_unwind(scope).expect_err("its task panics")
    });
    assert_eq!(told.downcast_ref(), Some(&"in a scope"));
}

#[test]
fn what_is_of_a_run_is_of_no_use_outside() {
    let kept = run(|pool| {
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let told = waker.clone();
        let waits = pool.spawn_future(poll_fn(move |context| {
            *told.lock().expect("no panic") = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        pool.spawn_future(sleep(MS)).join().expect("it does not panic");
        let waker = waker.lock().expect("no panic").take();
        let waker = waker.expect("it was polled");
        let foreign = waker.clone();
        // A thread of the operating system, outside the run.
        thread::scope(|scope| {
            assert!(scope.spawn(move || foreign.wake()).join().is_err());
            assert!(scope.spawn(move || pool.spawn(|| ())).join().is_err());
            assert!(scope.spawn(now).join().is_err());
        });
        (pool, waits, waker)
    });
    let (pool, waits, waker) = kept;
    assert!(catch_unwind(|| pool.threads()).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| waits.is_finished())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| waker.wake_by_ref())).is_err());
    // The value may also come from another run.
    let other = run(move |_| {
        let joined = catch_unwind(AssertUnwindSafe(|| waits.join().is_err()));
        (joined.is_err(), catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err())
    });
    assert_eq!(other, (true, true));
}

#[test]
fn a_run_inside_of_a_run_is_refused_and_the_outer_one_goes_on() {
    let inner = || Runner::new().run(1, |_| ());
    let refused = run(move |pool| {
        let refused = catch_unwind(AssertUnwindSafe(inner)).is_err();
        (refused, pool.spawn(now).join().is_ok())
    });
    assert_eq!(refused, (true, true));
}

/// This holds even if the closure returns while the timers wake the task.
#[test]
fn who_is_being_woken_when_the_closure_returns_is_run() {
    struct Slow(Waker);
    impl Wake for Slow {
        fn wake(self: Arc<Self>) {
            work(MS);
            self.0.wake_by_ref();
        }
    }
    let ran = Arc::new(AtomicU32::new(0));
    let runs = ran.clone();
    run(move |pool| {
        drop(pool.spawn_future(async move {
            let mut sleep = pin!(sleep(MS));
            poll_fn(|context| {
                let slow = Waker::from(Arc::new(Slow(context.waker().clone())));
                sleep.as_mut().poll(&mut Context::from_waker(&slow))
            })
            .await;
            runs.fetch_add(1, Relaxed);
        }));
        work(3 * MS / 2);
    });
    assert_eq!(ran.load(Relaxed), 1);
}

#[test]
fn a_sleep_elsewhere_says_where_it_is_at_home() {
    let mut context = Context::from_waker(Waker::noop());
    let mut poll = || pin!(sleep(MS)).poll(&mut context);
    let told = catch_unwind(AssertUnwindSafe(&mut poll)).expect_err("it is outside");
    let told = told.downcast_ref::<String>().expect("text");
    assert!(told.contains("await it in a task of a run"), "{told}");
}
