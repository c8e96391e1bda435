//! Models of the inbox: each posted item is taken out once and in order, by a thread that sees what
//! was done before it was posted.

use antiphon_check::linearizability::queues::QueueAnswer::{Empty, Got, Pushed};
use antiphon_check::linearizability::queues::QueueCall::{self, Front, Push};
use antiphon_check::linearizability::queues::{Order, Queue, QueueAnswer};
use antiphon_check::{Check, History};
use antiphon_sync::queue::{self, Item, Link};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

type Inbox = queue::Inbox<Check>;

pub fn entries() -> Vec<Entry> {
    Subject("inbox").models([
        model("in-order-1+1", posting(&[2], 3), PLAIN),
        model("in-order-2+1", posting(&[1, 1], 2), PLAIN),
        model("again-2+1", posting(&[2, 1], 3), PLAIN),
    ])
}

/// An inbox, and the links that are posted to it.
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
            // SAFETY: each number has its own link, which lives as long as the model.
            unsafe { self.inbox.push(self.item(number)) };
            Pushed
        });
    }

    /// The owner pops `times` times.
    fn look(&self, times: usize) {
        for _ in 0..times {
            let look = || {
                // SAFETY: the threads that pop run one after the other.
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

/// Threads post, `each` times each, and the owner pops `looks` times; the answers must be
/// linearizable, in order.
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
