//! Models of active messages: each is posted and delivered once, and no wake is lost on either
//! side. `actions` has models of their actions, `idle` of owners with their own way to sleep.

mod actions;
mod idle;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics, Notify};
use antiphon_runtime::message::{self, Message, NotPosted, NotSignalled, Payload};

use crate::bounds::{ANY, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program, soon};

type Actions = message::Actions<Check>;
type Mailbox<N = Park> = message::Mailbox<Check, N>;
type Park = message::Park<Check>;
type Spin = message::Spin<Check>;

pub fn entries() -> Vec<Entry> {
    let full = &["full"];
    let mut entries = Subject("message").models([
        model("delivers-1+1", delivering::<Park>(1, 2, 4, 0), SPURIOUS),
        model("delivers-2+1", delivering::<Park>(2, 1, 4, 0), PLAIN),
        model("delivers-spinning-1+1", delivering::<Spin>(1, 2, 2, 1), ANY),
        model("delivers-any-2+1", delivering::<Park>(2, 2, 2, 1), ANY).by_lot(1_000),
        model("waits-for-room-1+1", delivering::<Park>(1, 2, 1, 0), SPURIOUS),
        model("waits-for-room-2+1", delivering::<Park>(2, 1, 1, 0), PLAIN),
        model("laps-2+1", delivering::<Park>(2, 2, 2, 0), PLAIN).by_lot(3_000),
        model("exhausted-1+1", delivering::<Park>(1, 2, 1, 0), PLAIN.nodes(0)).by_lot(1_000),
        model("shipped-2+1", delivering::<Park>(2, 2, 2, 20_000), ANY).by_lot(1_000),
        model("full-passed-on-2+1", passing_on(), PLAIN).reaches(&["posted"]),
        model("full-1+1", refusing(), PLAIN).reaches(full),
        model("gives-up-1+1", giving_up(), TIMED).reaches(full),
        model("signals-1+1", signalling(1), SPURIOUS),
        model("signals-2+1", signalling(2), PLAIN),
        model("closes-1+1", closing(1, 2, 2), PLAIN).reaches(&["returned", "closed"]),
        model("closes-2+1", closing(2, 1, 2), PLAIN).reaches(&["returned", "closed"]),
        model("closes-full-2+1", closing(2, 1, 1), PLAIN).reaches(&["returned", "closed"]),
    ]);
    entries.extend(actions::entries());
    entries.extend(idle::entries());
    entries
}

/// The messages that were posted and those that were delivered.
struct Log {
    /// Set before a message is posted.
    posted: Vec<Data<bool>>,
    /// The messages that were delivered, in order.
    delivered: Data<Vec<u64>>,
}

impl Log {
    fn new(messages: u32) -> Arc<Anywhere<Self>> {
        let posted = (0..messages).map(|_| Data::new(false)).collect();
        Arc::new(Anywhere(Self { posted, delivered: Data::new(Vec::new()) }))
    }

    /// Returns the payload of message `number`, which is about to be posted.
    fn post(&self, number: u64) -> Payload {
        self.posted[number as usize].set(true);
        [number, !number, number << 32]
    }

    fn deliver(&self, payload: Payload) {
        let number = payload[0];
        assert_eq!(payload, [number, !number, number << 32], "one message");
        assert!(self.posted[number as usize].get(), "what came before the post");
        self.delivered.with_mut(|delivered| {
            assert!(!delivered.contains(&number), "delivered twice");
            delivered.push(number);
        });
    }

    fn count(&self) -> usize {
        self.delivered.with(Vec::len)
    }
}

/// Creates a table whose one action logs its payload.
fn logging(log: &Arc<Anywhere<Log>>) -> (Actions, message::ActionId) {
    let actions = Actions::new(1);
    let log = log.clone();
    let id = actions.register(move |payload| log.0.deliver(payload)).expect("room for one");
    (actions, id)
}

/// Posters post `each` messages, waiting for room, and the owner waits until it has received them
/// all. The messages of each poster arrive in order.
fn delivering<N: Notify + Default>(posters: u32, each: u32, room: usize, spin_ns: u32) -> Program {
    Program::new(posters + 1, posters * (each + 1), move |scope| {
        let log = Log::new(posters * each);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<N>::new(&actions, room).spinning(spin_ns);
        for poster in 0..posters {
            let (sender, log) = (mailbox.sender(), log.clone());
            scope.spawn(move || {
                for number in poster * each..(poster + 1) * each {
                    let payload = log.0.post(number.into());
                    sender.post_wait(Message { action, payload }, None).expect("open");
                }
            });
        }
        scope.spawn(move || {
            while log.0.count() < (posters * each) as usize {
                let delivered = mailbox.wait(None);
                assert_eq!((delivered.signals, delivered.strays), (0, 0));
            }
            let order = log.0.delivered.with(Clone::clone);
            for poster in 0..posters {
                let own = |number: &&u64| **number / u64::from(each) == u64::from(poster);
                assert!(order.iter().filter(own).is_sorted(), "out of order");
            }
        });
    })
}

/// A message that finds no room returns to the sender, which posts it later. Must reach `full`.
fn refusing() -> Program {
    Program::new(2, 4, |scope| {
        let log = Log::new(2);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<Park>::new(&actions, 1).spinning(0);
        let (sender, posted) = (mailbox.sender(), log.clone());
        scope.spawn(move || {
            for number in 0..2 {
                let message = Message { action, payload: posted.0.post(number) };
                if let Err(refused) = sender.post(message) {
                    assert_eq!(refused, NotPosted::Full(message));
                    probe("full");
                    sender.post_wait(message, None).expect("open");
                }
            }
        });
        scope.spawn(move || {
            while log.0.count() < 2 {
                let _ = mailbox.wait(None);
            }
        });
    })
}

