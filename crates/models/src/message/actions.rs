//! Models of message actions that are registered, unregistered and replaced while messages for them
//! are under way.

use std::sync::Arc;

use antiphon_check::{Data, probe};
use antiphon_runtime::message::{self, ActionId, Message, Refused};

use super::{Actions, Mailbox, Park};
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program};

pub fn entries() -> Vec<Entry> {
    let both = &["ran", "stray"];
    Subject("message").models([
        model("unregisters-1+1", unregistering(0), PLAIN).reaches(both),
        model("unregisters-2+1", unregistering(1), PLAIN).reaches(both),
        model("unregisters-own-1+1", unregistering_own(), PLAIN).reaches(both),
        model("registers-1+1", registering(), PLAIN).reaches(both),
        model("takes-over-1+1", taking_over(), PLAIN).reaches(&["took over"]),
    ])
}

/// The context of an action: touched by the thread that runs or drops the action.
struct Context(Arc<Anywhere<Data<u32>>>);

impl Drop for Context {
    fn drop(&mut self) {
        self.0.0.set(0);
    }
}

/// The name of the first action of a table, known before it is registered.
fn first() -> ActionId {
    ActionId::from_bits(1 << 10 | message::SIGNALS as u32)
}

/// A message arrives for an action that is just being registered. Must reach `ran` and `stray`.
fn registering() -> Program {
    Program::new(2, 2, |scope| {
        let used = Arc::new(Anywhere(Data::new(0)));
        // Dropped when both threads have ended.
        let actions = scope.share(Actions::new(1));
        let mut mailbox = Mailbox::<Park>::new(actions, 1).spinning(0);
        let message = Message { action: first(), payload: [0; 3] };
        mailbox.sender().post(message).expect("room");
        scope.spawn(move || {
            used.0.set(7);
            let context = Context(used);
            let id = actions.register(move |_| assert_eq!(context.0.0.get(), 7));
            assert_eq!(id, Ok(first()));
        });
        scope.spawn(move || {
            let delivered = mailbox.poll();
            probe(if delivered.messages == 1 { "ran" } else { "stray" });
        });
    })
}

/// An action is unregistered by a thread that knows its name by other means, and its place is taken
/// by the thread that had registered it. Must reach `took over`.
fn taking_over() -> Program {
    Program::new(2, 3, |scope| {
        let used = Arc::new(Anywhere(Data::new(0)));
        // Dropped when both threads have ended.
        let actions = scope.share(Actions::new(1));
        let seen = used.clone();
        scope.spawn(move || {
            used.0.set(7);
            let context = Context(used.clone());
            let id = actions.register(move |_| assert_eq!(context.0.0.get(), 7));
            assert_eq!(id, Ok(first()));
            if actions.register(|_| {}).is_ok() {
                probe("took over");
                assert_eq!(used.0.get(), 0, "dropped before");
            }
        });
        scope.spawn(move || {
            if actions.unregister(first()).is_ok() {
                assert_eq!(seen.0.get(), 0, "dropped");
            }
        });
    })
}

/// An action cannot unregister itself, but the owner that has run it can.
fn unregistering_own() -> Program {
    Program::new(2, 2, |scope| {
        let actions = Actions::new(1);
        let table = Anywhere(actions.clone());
        let id = actions.register(move |_| {
            let Anywhere(table) = &table;
            assert_eq!(table.unregister(first()), Err(Refused::FromAction));
            probe("ran");
        });
        let message = Message { action: id.expect("room"), payload: [0; 3] };
        let mut mailbox = Mailbox::<Park>::new(&actions, 1).spinning(0);
        let sender = mailbox.sender();
        scope.spawn(move || sender.post(message).expect("room"));
        scope.spawn(move || {
            let ran = mailbox.poll().messages;
            assert_eq!(actions.unregister(message.action), Ok(()));
            if ran == 0 {
                assert_eq!(mailbox.wait(None).strays, 1);
                probe("stray");
            }
        });
    })
}

/// An action is unregistered, the data that it uses is changed, and another action takes its entry,
/// while messages for it are under way: one already in the mailbox, and one of each poster. Must
/// reach `ran` and `stray`.
fn unregistering(posters: u32) -> Program {
    Program::new(2 + posters, 3, move |scope| {
        let used = Arc::new(Anywhere(Data::new(7)));
        let context = Context(used.clone());
        let actions = Actions::new(1);
        let id = actions.register(move |_| {
            assert_eq!(context.0.0.get(), 7, "not dropped");
            probe("ran");
        });
        let action = id.expect("room");
        let mut mailbox = Mailbox::<Park>::new(&actions, 2).spinning(0);
        let sender = mailbox.sender();
        let post = move || sender.post(Message { action, payload: [0; 3] }).expect("room");
        post();
        (0..posters).for_each(|_| scope.spawn(post.clone()));
        scope.spawn(move || {
            let mut delivered = 0;
            while delivered < 1 + posters {
                let batch = mailbox.wait(None);
                delivered += batch.messages + batch.strays;
                if batch.strays > 0 {
                    probe("stray");
                }
            }
        });
        scope.spawn(move || {
            actions.unregister(action).expect("registered");
            assert_eq!(used.0.get(), 0, "dropped");
            used.0.set(1);
            assert_eq!(actions.unregister(action), Err(Refused::Unknown));
            let other = actions.register(|_| panic!("a message of another")).expect("room");
            assert_ne!(other, action);
        });
    })
}
