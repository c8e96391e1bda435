//! Models of channels: a value is received once, in order, by a receiver that sees what was done
//! before it was sent; and a waiter for a value or for room is notified. A lost wake is a deadlock.

use antiphon_check::{Check, Data};
use antiphon_platform::{Clock, Deadline};
use antiphon_runtime::channel::{self, NotReceived, NotSent};

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

type Channel = channel::Channel<Check, usize>;

pub fn entries() -> Vec<Entry> {
    Subject("channel").models([
        model("in-order-once-1+1", passing(1, 1, 1, 1), SPURIOUS),
        model("in-order-1+1", passing(1, 1, 2, 1), SPURIOUS).long(),
        model("in-order-roomy-1+1", passing(1, 1, 3, 2), PLAIN).by_lot(2_000),
        model("in-order-2+1", passing(2, 1, 1, 1), PLAIN).by_lot(2_000),
        model("in-order-1+2", passing(1, 2, 2, 1), PLAIN).by_lot(2_000),
        model("in-order-2+2", passing(2, 2, 2, 1), PLAIN).by_lot(1_000),
        model("once-each-2+2", passing(2, 2, 1, 2), PLAIN).by_lot(5_000),
        model("full-2+2", draining(), PLAIN).by_lot(5_000),
        model("closed-1+1", closing(), PLAIN).long(),
        model("closed-beside-2+1", closing_beside(1), PLAIN).by_lot(5_000),
        model("closed-beside-2+2", closing_beside(2), PLAIN).by_lot(5_000),
        model("closed-refuses-1+1", refusing(), PLAIN),
        model("gives-up-1+1", giving_up(), TIMED),
    ])
}

/// A channel, and the values that are sent.
struct Sent {
    channel: Channel,
    ledger: Ledger,
}

impl Sent {
    fn new(room: usize, values: usize) -> Self {
        Self { channel: Channel::new(room), ledger: Ledger::new(values) }
    }

    fn send(&self, number: usize) {
        self.ledger.make(number);
        assert_eq!(self.channel.send(number, None), Ok(()));
    }

    /// Receives one value; `None` if the channel is closed and empty.
    fn receive(&self) -> Option<usize> {
        let number = self.channel.recv(None).ok()?;
        self.ledger.take_number(number);
        Some(number)
    }
}

/// `senders` threads send `each` values each, and `receivers` receive all of them, in equal parts.
fn passing(senders: usize, receivers: usize, each: usize, room: usize) -> Program {
    let all = senders * each;
    Program::new((senders + receivers) as u32, (2 * all) as u32, move |scope| {
        let sent = scope.share(Sent::new(room, all));
        scope.spawn_each(0..senders, move |sender| {
            (0..each).for_each(|turn| sent.send(sender * each + turn))
        });
        scope.spawn_each(0..receivers, move |_| {
            let numbers = (0..all / receivers).map(|_| sent.receive().expect("it is open"));
            // Each sender's values arrive in the order in which it has sent them.
            let mut last = vec![None; senders];
            for number in numbers {
                assert!(last[number / each].replace(number).is_none_or(|last| last < number));
            }
        });
        scope.finally(move || {
            sent.ledger.assert_all_taken();
            assert!(sent.channel.is_empty());
        });
    })
}

/// CHAN-3: a full channel, from which two threads take one value each, while two wait for room;
/// both ends stay open.
fn draining() -> Program {
    Program::new(4, 8, |scope| {
        let sent = scope.share(Sent::new(2, 4));
        (0..2).for_each(|number| sent.send(number));
        scope.spawn_each(2..4, move |number| sent.send(number));
        scope.spawn_each(0..2, move |_| assert!(sent.receive().is_some()));
        scope.finally(move || {
            (0..2).for_each(|_| assert!(sent.receive().is_some()));
            sent.ledger.assert_all_taken();
        });
    })
}

/// CHAN-2: one thread sends and closes, while another is in the middle of a send.
fn closing_beside(receivers: usize) -> Program {
    Program::new(2 + receivers as u32, 4, move |scope| {
        let sent = scope.share(Sent::new(2, 2));
        let seen = scope.share(Ledger::new(1));
        scope.spawn(move || {
            sent.ledger.make(0);
            // Refused or not: it is concurrent with the close.
            let _ = sent.channel.send(0, None);
        });
        scope.spawn(move || {
            seen.make(0);
            sent.send(1);
            sent.channel.close();
        });
        scope.spawn_each(0..receivers, move |_| {
            while let Some(number) = sent.receive() {
                if number == 1 {
                    seen.take_number(0);
                }
            }
        });
        // Each receiver has seen the end, and received all that was sent before.
        scope.finally(move || seen.assert_all_taken());
    })
}

/// CHAN-2: a receiver receives all that was sent before the channel was closed.
fn closing() -> Program {
    Program::new(2, 2, |scope| {
        let sent = scope.share(Sent::new(2, 1));
        scope.spawn(move || {
            sent.send(0);
            sent.channel.close();
        });
        scope.spawn(move || {
            assert_eq!(sent.receive(), Some(0));
            assert_eq!(sent.receive(), None);
        });
    })
}

/// A waiter for room is told that there will be no room.
fn refusing() -> Program {
    Program::new(2, 2, |scope| {
        let channel = scope.share(Channel::new(1));
        let closed = scope.share(Data::new(false));
        scope.spawn(move || {
            // The channel has room for the first value, and none for the second.
            let refused = channel.send(0, None).and_then(|()| channel.send(1, None));
            assert!(matches!(refused, Err(NotSent::Closed(0 | 1))));
            assert!(closed.get());
        });
        scope.spawn(move || {
            closed.set(true);
            channel.close();
        });
    })
}

/// A receiver that has waited for long enough leaves later values to others.
fn giving_up() -> Program {
    Program::new(2, 2, |scope| {
        let sent = scope.share(Sent::new(1, 1));
        scope.spawn(move || sent.send(0));
        scope.spawn(move || {
            let deadline = Deadline { clock: Clock::Monotonic, ns: 100 };
            match sent.channel.recv(Some(deadline)) {
                Ok(number) => sent.ledger.take_number(number),
                Err(why) => assert_eq!(why, NotReceived::Empty),
            }
        });
        scope.finally(move || {
            if let Ok(number) = sent.channel.try_recv() {
                sent.ledger.take_number(number);
            }
            sent.ledger.assert_all_taken();
        });
    })
}
