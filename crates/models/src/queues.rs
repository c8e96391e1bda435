//! Queues of many: what is put in is taken out once, by one who sees what was done before; each
//! answer is one that the queue, or the bag, of one thread would give.

use antiphon_check::linearizability::queues::QueueAnswer::{Empty, Got, Nothing, Pushed};
use antiphon_check::linearizability::queues::QueueCall::{self, Front, Push};
use antiphon_check::linearizability::queues::{Order, Queue, QueueAnswer};
use antiphon_check::{Check, History, probe};
use antiphon_sync::queue::{self, Item, Link};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::ledger::{Ledger, found, settle};
use crate::program::Program;

type RelaxedQueue = queue::RelaxedQueue<Check>;
type Inbox = queue::Inbox<Check>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    let impatient = PLAIN.expiries(1);
    vec![
        Entry::new("relaxed-queue/bag-1+1", passing(4, &[2], &[2]), PLAIN),
        Entry::new("relaxed-queue/bag-2+1", passing(2, &[1, 1], &[2]), PLAIN),
        Entry::new("relaxed-queue/bag-1+2", passing(2, &[2], &[1, 1]), PLAIN),
        Entry::new("relaxed-queue/laps-1+1", passing(1, &[2], &[2]), impatient),
        Entry::new("relaxed-queue/laps-2+2", passing(1, &[2, 1], &[2, 1]), impatient)
            .by_lot(10_000),
        Entry::new("relaxed-queue/passes-the-stopped-1+1", stopped(), impatient)
            .reaches(&["passed"]),
        Entry::new("inbox/in-order-1+1", posting(&[2], 3), PLAIN),
        Entry::new("inbox/in-order-2+1", posting(&[1, 1], 2), PLAIN),
        Entry::new("inbox/again-2+1", posting(&[2, 1], 3), PLAIN),
    ]
}

/// Threads put in and take out, so often each. Nothing is lost, and who finds nothing is right.
fn passing(capacity: usize, puts: &'static [u32], takes: &'static [u32]) -> Program {
    let count = |times: &[u32]| times.iter().sum::<u32>();
    let threads = (puts.len() + takes.len()) as u32;
    Program::new(threads, count(puts) + count(takes), move |scope| {
        let queue = scope.share(RelaxedQueue::new(capacity));
        let ledger = scope.share(Ledger::new(count(puts) as usize));
        let history = scope.share(History::new());
        let mut first = 0;
        for &times in puts {
            let mine = first..first + times as usize;
            first = mine.end;
            scope.spawn(move || {
                for number in mine {
                    let item = ledger.make(number);
                    // Full is no answer of a bag: others on the way may have the room.
                    let put = || queue.push(item).map_or(Nothing, |()| Pushed);
                    if history.record(Push(item.word()), put) == Nothing {
                        ledger.made[number].set(false);
                    }
                }
            });
        }
        for &times in takes {
            scope.spawn(move || {
                for _ in 0..times {
                    settle(ledger, history.record(Front, || found(queue.pop())));
                }
            });
        }
        scope.finally(move || {
            while let Some(item) = queue.pop() {
                history.record(Front, || Got(item.word()));
                ledger.take(item);
            }
            ledger.assert_all_taken();
            history.assert_linearizable(&Queue::new(Order::None, usize::MAX));
        });
    })
}

/// RLX-3: one seems to be stopped between its draw and its cell; another puts in behind it, and who
/// takes out comes to that. Has to reach `passed`.
fn stopped() -> Program {
    Program::new(2, 3, |scope| {
        let queue = scope.share(RelaxedQueue::new(4));
        let ledger = scope.share(Ledger::new(2));
        scope.spawn(move || assert!(queue.push(ledger.make(0)).is_ok()));
        scope.spawn(move || {
            let drawn = queue.len() == 1;
            let second = ledger.make(1);
            assert!(queue.push(second).is_ok());
            let taken = queue.pop();
            taken.into_iter().for_each(|item| ledger.take(item));
            if drawn && taken == Some(second) {
                probe("passed");
            }
        });
        scope.finally(move || {
            std::iter::from_fn(|| queue.pop()).for_each(|item| ledger.take(item));
            ledger.assert_all_taken();
        });
    })
}

/// An inbox, and what is posted to it.
struct Posts {
    inbox: Inbox,
    links: Vec<Link<Check>>,
    ledger: Ledger,
    history: History<QueueCall, QueueAnswer>,
}

impl Posts {
    fn new(count: usize) -> Self {
        let links = (0..count).map(|_| Link::NEW).collect();
        Self { inbox: Inbox::NEW, links, ledger: Ledger::new(count), history: History::new() }
    }

    fn item(&self, number: usize) -> Item {
        let address = std::ptr::from_ref(&self.links[number]).expose_provenance();
        Item::new(address as u64).expect("an aligned address")
    }

    fn post(&self, number: usize) {
        self.ledger.make(number);
        self.history.record(Push(number as u64), || {
            // SAFETY: a link of its own, that is there for as long as the model.
            unsafe { self.inbox.push(self.item(number)) };
            Pushed
        });
    }

    /// The owner looks so often.
    fn look(&self, times: usize) {
        for _ in 0..times {
            let look = || {
                // SAFETY: one thread after the other.
                let item = unsafe { self.inbox.pop() };
                let number = |item| (0..self.links.len()).find(|&other| self.item(other) == item);
                item.map_or(Empty, |item| Got(number(item).expect("one of them") as u64))
            };
            if let Got(number) = self.history.record(Front, look) {
                self.ledger.take_number(number as usize);
            }
        }
    }
}

/// Threads post, so many each, and the owner looks so often: one story, in order.
fn posting(each: &'static [usize], looks: usize) -> Program {
    let count = each.iter().sum::<usize>();
    Program::new(each.len() as u32 + 1, (count + looks) as u32, move |scope| {
        let posts = scope.share(Posts::new(count));
        let mut first = 0;
        for &times in each {
            let mine = first..first + times;
            first = mine.end;
            scope.spawn(move || mine.for_each(|number| posts.post(number)));
        }
        scope.spawn(move || posts.look(looks));
        scope.finally(move || {
            posts.look(count);
            posts.ledger.assert_all_taken();
            posts.history.assert_linearizable(&Queue::new(Order::Exact, usize::MAX));
        });
    })
}
