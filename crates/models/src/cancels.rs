//! Models of the tree of cancellation tokens: a canceller misses no child, even if children come
//! and go meanwhile. A lost wake is a deadlock.
//!
//! Tokens are counted by `Arc`, whose counts the checker does not see. So exhaustive models keep
//! each token until the end, so that no count matters. If tokens are dropped while others cancel,
//! executions are drawn by lot.

use std::cell::RefCell;

use antiphon_check::{Check, Data};
use antiphon_runtime::cancel;
use antiphon_runtime::channel;
use antiphon_runtime::select::{Lot, Receives, select_as};

use crate::bounds::{PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::forms::Sleepy;
use crate::program::Program;

type Token = cancel::Token<Check>;
type Channel = channel::Channel<Check, usize>;

pub fn entries() -> Vec<Entry> {
    Subject("cancel").models([
        model("child-1+1", new_child(), SPURIOUS),
        model("grandchild-1+1", grandchild(), PLAIN),
        model("waits-1+1", waits(1), SPURIOUS),
        model("waits-2+1", waits(2), SPURIOUS).by_lot(4_000),
        model("twice-1+2", twice(), PLAIN),
        model("receives-1+1+1", receives(), PLAIN),
        model("gone-1+1", gone(), PLAIN).by_lot(4_000),
    ])
}

/// Waits for the token; sleeps at once.
fn wait(token: &Token) {
    assert_eq!(select_as::<Check, Sleepy>(&[token as &_][..], None, &Lot::new(0)), Some(0));
    assert!(token.is_cancelled());
}

/// Tokens that are kept until the end.
type Kept = RefCell<Vec<Token>>;

/// Waits by a token, and keeps it.
fn wait_and_keep(token: Token, kept: &Kept) {
    let same = token.clone();
    kept.borrow_mut().push(token);
    wait(&same);
}

/// CANCEL-1: a child that is made while its parent is cancelled is also cancelled.
fn new_child() -> Program {
    Program::new(2, 2, |scope| {
        let token = scope.share(Token::new(None));
        let (done, kept) = (scope.share(Data::new(false)), scope.share(Kept::default()));
        scope.spawn(move || {
            wait_and_keep(token.child(None), kept);
            assert!(done.get(), "what was done before");
        });
        scope.spawn(move || {
            done.set(true);
            token.cancel();
        });
        // The canceller has taken all places.
        scope.finally(move || assert_eq!(token.places(), 0));
    })
}

/// CANCEL-1 for a child's child.
fn grandchild() -> Program {
    Program::new(2, 2, |scope| {
        let (token, kept) = (scope.share(Token::new(None)), scope.share(Kept::default()));
        scope.spawn(move || wait_and_keep(token.child(None).child(None), kept));
        scope.spawn(move || token.cancel());
    })
}

/// `waiters` threads wait for one child, whose parent is cancelled.
fn waits(waiters: u32) -> Program {
    Program::new(waiters + 1, waiters + 1, move |scope| {
        let token = scope.share(Token::new(None));
        let child = scope.share(token.child(None));
        scope.spawn_each(0..waiters, move |_| wait(child));
        scope.spawn(move || token.cancel());
    })
}

/// A child and its parent are cancelled at the same time.
fn twice() -> Program {
    Program::new(3, 3, |scope| {
        let token = scope.share(Token::new(None));
        let (child, kept) = (scope.share(token.child(None)), scope.share(Kept::default()));
        scope.spawn(move || wait_and_keep(child.child(None), kept));
        scope.spawn(move || token.cancel());
        scope.spawn(move || child.cancel());
        scope.finally(move || assert!(token.is_cancelled() && child.is_cancelled()));
    })
}

/// A receiver that receives until it is cancelled loses nothing.
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

/// CANCEL-2: children are dropped while their parent is cancelled. By lot: reference counts matter.
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
