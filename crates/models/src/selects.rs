//! Models of waiting for the first of several sources: the chosen one is taken, and the others are
//! left to other waiters. A lost wake is a deadlock.

mod events;

use antiphon_check::{Check, Data};
use antiphon_platform::Deadline;
use antiphon_runtime::channel::{self, NotReceived};
use antiphon_runtime::select::{Awaits, Lot, Receives, Sends, Source, select_as};
use antiphon_runtime::task;

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::Sleepy;
use crate::ledger::Ledger;
use crate::program::{GAVE_UP, Program, soon};
use events::{events, leaving_set, opened};

type Channel = channel::Channel<Check, usize>;
type Promise = task::Promise<Check, u32>;

pub fn entries() -> Vec<Entry> {
    Subject("select").models([
        model("events-1+1", events(), SPURIOUS),
        model("events-left-1+1", leaving_set(false), PLAIN),
        model("events-left-turned-1+1", leaving_set(true), PLAIN),
        model("latches-1+2", opened(), PLAIN),
        model("receives-1+1", receiving(1, 1), SPURIOUS),
        model("receives-1+2", receiving(1, 2), PLAIN).by_lot(4_000),
        model("receives-2+2", receiving(2, 2), PLAIN).by_lot(3_000),
        model("receives-beside-one-2+1", beside_one(), PLAIN).by_lot(4_000),
        model("passes-on-2+2", passing_on(false), PLAIN).by_lot(5_000),
        model("passes-on-turned-2+2", passing_on(true), PLAIN).by_lot(5_000),
        model("receives-exhausted-1+1", receiving(1, 1), PLAIN.nodes(1)),
        model("sends-1+2", sending(), PLAIN).by_lot(4_000),
        model("closed-1+1", closing(), PLAIN).long(),
        model("gives-up-1+1", giving_up(), TIMED).reaches(GAVE_UP),
        model("promises-1+2", promises(), PLAIN),
        model("promises-broken-1+1", broken(), SPURIOUS),
    ])
}

/// Returns the index of the chosen source.
fn choose(sources: &[&dyn Source<Check>], deadline: Option<Deadline>) -> Option<usize> {
    select_as::<Check, Sleepy>(sources, deadline, &Lot::new(0))
}

/// Two channels, with room for one value each, and the values that are sent.
struct Sent {
    channels: [Channel; 2],
    ledger: Ledger,
}

impl Sent {
    fn new(values: usize) -> Self {
        Self { channels: [0, 1].map(|_| Channel::new(1)), ledger: Ledger::new(values) }
    }

    fn send(&self, number: usize) {
        self.ledger.make(number);
        assert_eq!(self.channels[number % 2].send(number, None), Ok(()));
    }

    /// Receives one value from either channel, until the deadline.
    fn receive(&self, deadline: Option<Deadline>) -> Option<Result<usize, NotReceived>> {
        let [one, other] = self.channels.each_ref().map(Receives::new);
        let chosen = choose(&[&one, &other], deadline)?;
        let received = [one, other].map(Receives::into_received);
        assert!(received[1 - chosen].is_none(), "SELECT-1");
        if let Some(Ok(number)) = received[chosen] {
            self.ledger.take_number(number);
        }
        received[chosen]
    }
}

/// Some threads receive what others have sent, each into one of two channels.
fn receiving(receivers: usize, senders: usize) -> Program {
    let all = receivers.max(senders);
    Program::new((receivers + senders) as u32, 2 * all as u32, move |scope| {
        let sent = scope.share(Sent::new(all));
        scope.spawn_each(0..receivers, move |receiver| {
            for _ in (receiver..all).step_by(receivers) {
                assert!(matches!(sent.receive(None), Some(Ok(_))));
            }
        });
        for sender in 0..senders {
            scope
                .spawn(move || (sender..all).step_by(senders).for_each(|number| sent.send(number)));
        }
        scope.finally(move || sent.ledger.assert_all_taken());
    })
}

/// SELECT-2: one thread receives from either channel, another from the first alone; two messages
/// are sent to the first.
fn beside_one() -> Program {
    Program::new(3, 4, |scope| {
        let sent = scope.share(Sent::new(4));
        scope.spawn(move || assert!(matches!(sent.receive(None), Some(Ok(_)))));
        scope.spawn(move || {
            sent.ledger.take_number(sent.channels[0].recv(None).expect("it is open"));
        });
        scope.spawn(move || [0, 2].into_iter().for_each(|number| sent.send(number)));
        scope.finally(move || sent.ledger.assert_all_taken());
    })
}

