//! Futures on a loop.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use super::super::{End, Event, Name, Step};
use super::{Log, NOW_NS, events, pass};

#[test]
fn a_task_sleeps_and_is_on_time_as_timers_are() {
    let mut events = events();
    let awake = Rc::new(RefCell::new(Vec::new()));
    let at = awake.clone();
    let task = Event::task(9, move |task| async move {
        for beat in 1..=3 {
            task.sleep_until(beat * 1_000).await;
            at.borrow_mut().push(task.now_ns());
        }
    });
    events.submit(task.named("beat"));
    // There is always work that is more important than the task, but the task is a timer.
    events.submit(Event::best_effort_in_steps(0, |context| {
        pass(100);
        if context.now_ns() < 5_000 { Step::More(0) } else { Step::Done }
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(*awake.borrow(), [5_000; 3]);
    events.submit(Event::best_effort(0, |_| {}));
    assert_eq!(events.run(), End::Done);
}

#[test]
fn its_tardiness_is_counted() {
    let mut events = events();
    let task = Event::task(0, async |task| {
        task.sleep_until(1_000).await;
        pass(30);
        task.sleep_until(1_010).await;
        task.sleep_until(2_000).await;
    });
    events.submit(task.named("beat"));
    assert_eq!((events.run(), NOW_NS.get()), (End::Done, 2_000));
    let stats = &events.stats()[0];
    assert_eq!((stats.name, stats.tardiness.count()), (Name::Given("beat"), 2));
    assert_eq!(stats.tardiness.max_ns(), 0);
}

#[test]
fn a_task_that_is_woken_goes_on_and_others_go_between() {
    let (mut events, log) = (events(), Log::default());
    for what in ["one", "two"] {
        let log = log.clone();
        events.submit(Event::task(3, async move |task| {
            for _ in 0..2 {
                log.note(what);
                task.yield_now().await;
            }
        }));
    }
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["one", "two", "one", "two"]);
}

#[test]
fn importance_is_what_it_was_set_to() {
    let (mut events, log) = (events(), Log::default());
    for (what, importance) in [("late", 9), ("early", 1)] {
        let log = log.clone();
        events.submit(Event::task(0, async move |task| {
            task.set_importance(importance);
            task.yield_now().await;
            log.note(what);
        }));
    }
    assert_eq!((events.run(), log.taken()), (End::Done, ["early", "late"].to_vec()));
}

#[test]
fn a_task_that_sleeps_may_be_woken_before_and_sleeps_on() {
    let mut events = events();
    let waker = Rc::new(RefCell::new(None::<Waker>));
    let polls = Rc::new(Cell::new(0));
    let (left, counted) = (waker.clone(), polls.clone());
    events.submit(Event::task(0, async move |task| {
        let mut sleep = core::pin::pin!(task.sleep_until(1_000));
        poll_fn(|context| {
            counted.set(counted.get() + 1);
            *left.borrow_mut() = Some(context.waker().clone());
            sleep.as_mut().poll(context)
        })
        .await;
        assert_eq!(task.now_ns(), 1_000);
    }));
    let wakes = waker.clone();
    events.submit(Event::timer(400, move |_| wakes.borrow().clone().expect("a waker").wake()));
    assert_eq!((events.run(), polls.get()), (End::Done, 3));
    // A late waker wakes no task.
    let late = waker.take().expect("a waker");
    late.wake_by_ref();
    assert_eq!(events.run(), End::Done);
    drop(events);
    late.wake();
}

#[test]
fn a_cancelled_task_is_dropped_with_what_it_has() {
    let mut events = events();
    let held = Rc::new(());
    let has = held.clone();
    let id = events.submit(Event::task(0, async move |task| {
        task.sleep_until(1_000).await;
        unreachable!("{has:?}");
    }));
    events.submit(Event::timer(500, move |context| assert!(context.cancel(id))));
    assert_eq!(events.run(), End::Done);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_task_that_computes_lets_timers_go_first() {
    let (mut events, log) = (events(), Log::default());
    let work = log.clone();
    events.submit(Event::task(0, async move |task| {
        for _ in 0..4 {
            pass(100);
            work.note("work");
            task.checkpoint().await;
        }
    }));
    let timer = log.clone();
    events.submit(Event::timer(150, move |_| timer.note("timer")));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["work", "work", "timer", "work", "work"]);
}

#[test]
fn others_of_a_task_that_sleep_are_woken_by_their_own_wakers() {
    struct Count(core::sync::atomic::AtomicU32);

    impl alloc::task::Wake for Count {
        fn wake(self: alloc::sync::Arc<Self>) {
            self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        }
    }

    let mut events = events();
    events.submit(Event::task(0, async |task| {
        let count = alloc::sync::Arc::new(Count(Default::default()));
        let waker = Waker::from(count.clone());
        let mut early = core::pin::pin!(task.sleep_until(100));
        let mut context = core::task::Context::from_waker(&waker);
        assert_eq!(early.as_mut().poll(&mut context), Poll::Pending);
        task.sleep_until(300).await;
        assert_eq!(count.0.load(core::sync::atomic::Ordering::Relaxed), 1);
        assert_eq!(early.as_mut().poll(&mut context), Poll::Ready(()));
    }));
    assert_eq!((events.run(), NOW_NS.get()), (End::Done, 300));
}
