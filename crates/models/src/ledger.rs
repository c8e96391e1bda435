//! Checks the fate of a queue's items in a model.

use antiphon_check::Data;
use antiphon_check::linearizability::queues::QueueAnswer::{self, Empty, Got};
use antiphon_sync::queue::Item;

/// Records the fate of items: each is made by one thread, and taken by one thread that sees it
/// made.
pub struct Ledger {
    pub made: Vec<Data<bool>>,
    taken: Vec<Data<bool>>,
}

impl Ledger {
    pub fn new(items: usize) -> Self {
        let no = || (0..items).map(|_| Data::new(false)).collect();
        Self { made: no(), taken: no() }
    }

    /// Makes item number `number`, which is about to be put in.
    pub fn make(&self, number: usize) -> Item {
        self.made[number].set(true);
        Item::new(8 * (number as u64 + 512)).expect("an item")
    }

    pub fn take(&self, item: Item) {
        self.take_number(self.number(item));
    }

    pub fn number(&self, item: Item) -> usize {
        (item.word() / 8 - 512) as usize
    }

    /// Takes item `number`. If two threads take it, that is a data race, or the second sees the
    /// first.
    pub fn take_number(&self, number: usize) {
        assert!(self.made[number].get(), "what came before it was put in");
        assert!(!self.taken[number].get(), "taken twice");
        self.taken[number].set(true);
    }

    /// Asserts that each item that was made was taken; an item that was not made was refused.
    pub fn assert_all_taken(&self) {
        for (made, taken) in self.made.iter().zip(&self.taken) {
            assert_eq!(made.get(), taken.get(), "lost");
        }
    }
}

pub fn found(item: Option<Item>) -> QueueAnswer {
    item.map_or(Empty, |item| Got(item.word()))
}

/// Takes the item of an answer, if it has one.
pub fn settle(ledger: &Ledger, answer: QueueAnswer) {
    if let Got(word) = answer {
        ledger.take(Item::new(word).expect("an item"));
    }
}
