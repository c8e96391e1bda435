//! When a loop polls, and what it tells its tier.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::super::{End, Event, Step};
use super::{NOW_NS, events, pass};
use crate::coop::{Answer, Ask, Cooperate};

type Asked = Rc<RefCell<Vec<(u64, Ask)>>>;

/// A tier with scripted answers that records each ask and its time.
struct Scripted {
    asked: Asked,
    answers: Vec<Answer>,
}

impl Cooperate for Scripted {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.asked.borrow_mut().push((NOW_NS.get(), ask));
        wait(if ask.importance.is_some() { Some(0) } else { ask.release_ns });
        self.answers.pop().unwrap_or_default()
    }
}

/// Creates a tier with those answers, the last one first.
fn scripted(answers: &[Answer]) -> (Box<Scripted>, Asked) {
    let asked = Asked::default();
    (Box::new(Scripted { asked: asked.clone(), answers: answers.to_vec() }), asked)
}

/// Work of `steps` steps of `ns` nanoseconds.
fn work(
    importance: u64,
    steps: u32,
    ns: u64,
) -> Event<super::Virtual, impl super::super::Callback<super::Virtual>> {
    let mut left = steps;
    Event::best_effort_in_steps(importance, move |_| {
        pass(ns);
        left -= 1;
        if left == 0 { Step::Done } else { Step::More(importance) }
    })
}

#[test]
fn a_tier_is_asked_first_and_told_of_what_follows() {
    let mut events = events();
    let (tier, asked) = scripted(&[]);
    events.submit(work(7, 2, 100));
    events.submit(Event::timer(150, |_| {}));
    events.cooperate_by(tier);
    assert_eq!(events.run(), End::Done);
    let first = Ask { release_ns: Some(150), importance: Some(7) };
    assert_eq!(asked.borrow().first(), Some(&(0, first)));
}

#[test]
fn it_polls_when_its_slice_has_ended_and_not_after_each_event() {
    let mut events = events();
    let slice = |poll_at_ns| Answer { poll_at_ns: Some(poll_at_ns), ..Answer::default() };
    let (tier, asked) = scripted(&[Answer::default(), slice(650), slice(310)]);
    events.cooperate_by(tier);
    // The first answer comes with the first sleep.
    events.submit(Event::timer(10, |context| {
        context.submit(work(7, 10, 100));
        assert_eq!(context.until_ns(), 310);
    }));
    assert_eq!(events.run(), End::Done);
    let asked: Vec<_> = asked.borrow().iter().map(|(at, ask)| (*at, ask.importance)).collect();
    assert_eq!(asked, [(0, None), (310, Some(7)), (710, Some(7))]);
}

#[test]
fn it_polls_when_others_are_due_and_tells_its_next_release() {
    let mut events = events();
    let answer = Answer { release_ns: Some(350), ..Answer::default() };
    let (tier, asked) = scripted(&[Answer { release_ns: Some(100), ..answer }, answer]);
    events.cooperate_by(tier);
    events.submit(Event::timer(10, |context| {
        context.submit(work(7, 10, 100));
        context.submit(Event::timer(5_000, |_| {}));
        assert_eq!(context.until_ns(), 350, "the budget ends when anybody is due");
    }));
    assert_eq!(events.run(), End::Done);
    let first = (0, Ask { release_ns: Some(10), importance: None });
    let second = (410, Ask { release_ns: Some(5_000), importance: Some(7) });
    // Events that were due before that poll are passed over for `poll_ns`, which is longer than the
    // rest.
    let last = (1_010, Ask { release_ns: Some(5_000), importance: None });
    assert_eq!(*asked.borrow(), [first, second, last]);
}

#[test]
fn it_polls_when_others_have_something_more_important() {
    let mut events = events();
    let theirs = Answer { importance: Some(5), ..Answer::default() };
    let (tier, asked) = scripted(&[theirs, theirs]);
    events.cooperate_by(tier);
    events.submit(Event::timer(10, |context| {
        context.submit(work(4, 2, 100_000));
        context.submit(work(6, 2, 100_000));
    }));
    assert_eq!(events.run(), End::Done);
    let asked: Vec<_> = asked.borrow().iter().map(|(at, ask)| (*at, ask.importance)).collect();
    assert_eq!(asked, [(0, None), (200_010, Some(6)), (300_010, Some(6))]);
}

#[test]
fn a_busy_loop_asks_who_tells_nothing_now_and_then_and_after_its_timers() {
    let mut events = events();
    let (tier, asked) = scripted(&[]);
    events.cooperate_by(tier);
    events.submit(work(7, 10, 40_000));
    events.submit(Event::timer(110_000, |_| pass(1_000)));
    assert_eq!(events.run(), End::Done);
    let asked: Vec<_> = asked.borrow().iter().map(|(at, ask)| (*at, ask.release_ns)).collect();
    // At once, because the tier is new. Three steps, and the events due then; three steps each from
    // there.
    let later = [(121_000, None), (241_000, None), (361_000, None)];
    assert_eq!(asked.split_first(), Some((&(0, Some(110_000)), &later[..])));
    // A loop that was not set to share is not asked.
    let mut alone = super::events();
    alone.submit(work(7, 10, 40_000));
    assert_eq!(alone.run(), End::Done);
}

