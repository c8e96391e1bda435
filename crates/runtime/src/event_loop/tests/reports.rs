//! The reports of a loop on its events.

use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use super::super::{End, Event, EventLoop, Name, Step, Trouble};
use super::{Virtual, events, pass};

#[test]
fn tardiness_and_run_times_are_counted_by_name() {
    let mut events = events();
    for release_ns in [100, 200] {
        events.submit(Event::timer(release_ns, |_| pass(10)).named("display"));
    }
    events.submit(Event::best_effort(0, |_| pass(130)).named("decode"));
    events.submit(Event::best_effort(1, |_| {}));
    assert_eq!(events.run(), End::Done);
    let [display, decode, other] = events.stats() else { panic!("three names") };
    assert_eq!((display.name, display.tardiness.count()), (Name::Given("display"), 2));
    assert_eq!((display.tardiness.max_ns(), display.tardiness.sum_ns()), (30, 30));
    assert_eq!((display.run.max_ns(), display.run.count()), (10, 2));
    assert_eq!((decode.tardiness.count(), decode.run.sum_ns()), (0, 130));
    assert!(format!("{}", other.name).contains("reports.rs:"), "{}", other.name);
    events.reset_stats();
    assert!(events.stats().iter().all(|stats| stats.run.count() == 0));
}

/// A loop, and the trouble that it has reported.
fn telling() -> (EventLoop<Virtual>, Rc<RefCell<Vec<Trouble>>>) {
    let (mut events, told) = (events(), Rc::<RefCell<Vec<_>>>::default());
    let to = told.clone();
    events.on_trouble(move |trouble| to.borrow_mut().push(trouble));
    (events, told)
}

#[test]
fn a_callback_that_takes_too_long_is_named() {
    let (mut events, told) = telling();
    events.submit(Event::best_effort(0, |_| pass(999_999)).named("short"));
    events.submit(Event::best_effort(1, |_| pass(1_000_001)).named("long"));
    assert_eq!(events.run(), End::Done);
    let long = Trouble::Long { name: Name::Given("long"), ran_ns: 1_000_001 };
    assert_eq!(*told.borrow(), [long]);
    assert_eq!(events.stats().iter().map(|stats| stats.long).collect::<Vec<_>>(), [0, 1]);
}

/// A timer of that period, which takes the given time in each call, until a given time.
fn periodic(events: &mut EventLoop<Virtual>, name: &'static str, period_ns: u64, takes_ns: u64) {
    events.submit(
        Event::timer_in_steps(0, move |context| {
            pass(takes_ns);
            let next_ns = context.release_ns().expect("a timer") + period_ns;
            if next_ns > 1_000_000_000 { Step::Done } else { Step::At(next_ns) }
        })
        .named(name),
    );
}

#[test]
fn timers_that_want_more_than_there_is_are_named() {
    let (mut events, told) = telling();
    periodic(&mut events, "audio", 1_000_000, 300_000);
    periodic(&mut events, "video", 1_000_000, 900_000);
    assert_eq!(events.run(), End::Done);
    let [Trouble::Behind { name, ran_ns, for_ns }] = told.borrow()[..] else { panic!("{told:?}") };
    assert_eq!(name, Name::Given("video"));
    assert!(for_ns > 200_000_000 && ran_ns * 10 > for_ns * 7, "{ran_ns} of {for_ns}");
}

#[test]
fn timers_that_have_enough_are_not() {
    let mut events = events();
    events.on_trouble(|trouble| panic!("{trouble:?}"));
    periodic(&mut events, "audio", 1_000_000, 300_000);
    periodic(&mut events, "video", 1_000_000, 600_000);
    assert_eq!(events.run(), End::Done);
}

#[test]
fn one_timer_that_takes_long_is_named_and_not_too_many_timers() {
    let (mut events, told) = telling();
    events.submit(Event::timer(0, |_| pass(250_000_000)).named("once"));
    events.submit(Event::timer(1_000_000_000, |_| {}).named("later"));
    assert_eq!(events.run(), End::Done);
    assert_eq!(*told.borrow(), [Trouble::Long { name: Name::Given("once"), ran_ns: 250_000_000 }]);
}

#[test]
fn what_a_loop_is_at_is_seen_by_others() {
    let (to_main, handles) = mpsc::channel();
    let (go_on, told) = mpsc::channel();
    let other = thread::spawn(move || {
        let mut events = events();
        to_main.send((events.lookout(), events.handle())).expect("a receiver");
        events.submit(
            Event::best_effort(0, move |_| told.recv().expect("that it may go on")).named("stuck"),
        );
        events.run()
    });
    let (lookout, keep) = handles.recv().expect("handles");
    let seen = loop {
        if let Some(seen) = lookout.sight() {
            break seen;
        }
        thread::yield_now();
    };
    assert_eq!(seen.name, Some(Name::Given("stuck")));
    go_on.send(()).expect("a receiver");
    keep.stop().expect("a loop");
    assert_eq!(other.join().expect("no panic"), End::Stopped);
    assert_eq!(lookout.sight(), None);
}
