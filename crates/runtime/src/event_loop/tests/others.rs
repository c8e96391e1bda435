//! Messages to a loop from other threads: sources, handles.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;

use super::super::{End, Event, EventLoop, Gone, Options, Step};
use super::{Log, NOW_NS, Virtual, events, pass};

#[test]
fn a_source_wakes_its_event_once_for_all_that_it_has_said() {
    let (mut events, log) = (events(), Log::default());
    *events.waits().script.borrow_mut() = [(10, 1, 1), (10, 1, 4), (30, 1, 2)].to_vec();
    let said = log.clone();
    let source = Event::when_woken(0, move |context| match context.ready() {
        5 => {
            said.note("both");
            Step::Asleep
        }
        2 => Step::Done,
        other => unreachable!("{other}"),
    });
    events.watch(1, source).expect("a source");
    assert_eq!(events.watch(u8::MAX, Event::when_woken(0, |_| Step::Done)), Err("no such source"));
    assert_eq!(events.len(), 1);
    assert_eq!((events.run(), log.taken()), (End::Done, ["both"].to_vec()));
    assert!(events.waits().sources.borrow().is_empty());
}

#[test]
fn sources_are_looked_at_while_there_is_always_work() {
    let mut events = events();
    events.waits().script.borrow_mut().push((1_000_000, 1, 1));
    let said_ns = Rc::new(Cell::new(0));
    let said = said_ns.clone();
    let source = Event::when_woken(0, move |context| {
        said.set(context.now_ns());
        context.stop();
        Step::Done
    });
    events.watch(1, source).expect("a source");
    events.submit(Event::best_effort_in_steps(9, |context| {
        while !context.is_over() {
            pass(10_000);
        }
        Step::More(9)
    }));
    assert_eq!(events.run(), End::Stopped);
    assert!((1_000_000..1_300_000).contains(&said_ns.get()), "{}", said_ns.get());
}

#[test]
fn a_source_may_have_a_timeout() {
    let (mut events, log) = (events(), Log::default());
    events.waits().script.borrow_mut().push((30, 1, 1));
    let said = log.clone();
    let mut timeouts = 0;
    let source = Event::timer_in_steps(20, move |context| {
        if context.ready() == 1 {
            assert_eq!((context.release_ns(), timeouts), (None, 1));
            said.note("said");
            return Step::Done;
        }
        said.note("timeout");
        timeouts += 1;
        Step::At(40)
    });
    events.watch(1, source).expect("a source");
    assert_eq!((events.run(), log.taken()), (End::Done, ["timeout", "said"].to_vec()));
}

#[test]
fn a_loop_waits_for_those_who_have_a_handle() {
    let (to_main, handles) = mpsc::channel();
    let others = thread::spawn(move || {
        let mut events: EventLoop<Virtual> = events();
        to_main.send((events.handle(), events.handle())).expect("a receiver");
        let count = Rc::new(Cell::new(0));
        (events.run(), count.get())
    });
    let (one, other) = handles.recv().expect("handles");
    let (done, told) = mpsc::channel();
    drop(other);
    for _ in 0..3 {
        let done = done.clone();
        // The loop may sleep by now, or not: either way it is notified.
        one.submit(Event::best_effort(0, move |_| done.send(()).expect("a receiver")))
            .expect("a loop");
        told.recv().expect("that it was called");
    }
    let never = one.submit(Event::timer(u64::MAX, |_| unreachable!("it is cancelled")));
    one.cancel(never.expect("a loop")).expect("a loop");
    drop(one);
    assert_eq!(others.join().expect("no panic"), (End::Done, 0));
}

#[test]
fn who_comes_after_the_loop_has_gone_is_told_so() {
    let events = events();
    let handle = events.handle();
    let id = handle.submit(Event::best_effort(0, |_| {})).expect("a loop");
    drop(events);
    assert_eq!(handle.submit(Event::best_effort(0, |_| {})), Err(Gone));
    assert_eq!(
        (handle.cancel(id), handle.wake(id), handle.stop()),
        (Err(Gone), Err(Gone), Err(Gone))
    );
}

#[test]
fn a_handle_may_wake_what_sleeps_and_stop_the_loop() {
    let (mut events, log) = (events(), Log::default());
    let handle = events.handle();
    let woken = log.clone();
    let id = events.submit(Event::when_woken(0, move |_| {
        woken.note("woken");
        Step::Asleep
    }));
    handle.wake(id).expect("a loop");
    // An event that is queued already is called once.
    handle.wake(id).expect("a loop");
    let stops = handle.clone();
    events.submit(Event::best_effort(1, move |_| stops.stop().expect("a loop")));
    assert_eq!((events.run(), log.taken()), (End::Stopped, ["woken"].to_vec()));
    assert_eq!(events.len(), 1);
}

#[test]
fn what_is_on_its_way_may_be_woken() {
    let mut events = events();
    let (handle, woken) = (events.handle(), Arc::new(AtomicBool::new(false)));
    let wakes = woken.clone();
    let waits = Event::when_woken(0, move |_| {
        wakes.store(true, Relaxed);
        Step::Done
    });
    events.submit(Event::best_effort(0, move |context| {
        let id = handle.submit(waits).expect("a loop");
        assert!(context.wake(id));
    }));
    assert_eq!((events.run(), woken.load(Relaxed)), (End::Done, true));
}

#[test]
fn a_callback_has_some_time_whatever_the_options_are() {
    NOW_NS.set(0);
    let options = Options { look_ns: 0, long_ns: 0, ..Options::default() };
    let mut events = EventLoop::new(Virtual::default(), options);
    events.watch(1, Event::when_woken(0, |_| Step::Done)).expect("a source");
    events.submit(Event::best_effort(1, |context| {
        assert!(!context.is_over());
        pass(1_000);
        assert!(context.is_over());
        context.stop();
    }));
    assert_eq!(events.run(), End::Stopped);
}
