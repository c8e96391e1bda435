//! The tree of tokens: who cancels one misses nobody, though children come and go meanwhile. A lost
//! wake is a deadlock.

use antiphon_check::{Check, Data};
use antiphon_runtime::cancel;
use antiphon_runtime::channel;
use antiphon_runtime::select::{Lot, Receives, select_as};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::Sleepy;
use crate::program::Program;

type Token = cancel::Token<Check>;
type Channel = channel::Channel<Check, usize>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    vec![
        Entry::new("cancel/child-1+1", new_child(), PLAIN).by_lot(4_000),
        Entry::new("cancel/grandchild-1+1", grandchild(), PLAIN).by_lot(4_000),
        Entry::new("cancel/waits-2+1", waits(), PLAIN.spurious(1)).by_lot(4_000),
        Entry::new("cancel/twice-1+2", twice(), PLAIN).by_lot(4_000),
        Entry::new("cancel/receives-1+1+1", receives(), PLAIN).by_lot(4_000),
        Entry::new("cancel/gone-1+1", gone(), PLAIN).by_lot(4_000),
    ]
}

/// Waits, asleep at once.
fn wait(token: &Token) {
    assert_eq!(select_as::<Check, Sleepy>(&[token as &_][..], None, &Lot::new(0)), Some(0));
    assert!(token.is_cancelled());
}

/// CANCEL-1: a child that is made while its parent is cancelled is cancelled, too.
fn new_child() -> Program {
    Program::new(2, 2, |scope| {
        let token = scope.share(Token::new(None));
        let done = scope.share(Data::new(false));
        scope.spawn(move || {
            wait(&token.child(None));
            assert!(done.get(), "what was done before");
        });
        scope.spawn(move || {
            done.set(true);
            token.cancel();
        });
        scope.finally(move || assert_eq!(token.places(), 0));
    })
}

/// The same, of a child's child.
fn grandchild() -> Program {
    Program::new(2, 2, |scope| {
        let token = scope.share(Token::new(None));
        scope.spawn(move || wait(&token.child(None).child(None)));
        scope.spawn(move || token.cancel());
    })
}

/// Two wait by one child, the parent of which is cancelled.
fn waits() -> Program {
    Program::new(3, 3, |scope| {
        let token = scope.share(Token::new(None));
        let child = scope.share(token.child(None));
        for _ in 0..2 {
            scope.spawn(move || wait(child));
        }
        scope.spawn(move || token.cancel());
    })
}

/// A child and its parent are cancelled at once.
fn twice() -> Program {
    Program::new(3, 3, |scope| {
        let token = scope.share(Token::new(None));
        let child = scope.share(token.child(None));
        scope.spawn(move || wait(&child.child(None)));
        scope.spawn(move || token.cancel());
        scope.spawn(move || child.cancel());
        scope.finally(move || assert!(token.is_cancelled() && child.is_cancelled()));
    })
}

/// Who receives until it is cancelled loses nothing.
fn receives() -> Program {
    Program::new(3, 3, |scope| {
        let token = scope.share(Token::new(None));
        let channel = scope.share(Channel::new(1));
        let had = scope.share(Data::new(false));
        scope.spawn(move || {
            let receives = Receives::new(channel);
            let both: [&dyn antiphon_runtime::select::Source<Check>; 2] = [token, &receives];
            let chosen = select_as::<Check, Sleepy>(&both[..], None, &Lot::new(0));
            had.set(chosen == Some(1));
        });
        scope.spawn(move || assert_eq!(channel.send(7, None), Ok(())));
        scope.spawn(move || token.cancel());
        scope.finally(move || assert_eq!(channel.len(), usize::from(!had.get())));
    })
}

/// CANCEL-2: children go while their parent is cancelled.
fn gone() -> Program {
    Program::new(2, 4, |scope| {
        let token = scope.share(Token::new(None));
        let children = [token.child(None), token.child(None)];
        scope.spawn(move || {
            drop(children);
            let after = token.child(None);
            assert!(token.places() <= 2);
            drop(after);
        });
        scope.spawn(move || token.cancel());
        scope.finally(move || assert_eq!(token.places(), 0));
    })
}