#[test]
fn timers_without_end_keep_others_waiting_for_no_longer_than_a_callback_may_take() {
    let mut events = events();
    let (tier, asked) = scripted(&[]);
    events.cooperate_by(tier);
    for number in 0..100 {
        events.submit(Event::timer(number * 20_000, |_| pass(50_000)));
    }
    assert_eq!(events.run(), End::Done);
    let asked: Vec<_> = asked.borrow().iter().map(|(at, _)| *at).collect();
    // The tier is new: after the events that were due; those that were due then are first, by then
    // most are.
    assert_eq!(asked, [50_000, 1_050_000, 2_650_000]);
}

#[test]
fn a_flood_of_timers_lets_others_run_when_the_slice_has_ended() {
    let mut events = events();
    let slice = Answer { poll_at_ns: Some(0), ..Answer::default() };
    let (tier, asked) = scripted(&[slice; 8]);
    events.cooperate_by(tier);
    for release_ns in [10, 10, 10, 60, 70] {
        events.submit(Event::timer(release_ns, |_| pass(25)));
    }
    assert_eq!(events.run(), End::Done);
    // The events that were due then run together; an event that becomes due meanwhile waits for a
    // poll.
    let asked: Vec<_> = asked.borrow().iter().map(|(at, ask)| (*at, ask.release_ns)).collect();
    assert_eq!(asked, [(0, Some(10)), (85, Some(60))]);
}

#[test]
fn the_earliest_release_is_published_whenever_it_is_another_one() {
    let mut events = events();
    let published = Rc::new(RefCell::new(Vec::new()));
    let to = published.clone();
    events.submit(Event::timer(20, |_| {}));
    events.publish_to(move |release_ns| to.borrow_mut().push(release_ns));
    let seen = published.clone();
    events.submit(Event::timer(10, move |context| {
        // The timer is overdue until the callback ends.
        assert_eq!(seen.borrow().last(), Some(&Some(10)));
        context.submit(Event::timer(30, |_| {}));
    }));
    let third = events.submit(Event::timer(5, |_| {}));
    assert!(events.cancel(third));
    assert_eq!(events.run(), End::Done);
    let wanted = [Some(20), Some(10), Some(5), Some(10), Some(20), Some(30), None];
    assert_eq!(*published.borrow(), wanted);
}

#[test]
fn a_timer_that_is_always_late_keeps_others_waiting_no_longer_than_the_slice() {
    let mut events = events();
    let slice = Answer { poll_at_ns: Some(0), ..Answer::default() };
    let (tier, asked) = scripted(&[slice; 16]);
    events.cooperate_by(tier);
    // The timer needs twice the time that there is, and so becomes later and later.
    let mut left = 12;
    events.submit(Event::timer_in_steps(10, move |context| {
        pass(20);
        left -= 1;
        let next_ns = context.release_ns().map_or(0, |at| at + 10);
        if left == 0 { Step::Done } else { Step::At(next_ns) }
    }));
    assert_eq!(events.run(), End::Done);
    // Once between two polls: an event that was added after that gains nothing by being late.
    let asked: Vec<_> = asked.borrow().iter().map(|(at, ask)| (*at, ask.release_ns)).collect();
    let at_ns = |n| if n == 0 { 0 } else { 10 + n * 20 };
    let wanted: Vec<_> = (0..12).map(|n| (at_ns(n), Some(10 + n * 10))).collect();
    assert_eq!(asked, wanted);
}

#[test]
fn a_loop_inside_another_polls_as_often_however_short_its_turns_are() {
    let mut events = events();
    let slice = Answer { poll_at_ns: Some(0), ..Answer::default() };
    let (tier, asked) = scripted(&[slice; 16]);
    events.cooperate_by(tier);
    events.submit(Event::timer_in_steps(0, |context| {
        pass(20);
        Step::At(context.release_ns().map_or(0, |at| at + 10))
    }));
    for _ in 0..10 {
        assert_eq!(events.turn(1).called, 1);
    }
    assert_eq!(asked.borrow().len(), 10);
}

/// A tier whose turns end at times that it moves while the loop runs.
struct Moving(Rc<RefCell<(u64, Vec<u64>)>>);

impl Cooperate for Moving {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.0.borrow_mut().1.push(NOW_NS.get());
        wait(if ask.importance.is_some() { Some(0) } else { ask.release_ns });
        self.present().unwrap_or_default()
    }

    fn present(&self) -> Option<Answer> {
        Some(Answer { poll_at_ns: Some(self.0.borrow().0), ..Answer::default() })
    }
}

#[test]
fn it_polls_at_the_end_of_the_turn_that_it_has_and_of_the_one_in_which_it_has_polled() {
    let mut events = events();
    let seen = Rc::new(RefCell::new((1_000, Vec::new())));
    events.cooperate_by(Box::new(Moving(seen.clone())));
    let (turn, mut step) = (seen.clone(), 0);
    events.submit(Event::best_effort_in_steps(7, move |context| {
        step += 1;
        match step {
            // A new turn, which ends sooner; and one that ends later.
            2 => {
                turn.borrow_mut().0 = 250;
                assert_eq!(context.until_ns(), 250);
            }
            3 => turn.borrow_mut().0 = 900,
            _ => {}
        }
        pass(100);
        if step == 10 { Step::Done } else { Step::More(7) }
    }));
    assert_eq!(events.run(), End::Done);
    assert_eq!(seen.borrow().1, [0, 900]);
}
