//! Tests of how fibers of a loop end other than by returning: by panics, and with their loop.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use antiphon::{Latch, Mutex};
use antiphon_coop::event_loop::{End, Event, Fiber, Fibers, Loop, now_ns};

const MS: u64 = 1_000_000;

fn fibers() -> Fibers {
    // SAFETY: no fiber waits while it initialises a thread-local.
    unsafe { Fibers::new(STACK_BYTES) }.expect("stacks")
}

/// The numbers of values that were dropped.
type Dropped = Rc<RefCell<Vec<u32>>>;

struct Drops(Dropped, u32);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.borrow_mut().push(self.1);
    }
}

#[test]
fn a_panic_comes_out_of_run_and_the_others_go_on() {
    let (mut events, fibers, dropped) = (Loop::new().expect("files"), fibers(), Dropped::default());
    let drops = Drops(dropped.clone(), 1);
    events.submit(fibers.event(0, move |fiber| {
        let _drops = drops;
        fiber.more(1);
        panic!("on purpose");
    }));
    let drops = Drops(dropped.clone(), 2);
    events.submit(fibers.event(0, move |fiber| {
        let _drops = drops;
        fiber.more(2);
        fiber.sleep_until(now_ns() + MS);
    }));
    let panic = catch_unwind(AssertUnwindSafe(|| events.run())).expect_err("it panics");
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert_eq!(*dropped.borrow(), [1]);
    assert_eq!(events.run(), End::Done);
    assert_eq!(*dropped.borrow(), [1, 2]);
}

#[test]
fn a_loop_that_is_dropped_unwinds_them() {
    let (mut events, fibers, dropped) = (Loop::new().expect("files"), fibers(), Dropped::default());
    for number in 0..3_u32 {
        let drops = Drops(dropped.clone(), number);
        events.submit(fibers.event(0, move |fiber| {
            let _drops = drops;
            match number {
                0 => fiber.more(9),
                1 => fiber.sleep_until(u64::MAX),
                // A fiber that catches the unwinding is unwound again.
                _ => while catch_unwind(AssertUnwindSafe(|| _ = fiber.wait())).is_ok() {},
            }
            fiber.more(9);
            unreachable!("the loop is gone");
        }));
    }
    // A fiber that has not begun.
    let drops = Drops(dropped.clone(), 3);
    events.submit(Event::best_effort(1, |context| context.stop()));
    events.submit(fibers.event(8, move |_| drop(drops)));
    assert_eq!(events.run(), End::Stopped);
    assert!(dropped.borrow().is_empty());
    drop(events);
    assert_eq!(*dropped.borrow(), [0, 1, 2, 3]);
}

#[test]
fn one_that_waits_is_let_go_of_when_that_is_over() {
    let (mut events, fibers, dropped) = (Loop::new().expect("files"), fibers(), Dropped::default());
    let lock = Arc::new(Mutex::new(0));
    let (waits, drops) = (lock.clone(), Drops(dropped.clone(), 1));
    let stops = lock.clone();
    // First in the agenda; waits for the second event.
    events.submit(fibers.event(1, move |fiber| {
        let _drops = drops;
        *waits.lock() += 1;
        fiber.more(0);
        unreachable!("the loop is gone");
    }));
    let drops = Drops(dropped.clone(), 2);
    events.submit(fibers.event(0, move |fiber| {
        let _drops = drops;
        let mut guard = stops.lock();
        *guard += 10;
        fiber.sleep_until(u64::MAX);
    }));
    events.submit(Event::best_effort(2, |context| context.stop()));
    assert_eq!(events.run(), End::Stopped);
    assert_eq!(lock.try_lock().map(|guard| *guard), None);
    drop(events);
    assert_eq!(*dropped.borrow(), [2, 1]);
    assert_eq!(lock.try_lock().map(|guard| *guard), Some(11));
}