/// Room that one poster has seen lets another poster refill the slot of a third, which here is the
/// owner. Must reach `posted`.
fn passing_on() -> Program {
    Program::new(3, 6, |scope| {
        let log = Log::new(4);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<Park>::new(&actions, 2).spinning(0);
        let (sender, posted) = (mailbox.sender(), log.clone());
        let refused = scope.share([const { Data::new(false) }; 4]);
        let post = move |number: usize| {
            let message = Message { action, payload: posted.0.post(number as u64) };
            refused[number].set(sender.post(message).is_err());
        };
        for number in 2..4 {
            let post = post.clone();
            scope.spawn(move || post(number));
        }
        let rest = scope.share(Data::new(None));
        scope.spawn(move || {
            let _ = (post(0), post(1), mailbox.poll(), mailbox.poll());
            rest.set(Some(mailbox));
        });
        scope.finally(move || {
            rest.with_mut(|mailbox| while !mailbox.as_mut().expect("kept").poll().is_empty() {});
            let refused = refused.iter().filter(|refused| refused.get()).count();
            if refused == 0 {
                probe("posted");
            }
            assert_eq!(log.0.count() + refused, 4);
        });
    })
}

/// Both sides have deadlines: a message that was not posted returns, and one that was posted is
/// delivered. Must reach `full`.
fn giving_up() -> Program {
    Program::new(2, 4, |scope| {
        let log = Log::new(2);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<Park>::new(&actions, 1).spinning(0);
        let (sender, posted) = (mailbox.sender(), log.clone());
        let refused = scope.share(Data::new(0));
        scope.spawn(move || {
            for number in 0..2 {
                let message = Message { action, payload: posted.0.post(number) };
                if let Err(back) = sender.post_wait(message, Some(soon())) {
                    assert_eq!(back, NotPosted::Full(message));
                    probe("full");
                    refused.set(refused.get() + 1);
                }
            }
        });
        let rest = scope.share(Data::new(None));
        let seen = log.clone();
        scope.spawn(move || {
            let _ = mailbox.wait(Some(soon()));
            rest.set(Some(mailbox));
        });
        scope.finally(move || {
            rest.with_mut(|mailbox| while !mailbox.as_mut().expect("kept").poll().is_empty() {});
            assert_eq!(seen.0.count() + refused.get(), 2);
        });
    })
}

/// Several threads signal the same action: its last run sees what was done before each signal.
fn signalling(signallers: u32) -> Program {
    Program::new(signallers + 1, signallers * 2, move |scope| {
        type Flag = <Check as Atomics>::U32;
        let flags: Vec<Flag> = (0..signallers).map(|_| Flag::ZERO).collect();
        let flags = Arc::new(Anywhere(flags));
        let all = Arc::new(Anywhere(Data::new(false)));
        let actions = Actions::new(0);
        let (looked, found) = (flags.clone(), all.clone());
        let look = move || {
            let seen = looked.0.iter().filter(|flag| flag.load(Relaxed) == 1).count();
            found.0.set(seen == looked.0.len());
        };
        let id = actions.register_signal(look).expect("room");
        let mut mailbox = Mailbox::<Park>::new(&actions, 1).spinning(0);
        for signaller in 0..signallers {
            let (sender, flags) = (mailbox.sender(), flags.clone());
            scope.spawn(move || {
                flags.0[signaller as usize].store(1, Relaxed);
                // The owner may have seen the flag, and closed.
                assert!(matches!(sender.signal(id), Ok(()) | Err(NotSignalled::Closed)));
            });
        }
        scope.spawn(move || {
            let mut runs = 0;
            while !all.0.get() {
                let delivered = mailbox.wait(None);
                runs += delivered.signals;
            }
            assert!(runs >= 1 && runs <= signallers);
        });
    })
}

/// The owner closes while messages are posted: each message is delivered, returned or refused. Must
/// reach `returned` and `closed`.
fn closing(posters: u32, each: u32, room: usize) -> Program {
    Program::new(posters + 1, posters * each + 1, move |scope| {
        let log = Log::new(posters * each);
        let (actions, action) = logging(&log);
        let mut mailbox = Mailbox::<Park>::new(&actions, room).spinning(0);
        let refused = scope.share((0..posters).map(|_| Data::new(0)).collect::<Vec<_>>());
        for poster in 0..posters {
            let (sender, log) = (mailbox.sender(), log.clone());
            scope.spawn(move || {
                for number in poster * each..(poster + 1) * each {
                    let message = Message { action, payload: log.0.post(number.into()) };
                    if let Err(back) = sender.post_wait(message, None) {
                        assert_eq!(back, NotPosted::Closed(message));
                        probe("closed");
                        let refused = &refused[poster as usize];
                        refused.set(refused.get() + 1);
                    }
                }
            });
        }
        let returned = scope.share(Data::new(0));
        let seen = log.clone();
        scope.spawn(move || {
            let _ = mailbox.poll();
            for message in mailbox.close() {
                probe("returned");
                seen.0.deliver(message.payload);
                returned.set(returned.get() + 1);
            }
        });
        scope.finally(move || {
            let refused: usize = refused.iter().map(Data::get).sum();
            assert_eq!(log.0.count() + refused, (posters * each) as usize);
        });
    })
}
