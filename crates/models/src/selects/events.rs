//! Models of waiting for the first of several events, or latches.

use antiphon_check::{Check, Data};
use antiphon_runtime::select::Source;
use antiphon_sync::wait;

use super::choose;
use crate::program::Program;

type Event = wait::Event<Check>;
type Latch = wait::Latch<Check>;

/// Two events, one of which is set.
pub fn events() -> Program {
    Program::new(2, 2, |scope| {
        let (events, data) = (scope.share([Event::NEW; 2]), scope.share(Data::new(false)));
        scope.spawn(move || {
            assert_eq!(choose(&[&events[0], &events[1]], None), Some(1), "SELECT-1");
            assert!(data.get());
        });
        scope.spawn(move || {
            data.set(true);
            events[1].set();
        });
        scope.finally(move || assert!(events.iter().all(|event| !event.try_wait())));
    })
}

/// SELECT-2: both are set, and one is taken; the other is set afterwards, although it was handed
/// over. `turned`: they are tried in the other order.
pub fn leaving_set(turned: bool) -> Program {
    Program::new(2, 3, move |scope| {
        let (events, taken) = (scope.share([Event::NEW; 2]), scope.share(Data::new(2)));
        scope.spawn(move || {
            let order = if turned { [1, 0] } else { [0, 1] };
            let chosen = choose(&order.map(|at| &events[at] as &dyn Source<Check>), None);
            taken.set(order[chosen.expect("without a deadline")]);
        });
        scope.spawn(move || events.iter().for_each(Event::set));
        scope.finally(move || {
            let left = [0, 1].map(|at| events[at].try_wait());
            assert_eq!(left, [0, 1].map(|at| at != taken.get()));
        });
    })
}

/// Two latches, each of which another thread opens.
pub fn opened() -> Program {
    Program::new(3, 3, |scope| {
        let latches = scope.share([0, 1].map(|_| Latch::new(1)));
        let data = scope.share([const { Data::new(false) }; 2]);
        scope.spawn(move || {
            let chosen = choose(&[&latches[0], &latches[1]], None).expect("without a deadline");
            assert!(data[chosen].get());
        });
        scope.spawn_each(latches.iter().zip(data), move |(latch, data)| {
            data.set(true);
            latch.count_down(1);
        });
    })
}
