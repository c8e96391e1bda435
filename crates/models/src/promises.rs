//! Models of promises: a promised value reaches the waiter once, with all that was done before; and
//! the waiter learns of a dropped promise. A lost wake is a deadlock.

use std::sync::Arc;

use antiphon_check::{Check, Data, probe};
use antiphon_runtime::task;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program};

type Promise<T> = task::Promise<Check, T>;

pub fn entries() -> Vec<Entry> {
    let spins = PLAIN.expiries(1).spurious(1);
    Subject("promise").models([
        model("fulfilled-1+1", promised(true), spins),
        model("dropped-1+1", promised(false), spins),
        model("passed-on-1+1+1", passed_on(), PLAIN.expiries(1)),
        model("left-1+1", leaving(), PLAIN).reaches(&["taken", "lost"]),
    ])
}

/// One thread provides a value or drops its promise; another waits.
fn promised(fulfils: bool) -> Program {
    Program::new(2, 2, move |scope| {
        let done = scope.share(Data::new(0));
        let (promise, handle) = Promise::new();
        scope.spawn(move || {
            done.set(1);
            if fulfils { promise.fulfil(7) } else { drop(promise) }
        });
        scope.spawn(move || {
            assert_eq!(handle.take(), fulfils.then_some(7));
            assert_eq!(done.get(), 1);
        });
    })
}

/// A waiter provides the value that a third thread waits for.
fn passed_on() -> Program {
    Program::new(3, 4, |scope| {
        let done = scope.share(Data::new(0));
        let (first, of_first) = Promise::new();
        let (second, of_second) = Promise::new();
        scope.spawn(move || {
            done.set(1);
            first.fulfil(3);
        });
        scope.spawn(move || second.fulfil(of_first.take().map(|it: u32| it + 4)));
        scope.spawn(move || {
            assert_eq!(of_second.take(), Some(Some(7)));
            assert_eq!(done.get(), 1);
        });
    })
}

/// Records that it was dropped; each thread that drops it sees that.
struct Dropped(Arc<Anywhere<Data<bool>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        assert!(!self.0.0.get(), "dropped twice");
        self.0.0.set(true);
    }
}

/// The handle is dropped, or takes the value if it is there: the value is dropped once, by a thread
/// that sees it. Must reach `taken` and `lost`.
fn leaving() -> Program {
    Program::new(2, 2, |scope| {
        let dropped = Arc::new(Anywhere(Data::new(false)));
        let value = Dropped(dropped.clone());
        let (promise, handle) = Promise::new();
        scope.spawn(move || promise.fulfil(value));
        scope.spawn(move || {
            if handle.is_done() {
                probe("taken");
                assert!(handle.take().is_some());
            } else {
                probe("lost");
            }
        });
        scope.finally(move || assert!(dropped.0.get(), "never dropped"));
    })
}
