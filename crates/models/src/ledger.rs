//! The fate of the items of a queue, in a model.

use antiphon_check::Data;
use antiphon_check::linearizability::queues::QueueAnswer::{self, Empty, Got};
use antiphon_sync::queue::Item;

/// The fate of items: each is made by one thread, and taken by one that sees that.
pub struct Ledger {
    pub made: Vec<Data<bool>>,
    taken: Vec<Data<bool>>,
}

impl Ledger {
    pub fn new(items: usize) -> Self {
        let no = || (0..items).map(|_| Data::new(false)).collect();
        Self { made: no(), taken: no() }
    }

    /// Item number `number`, which is about to be put in.
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

    /// Two threads that take one item are a data race, or see each other.
    pub fn take_number(&self, number: usize) {
        assert!(self.made[number].get(), "what came before it was put in");
        assert!(!self.taken[number].get(), "taken twice");
        self.taken[number].set(true);
    }

    /// An item that is not made was refused.
    pub fn assert_all_taken(&self) {
        for (made, taken) in self.made.iter().zip(&self.taken) {
            assert_eq!(made.get(), taken.get(), "lost");
        }
    }
}

pub fn found(item: Option<Item>) -> QueueAnswer {
    item.map_or(Empty, |item| Got(item.word()))
}

/// Takes what was answered.
pub fn settle(ledger: &Ledger, answer: QueueAnswer) {
    if let Got(word) = answer {
        ledger.take(Item::new(word).expect("an item"));
    }
}
