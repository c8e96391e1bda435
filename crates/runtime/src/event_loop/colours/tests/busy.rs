//! Loops with other work, one turn after the other, on one thread.

use super::*;
use crate::coop::Alone;

/// Two loops that have joined, have looked, and are idle.
fn idle_loops(colours: &[&Colours<Bed>]) -> Vec<EventLoop<Bed>> {
    let mut loops: Vec<_> =
        (0..2).map(|_| EventLoop::new(Bed::default(), Options::default())).collect();
    for (number, events) in loops.iter_mut().enumerate() {
        for all in colours {
            all.join(number, events);
            // After this, the loop's coloured events are due when an event with release time 9 is.
            let mut calls = 0;
            all.submit_in_steps(number as u64, 9, move |_| {
                calls += 1;
                (calls == 1).then_some(9)
            });
        }
        assert_eq!(events.turn(10).called, 2 * colours.len());
    }
    // One loop was rung for events that the other has called already.
    loops.iter_mut().for_each(|events| _ = events.turn(10));
    loops
}

/// Work that is more important than all other events, and never ends.
fn busy(events: &mut EventLoop<Bed>) {
    events.submit(Event::best_effort_in_steps(0, |_| Step::More(0)));
}

/// Submits an event, which records that it was called.
fn submit(colours: &Colours<Bed>, colour: u64, importance: u64) -> Arc<AtomicU64> {
    let called = Arc::new(AtomicU64::new(0));
    let counts = called.clone();
    colours.submit(colour, importance, move |_| _ = counts.fetch_add(1, Relaxed));
    called
}

#[test]
fn a_loop_of_several_colours_leaves_those_of_each_to_others() {
    let (one, other) = (Colours::<Bed>::new(2), Colours::<Bed>::new(2));
    let mut loops = idle_loops(&[&one, &other]);
    busy(&mut loops[0]);
    for colours in [&one, &other] {
        let called = submit(colours, 0, 9);
        let _ = loops[0].turn(10);
        let _ = loops[1].turn(10);
        assert_eq!(called.load(Relaxed), 1, "COLOUR-3");
    }
}

#[test]
fn a_loop_that_is_stopped_leaves_what_it_has_to_others() {
    let colours = Colours::<Bed>::new(2);
    let mut loops = idle_loops(&[&colours]);
    let (mut calls, called) = (0, Arc::new(AtomicU64::new(0)));
    let counts = called.clone();
    colours.submit_in_steps(0, 9, move |context| {
        calls += 1;
        if calls == 1 {
            context.stop();
            return Some(9);
        }
        counts.fetch_add(1, Relaxed);
        None
    });
    assert_eq!(loops[0].run(), End::Stopped);
    let _ = loops[1].turn(10);
    assert_eq!(called.load(Relaxed), 1, "COLOUR-3");
}

#[test]
fn what_a_busy_loop_has_does_not_starve_beside_a_colour_that_never_ends() {
    for (importance, is_gone) in [(5, false), (9, false), (9, true)] {
        let colours = Colours::<Bed>::new(2);
        let mut loops = idle_loops(&[&colours]);
        colours.submit_in_steps(1, 9, |_| Some(9));
        let _ = loops[1].turn(10);
        if is_gone {
            drop(loops.remove(0));
        } else {
            busy(&mut loops[0]);
        }
        let called = submit(&colours, 0, importance);
        for _ in 0..100 {
            loops.iter_mut().for_each(|events| _ = events.turn(10));
        }
        assert_eq!(called.load(Relaxed), 1, "{importance} {is_gone}");
    }
}

#[test]
fn what_is_important_goes_before_a_loops_own_work_whatever_went_before_it() {
    // The loop waits, or has an event that continues with the least importance.
    for has_another in [false, true] {
        let colours = Colours::<Bed>::new(2);
        let mut loops = idle_loops(&[&colours]);
        for (colour, events) in loops.iter_mut().enumerate() {
            if has_another {
                colours.submit_in_steps(colour as u64, 9, |_| Some(9));
                let _ = events.turn(1);
            }
            events.submit(Event::best_effort_in_steps(5, |_| Step::More(5)));
            let _ = events.turn(10);
        }
        let called = submit(&colours, 2, 1);
        assert_eq!(loops[0].turn(1).called, 1);
        assert_eq!(called.load(Relaxed), 1, "COLOUR-5: {has_another}");
    }
}

#[test]
fn what_a_busy_loop_is_told_of_one_that_is_idle_is_told_too() {
    let colours = Colours::<Bed>::new(2);
    let mut loops = idle_loops(&[&colours]);
    colours.submit_in_steps(0, 9, |_| Some(9));
    let _ = loops[0].turn(1);
    busy(&mut loops[0]);
    let called = submit(&colours, 2, 3);
    let _ = loops[1].turn(10);
    assert_eq!(called.load(Relaxed), 1, "COLOUR-3");
}

#[test]
fn what_a_loop_that_is_gone_leaves_goes_before_less_important_work_that_never_ends() {
    let colours = Colours::<Bed>::new(2);
    let mut loops = idle_loops(&[&colours]);
    colours.submit_in_steps(1, 9, |_| Some(9));
    let _ = loops[1].turn(1);
    busy(&mut loops[0]);
    loops[1].submit(Event::best_effort_in_steps(5, |_| Step::More(5)));
    let called = submit(&colours, 0, 3);
    loops.iter_mut().for_each(|events| _ = events.turn(10));
    assert_eq!(called.load(Relaxed), 0, "its loop has more important work");
    drop(loops.remove(0));
    assert_eq!(loops[0].turn(1).called, 1);
    assert_eq!(called.load(Relaxed), 1, "COLOUR-3");
}

#[test]
fn a_colour_stays_on_its_loop_though_that_asks_a_tier_that_knows_nobody() {
    let colours = Colours::<Bed>::new(2);
    let mut loops = idle_loops(&[&colours]);
    for events in &mut loops {
        events.cooperate_by(std::boxed::Box::new(Alone));
        // It asks the first time, because there may be other loops.
        events.submit(Event::best_effort(0, |_| ()));
        assert_eq!(events.turn(10).called, 1);
    }
    colours.submit_in_steps(0, 9, |_| {
        let end = Bed::now_ns() + 20_000;
        while Bed::now_ns() < end {}
        Some(9)
    });
    assert_eq!(loops[0].turn(100).called, 100);
    assert_eq!(loops[1].turn(100).called, 0, "nobody has woken it");
}