/// SELECT-2: a thread that receives from either channel sends a message of the first one back
/// there, for a thread that waits for the first alone. `turned`: it tries the channels in the other
/// order.
fn passing_on(turned: bool) -> Program {
    Program::new(4, 5, move |scope| {
        let sent = scope.share([0, 1].map(|_| Channel::new(1)));
        scope.spawn(move || {
            let [one, other] = sent.each_ref().map(Receives::new);
            let mut sources: [&dyn Source<Check>; 2] = [&one, &other];
            if turned {
                sources.reverse();
            }
            assert!(choose(&sources, None).is_some());
            if let Some(number) = one.into_received() {
                assert_eq!(sent[0].send(number.expect("it is open"), None), Ok(()));
            }
        });
        scope.spawn(move || assert_eq!(sent[0].recv(None), Ok(0)));
        scope.spawn_each(sent.iter().enumerate(), move |(number, channel)| {
            assert_eq!(channel.send(number, None), Ok(()))
        });
    })
}

/// Sends two values into whichever of two channels has room, both of which are full at first.
fn sending() -> Program {
    Program::new(3, 6, |scope| {
        let sent = scope.share(Sent::new(4));
        for number in [2, 3] {
            sent.ledger.make(number);
            assert_eq!(sent.channels[number % 2].try_send(number), Ok(()));
        }
        scope.spawn(move || {
            let mut values = [0, 1].map(|number| {
                sent.ledger.make(number);
                Some(number)
            });
            for left in [1, 0] {
                let [here, there] = &mut values;
                let one = Sends::new(&sent.channels[0], here);
                let other = Sends::new(&sent.channels[1], there);
                assert!(choose(&[&one, &other], None).is_some());
                assert_eq!(values.iter().flatten().count(), left);
            }
        });
        scope.spawn_each(&sent.channels, move |channel| {
            for _ in 0..2 {
                sent.ledger.take_number(channel.recv(None).expect("it is open"));
            }
        });
        scope.finally(move || sent.ledger.assert_all_taken());
    })
}

/// A waiter for either channel learns that one is closed, after it has received what was sent
/// before.
fn closing() -> Program {
    Program::new(2, 3, |scope| {
        let sent = scope.share(Sent::new(1));
        scope.spawn(move || {
            assert_eq!(sent.receive(None), Some(Ok(0)));
            assert_eq!(sent.receive(None), Some(Err(NotReceived::Closed)));
        });
        scope.spawn(move || {
            sent.send(0);
            sent.channels[0].close();
        });
    })
}

/// A value that comes too late stays in the channel. Must reach `gave up`.
fn giving_up() -> Program {
    Program::new(2, 2, |scope| {
        let sent = scope.share(Sent::new(1));
        scope.spawn(move || sent.send(0));
        scope.spawn(move || {
            if sent.receive(Some(soon())).is_none() {
                antiphon_check::probe("gave up");
            }
        });
        scope.finally(move || {
            if let Ok(number) = sent.channels[0].try_recv() {
                sent.ledger.take_number(number);
            }
            sent.ledger.assert_all_taken();
        });
    })
}

/// Waits for two promises, one after the other.
fn promises() -> Program {
    Program::new(3, 4, |scope| {
        let data = scope.share([const { Data::new(false) }; 2]);
        let both = [0, 1].map(|_| Promise::new());
        let [(one, first), (other, second)] = both;
        scope.spawn(move || {
            let (mut first, mut second) = (first, second);
            let mut sum = 0;
            for turn in 0..2 {
                let [one, other] = [&mut first, &mut second].map(Awaits::new);
                let had = match choose(&[&one, &other], None).expect("without a deadline") {
                    0 => one.into_returned(),
                    _ => other.into_returned(),
                };
                // A promise that is chosen again has no value.
                sum += had.unwrap_or(0);
                assert!(turn > 0 || had.is_some());
            }
            assert!(sum > 0 && (sum & 1 == 0 || data[0].get()) && (sum & 2 == 0 || data[1].get()));
        });
        scope.spawn_each([one, other].into_iter().enumerate(), move |(at, promise)| {
            data[at].set(true);
            promise.fulfil(1 << at);
        });
    })
}

/// A waiter is notified of a promise that is dropped.
fn broken() -> Program {
    Program::new(2, 2, |scope| {
        let channel = scope.share(Channel::new(1));
        let (promise, handle) = Promise::new();
        scope.spawn(move || {
            let mut handle = handle;
            let (never, told) = (Receives::new(channel), Awaits::new(&mut handle));
            assert_eq!(choose(&[&never, &told], None), Some(1));
            assert_eq!(told.into_returned(), None);
        });
        scope.spawn(move || drop(promise));
    })
}
