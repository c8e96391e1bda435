//! The order and time of calls: LOOP-1, LOOP-2, steps, cancelling and stopping.

use alloc::rc::Rc;
use core::cell::Cell;

use super::super::{End, Event, Step};
use super::{Log, events, pass};

#[test]
fn timers_go_first_then_the_least_user_virtual_time_then_who_came_first() {
    let (mut events, log) = (events(), Log::default());
    let note = |what| log.noting(what);
    events.submit(Event::best_effort(7, note("seven")));
    events.submit(Event::best_effort(3, note("three")));
    events.submit(Event::best_effort(3, note("three again")));
    events.submit(Event::timer(20, note("at 20")));
    events.submit(Event::timer(10, note("at 10")));
    events.submit(Event::timer(10, note("at 10 again")));
    pass(15);
    assert_eq!(events.run(), End::Done);
    let due = ["at 10", "at 10 again"];
    let work = ["three", "three again", "seven"];
    assert_eq!(log.taken(), [&due[..], &work[..], &["at 20"]].concat());
    assert_eq!(super::NOW_NS.get(), 20);
}

#[test]
fn a_timer_that_falls_due_goes_before_the_next_step_and_steps_are_told_until_when() {
    let (mut events, log) = (events(), Log::default());
    let timer = log.clone();
    events.submit(Event::timer(250, move |context| {
        assert_eq!((context.release_ns(), context.tardiness_ns()), (Some(250), Some(50)));
        timer.note("timer");
    }));
    let (mut left, work) = (5, log.clone());
    events.submit(Event::best_effort_in_steps(0, move |context| {
        // If nothing is due: half of the limit of a callback.
        let until_ns = if left > 2 { 250 } else { context.now_ns() + 500_000 };
        assert_eq!(context.until_ns(), until_ns);
        assert_eq!(context.left_ns(), until_ns - context.now_ns());
        pass(100);
        assert_eq!(context.is_over(), left == 3);
        work.note("step");
        left -= 1;
        if left == 0 { Step::Done } else { Step::More(0) }
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["step", "step", "step", "timer", "step", "step"]);
}

#[test]
fn what_is_submitted_meanwhile_ends_a_step() {
    let (mut events, log) = (events(), Log::default());
    let mut submitted = false;
    let (other, own) = (log.clone(), log.clone());
    events.submit(Event::best_effort_in_steps(5, move |context| {
        assert!(!context.is_over());
        if submitted {
            own.note("the rest");
            return Step::Done;
        }
        submitted = true;
        let first = other.clone();
        // Through a handle, like another thread.
        let event = Event::best_effort(4, |_| {});
        context.handle().submit(event).expect("a loop");
        assert!(context.is_over());
        context.submit(Event::timer(0, move |_| first.note("timer")));
        Step::More(5)
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["timer", "the rest"]);
}

#[test]
fn what_is_periodic_counts_from_its_release() {
    let mut events = events();
    let called = Rc::new(Cell::new(0));
    let count = called.clone();
    events.submit(Event::timer_in_steps(10, move |context| {
        count.set(count.get() + 1);
        assert_eq!(context.release_ns(), Some(10 * count.get()));
        // The timer is late for the next release: none is left out.
        pass(if count.get() == 3 { 25 } else { 0 });
        if count.get() < 8 { Step::At(10 * (count.get() + 1)) } else { Step::Done }
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!((called.get(), super::NOW_NS.get()), (8, 80));
}

#[test]
fn what_is_cancelled_is_not_called() {
    let (mut events, log) = (events(), Log::default());
    let note = |what| log.noting(what);
    let one = events.submit(Event::timer(10, note("one")));
    let two = events.submit(Event::best_effort(1, note("two")));
    assert!(events.cancel(one) && !events.cancel(one));
    events.submit(Event::best_effort(0, move |context| {
        assert!(context.cancel(two) && !context.cancel(two));
    }));
    // An event that cancels itself is over with that call.
    let steps = log.clone();
    events.submit(Event::timer_in_steps(5, move |context| {
        steps.note("once");
        let own = context.id();
        assert!(context.cancel(own) && !context.cancel(own));
        Step::At(6)
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["once"]);
    assert!(events.is_empty());
}

#[test]
fn a_loop_that_was_stopped_goes_on_where_it_was() {
    let (mut events, log) = (events(), Log::default());
    for what in ["one", "two"] {
        let log = log.clone();
        events.submit(Event::best_effort(0, move |context| {
            log.note(what);
            context.stop();
            assert!(context.is_over());
        }));
    }
    assert_eq!(events.run(), End::Stopped);
    assert_eq!((log.taken(), events.len()), (["one"].to_vec(), 1));
    events.stop();
    assert_eq!((events.run(), log.taken().len()), (End::Stopped, 0));
    assert_eq!(events.run(), End::Stopped);
    assert_eq!((events.run(), log.taken()), (End::Done, ["two"].to_vec()));
}

#[test]
fn a_turn_calls_so_many_and_does_not_wait() {
    let (mut events, log) = (events(), Log::default());
    for _ in 0..3 {
        let log = log.clone();
        events.submit(Event::best_effort(0, move |_| log.note("work")));
    }
    events.submit(Event::timer(100, |_| {}));
    let turn = events.turn(2);
    assert_eq!((turn.called, turn.next_ns, turn.end), (2, Some(0), None));
    let turn = events.turn(2);
    assert_eq!((turn.called, turn.next_ns, turn.end), (1, Some(100), None));
    assert_eq!((events.turn(2).called, super::NOW_NS.get()), (0, 0));
    pass(100);
    let turn = events.turn(2);
    assert_eq!((turn.called, turn.next_ns, turn.end), (1, None, Some(End::Done)));
}

#[test]
fn a_callback_that_panics_is_gone_and_the_rest_is_as_it_was() {
    let (mut events, log) = (events(), Log::default());
    let source = Event::when_woken(0, |_| panic!("on purpose"));
    let id = events.watch(3, source).expect("a source");
    assert!(events.wake(id));
    let rest = log.clone();
    events.submit(Event::timer(10, move |_| rest.note("timer")));
    let run = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| events.run()));
    assert!(run.is_err());
    assert_eq!((events.run(), log.taken()), (End::Done, ["timer"].to_vec()));
    assert!(events.waits().sources.borrow().is_empty());
}

#[test]
fn what_others_have_posted_is_there_though_something_dropped_before_panics() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let (mut events, log) = (events(), Log::default());
    let bomb = Bomb;
    let dropped = events.submit(Event::timer(u64::MAX, move |_| {
        let _bomb = &bomb;
    }));
    let handle = events.handle();
    let called = alloc::sync::Arc::new(core::sync::atomic::AtomicBool::new(false));
    let calls = called.clone();
    assert!(handle.cancel(dropped).is_ok());
    let event =
        Event::best_effort(0, move |_| calls.store(true, core::sync::atomic::Ordering::Relaxed));
    assert!(handle.submit(event).is_ok());
    events.submit(Event::best_effort(0, log.noting("own")));
    drop(handle);
    let run = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| events.run()));
    assert!(run.is_err());
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.taken(), ["own"]);
    assert!(called.load(core::sync::atomic::Ordering::Relaxed), "the post was lost");
}
