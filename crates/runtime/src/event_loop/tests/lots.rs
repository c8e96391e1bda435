//! Random submissions and cancellations: LOOP-1, LOOP-2, and that all events are called in the end.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use proptest::prelude::*;

use super::super::{End, Event, EventId, EventLoop};
use super::{NOW_NS, Virtual, events, pass};

/// The actions on a loop, each in a separate callback, and how long that takes.
#[derive(Clone, Copy, Debug)]
enum Act {
    Timer(u64),
    Work(u64),
    Cancel(usize),
}

/// An event that was called: its release, or its importance; and the number of events before it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Called {
    Timer { release_ns: u64, at_ns: u64, number: usize },
    Work { importance: u64, at_ns: u64, number: usize },
}

type Seen = Rc<RefCell<Vec<Called>>>;

fn submit(events: &mut EventLoop<Virtual>, act: Act, number: usize, seen: &Seen) -> EventId {
    let seen = seen.clone();
    match act {
        Act::Timer(release_ns) => events.submit(Event::timer(release_ns, move |context| {
            let at_ns = context.now_ns();
            seen.borrow_mut().push(Called::Timer { release_ns, at_ns, number });
            pass(7);
        })),
        Act::Work(importance) => events.submit(Event::best_effort(importance, move |context| {
            let at_ns = context.now_ns();
            seen.borrow_mut().push(Called::Work { importance, at_ns, number });
            pass(13);
        })),
        Act::Cancel(_) => unreachable!("it is no event"),
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..300_u64).prop_map(Act::Timer),
        (0..20_u64).prop_map(Act::Work),
        any::<prop::sample::Index>().prop_map(|index| Act::Cancel(index.index(40))),
    ];
    prop::collection::vec(act, 0..40)
}

/// Checks that no event was there that should have been called before.
fn check_order(all: &[Called]) {
    for (at, called) in all.iter().enumerate() {
        for later in &all[at + 1..] {
            match (called, later) {
                (
                    Called::Timer { release_ns, number, .. },
                    Called::Timer { release_ns: other, number: after, .. },
                ) => assert!((release_ns, number) < (other, after)),
                (
                    Called::Work { importance, number, .. },
                    Called::Work { importance: other, number: after, .. },
                ) => assert!((importance, number) < (other, after)),
                (Called::Work { at_ns, .. }, Called::Timer { release_ns, .. }) => {
                    assert!(release_ns > at_ns, "work before a timer that was due");
                }
                (Called::Timer { release_ns, at_ns, .. }, Called::Work { .. }) => {
                    assert!(release_ns <= at_ns, "a timer before its time");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn timers_are_first_and_in_order_and_none_is_dropped(acts in acts()) {
        let (mut events, seen) = (events(), Seen::default());
        let mut there = Vec::new();
        for (number, act) in acts.iter().enumerate() {
            match *act {
                Act::Cancel(which) if which < there.len() => {
                    let (id, _) = there.remove(which);
                    prop_assert!(events.cancel(id));
                }
                Act::Cancel(_) => {}
                act => there.push((submit(&mut events, act, number, &seen), number)),
            }
        }
        prop_assert_eq!(events.len(), there.len());
        prop_assert_eq!(events.run(), End::Done);
        prop_assert!(NOW_NS.get() < 300 + 40 * 13);
        check_order(&seen.borrow());
        let number = |called: &Called| match *called {
            Called::Timer { number, .. } | Called::Work { number, .. } => number,
        };
        let mut called: Vec<_> = seen.borrow().iter().map(number).collect();
        called.sort_unstable();
        prop_assert_eq!(called, there.iter().map(|(_, number)| *number).collect::<Vec<_>>());
    }
}