#[test]
fn who_is_cancelled_in_a_wait_ends_after_it() {
    let (mut events, fibers, dropped) = (Loop::new().expect("files"), fibers(), Dropped::default());
    let latch = Arc::new(Latch::new(1));
    let (waits, drops) = (latch.clone(), Drops(dropped.clone(), 1));
    let waiting = events.submit(fibers.event(0, move |fiber| {
        let _drops = drops;
        waits.wait();
        fiber.more(0);
        unreachable!("it was cancelled");
    }));
    let drops = Drops(dropped.clone(), 2);
    let sleeping = events.submit(fibers.event(0, move |fiber| {
        let _drops = drops;
        fiber.sleep_until(u64::MAX);
    }));
    let seen = dropped.clone();
    events.submit(Event::best_effort(1, move |context| {
        assert!(context.cancel(waiting) && context.cancel(sleeping));
        assert_eq!(*seen.borrow(), [2]);
        latch.count_down(1);
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(*dropped.borrow(), [2, 1]);
}

#[test]
fn one_may_cancel_itself() {
    let (mut events, dropped) = (Loop::new().expect("files"), Dropped::default());
    let drops = Drops(dropped.clone(), 1);
    events.submit(fibers().event(0, move |fiber| {
        let _drops = drops;
        assert!(fiber.with(|context| context.cancel(context.id())));
        fiber.more(0);
        unreachable!("it was cancelled");
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(*dropped.borrow(), [1]);
}

#[test]
fn destructors_wait_as_the_thread_does() {
    struct Locks(Arc<Mutex<u32>>, mpsc::Sender<()>);

    impl Drop for Locks {
        fn drop(&mut self) {
            self.1.send(()).expect("who has it");
            *self.0.lock() += 1;
        }
    }

    let (mut events, fibers) = (Loop::new().expect("files"), fibers());
    let lock = Arc::new(Mutex::new(0));
    let (wants, wanted) = mpsc::channel();
    let (locked, is_locked) = mpsc::channel();
    let locks = Locks(lock.clone(), wants);
    let holds = lock.clone();
    let other = thread::spawn(move || {
        let mut guard = holds.lock();
        locked.send(()).expect("who waits for it");
        wanted.recv().expect("that it is wanted");
        thread::sleep(Duration::from_millis(5));
        *guard += 10;
    });
    is_locked.recv().expect("the other has it");
    events.submit(fibers.event(0, move |fiber| {
        let _locks = locks;
        fiber.more(0);
        panic!("on purpose");
    }));
    catch_unwind(AssertUnwindSafe(|| events.run())).expect_err("it panics");
    other.join().expect("no panic");
    assert_eq!(*lock.lock(), 11);
}

#[test]
fn loops_run_inside_fibers() {
    fn inner(fibers: &Fibers, dropped: &Dropped, number: u32) -> Loop {
        let mut inner = Loop::new().expect("files");
        let drops = Drops(dropped.clone(), number);
        inner.submit(fibers.event(0, move |fiber| {
            let _drops = drops;
            fiber.more(1);
            fiber.sleep_until(now_ns() + MS);
        }));
        inner
    }

    let (mut events, fibers, dropped) = (Loop::new().expect("files"), fibers(), Dropped::default());
    let (within, below) = (fibers.clone(), dropped.clone());
    let body = move |fiber: &Fiber| {
        assert_eq!(inner(&within, &below, 1).run(), End::Done);
        assert_eq!(*below.borrow(), [1]);
        fiber.more(0);
        // This fiber is unwound with the outer one, in the middle.
        let mut inner = inner(&within, &below, 2);
        assert_eq!(inner.turn(1).called, 1);
        fiber.more(5);
        unreachable!("the loop is gone");
    };
    events.submit(fibers.event(0, body));
    events.submit(Event::best_effort(3, |context| context.stop()));
    assert_eq!(events.run(), End::Stopped);
    drop(events);
    assert_eq!(*dropped.borrow(), [1, 2]);
}

#[test]
fn loops_and_pools_run_in_each_other() {
    // SAFETY: no fiber waits while it initialises a thread-local.
    let pool = unsafe { Pool::builder().threads(1).fibers(STACK_BYTES) }.build().expect("fibers");
    let pool = Arc::new(pool);
    let within = pool.clone();
    let sums = pool.spawn(move || {
        let (mut events, fibers, sum) = (Loop::new().expect("files"), fibers(), Rc::default());
        for number in 1..=3_u32 {
            let sum: Rc<Cell<u32>> = Rc::clone(&sum);
            let pool = within.clone();
            events.submit(fibers.event(0, move |fiber| {
                fiber.more(1);
                // The one thread of the pool is busy with this loop.
                drop(pool.spawn(|| ()));
                sum.set(sum.get() + number);
            }));
        }
        assert_eq!(events.run(), End::Done);
        sum.get()
    });
    assert_eq!(sums.join().expect("no panic"), 6);
    // A fiber of a loop waits for tasks.
    let mut events = Loop::new().expect("files");
    let (sum, fibers) = (Rc::new(Cell::new(0)), fibers());
    for number in 0..100 {
        let (pool, sum) = (pool.clone(), sum.clone());
        events.submit(fibers.event(0, move |_| {
            let doubled = pool.spawn(move || 2 * number).join().expect("no panic");
            sum.set(sum.get() + doubled);
        }));
    }
    assert_eq!(events.run(), End::Done);
    assert_eq!(sum.get(), 9900);
}

#[test]
fn what_is_of_no_size_is_refused() {
    // SAFETY: no fiber waits while it initialises a thread-local.
    let refused = unsafe { Fibers::new(100) }.expect_err("too small");
    assert!(refused.to_string().contains("ask for"), "{refused}");
}
