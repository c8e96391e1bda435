//! Event loops by tiers: those whose work never ends are told of, too. Where real-time priorities
//! are refused, a test says so and is skipped.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use antiphon::coop::{Alone, BoostOptions, Booster, Options};
use antiphon::event_loop::{End, Event, Loop, Step, now_ns};
use antiphon_linux::schedule::{self, Policy};
use antiphon_platform::ThreadId;

const MS: u64 = 1_000_000;

fn policy() -> Policy {
    schedule::class(ThreadId(0)).expect("the kernel says so").policy
}

/// Runs until the calling thread is of that policy; it is given 20 s.
fn run_until(wanted: Policy) {
    let until_ns = now_ns() + Duration::from_secs(20).as_nanos() as u64;
    while policy() != wanted {
        assert!(now_ns() < until_ns, "it is not {wanted:?}");
        std::hint::spin_loop();
    }
}

#[test]
fn a_loop_that_always_has_work_is_raised_when_its_timer_is_overdue() {
    // A slack that does not run out in this test.
    let options = Options { slack_ns: 10_000 * MS, ..Options::default() };
    let booster = Booster::start(BoostOptions { options, ..BoostOptions::default() });
    let booster = match booster {
        Ok(booster) => booster,
        Err(refused) => return println!("skipped: {refused}"),
    };
    let mut events = Loop::new().expect("files");
    events.cooperate_by(Box::new(booster.boost(Alone)));
    let timers = Rc::new(Cell::new(0));
    let called = timers.clone();
    events.submit(Event::timer_in_steps(now_ns() + MS, move |context| {
        called.set(called.get() + 1);
        // It is overdue, and the helper was told.
        run_until(Policy::Fifo);
        if called.get() == 5 {
            context.stop();
        }
        Step::At(now_ns() + 5 * MS)
    }));
    // It goes by no budget.
    events.submit(Event::best_effort_in_steps(0, move |_| {
        run_until(Policy::Fifo);
        Step::More(0)
    }));
    assert_eq!(events.run(), End::Stopped);
    assert_eq!(timers.get(), 5);
    assert!(booster.stats().counts.raises >= 1, "{:?}", booster.stats().counts);
    drop(events);
    assert_eq!(policy(), Policy::Other);
}
