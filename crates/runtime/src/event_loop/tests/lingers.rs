//! Callbacks that may not be dropped before they were called.

use alloc::rc::Rc;
use core::cell::Cell;

use super::super::{Callback, Due, End, Event, Step};
use super::{Context, Virtual, events};

/// May be dropped after this number of calls.
struct Lingers {
    calls: usize,
    dropped: Rc<Cell<Option<usize>>>,
}

impl Callback<Virtual> for Lingers {
    fn call(&mut self, _: &mut Context<'_, Virtual>) -> Step {
        self.calls -= 1;
        if self.calls == 0 { Step::Done } else { Step::More(1) }
    }

    fn cancel(&mut self) -> bool {
        self.calls == 0
    }
}

impl Drop for Lingers {
    fn drop(&mut self) {
        self.dropped.set(Some(self.calls));
    }
}

fn lingers(calls: usize, due: Due) -> (Event<Virtual, Lingers>, Rc<Cell<Option<usize>>>) {
    let dropped = Rc::default();
    (Event::new(due, Lingers { calls, dropped: Rc::clone(&dropped) }), dropped)
}

#[test]
fn who_may_not_be_dropped_when_it_is_cancelled_is_called_until_it_may() {
    let mut events = events();
    let (event, dropped) = lingers(3, Due::Release(5));
    let id = events.submit(event);
    assert!(events.cancel(id));
    assert_eq!((events.len(), dropped.get()), (1, None));
    assert_eq!(events.run(), End::Done);
    assert_eq!(dropped.get(), Some(0));
    assert!(!events.cancel(id));
}

#[test]
fn one_that_cancels_itself_is_called_until_it_may_be_dropped() {
    let mut events = events();
    let (event, dropped) = lingers(3, Due::Importance(1));
    let id = events.submit(event);
    let cancels = move |context: &mut Context<'_, Virtual>| assert!(context.cancel(id));
    events.submit(Event::best_effort(0, cancels));
    assert_eq!(events.run(), End::Done);
    assert_eq!(dropped.get(), Some(0));
}

#[test]
fn a_loop_that_is_dropped_calls_those_and_no_others() {
    let (mut events, called) = (events(), Rc::new(Cell::new(false)));
    let (event, dropped) = lingers(2, Due::Importance(7));
    events.submit(event);
    let calls = called.clone();
    events.submit(Event::best_effort(0, move |_| calls.set(true)));
    drop(events);
    assert_eq!((dropped.get(), called.get()), (Some(0), false));
}
