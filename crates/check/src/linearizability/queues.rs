//! Sequential models of queues.

use std::collections::VecDeque;

use super::Sequential;

/// A double-ended queue of words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    items: VecDeque<Waiting>,
    order: Order,
    room: usize,
}

/// An item, and the number of later items that were taken before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Waiting {
    item: u64,
    overtaken: usize,
}

/// The order in which a [`Queue`] hands out its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Exact: from its two ends.
    Exact,
    /// At the front, one of the `k` oldest items, so that no item is overtaken by more than `k - 1`
    /// others. There is no back.
    Within(usize),
    /// Any order.
    None,
}

/// The operations on a [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueCall {
    /// Adds an item at the back.
    Push(u64),
    /// Takes the item at the front.
    Front,
    /// Takes the item at the back.
    Back,
}

/// The answers of a [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAnswer {
    /// The item was added.
    Pushed,
    /// There is no room.
    Full,
    /// This item was taken.
    Got(u64),
    /// The queue is empty.
    Empty,
    /// The operation failed because of another thread, and tells nothing. Always allowed.
    Nothing,
}

impl Queue {
    /// Creates an empty queue, with room for `room` items.
    #[must_use]
    pub fn new(order: Order, room: usize) -> Self {
        Self { items: VecDeque::new(), order, room }
    }

    /// Takes `item`, if it may be taken at that end; returns whether it did.
    fn take(&mut self, call: QueueCall, item: u64) -> bool {
        let Some(place) = self.items.iter().position(|waiting| waiting.item == item) else {
            return false;
        };
        self.items.remove(place);
        match self.order {
            Order::None => true,
            Order::Exact => place == if call == QueueCall::Back { self.items.len() } else { 0 },
            Order::Within(k) => {
                let mut older = self.items.iter_mut().take(place);
                older.all(|waiting| {
                    waiting.overtaken += 1;
                    waiting.overtaken < k
                }) && place < k
            }
        }
    }

    fn push(&mut self, item: u64) {
        self.items.push_back(Waiting { item, overtaken: 0 });
        if self.order == Order::None {
            // Equal states must compare equal.
            self.items.make_contiguous().sort_unstable();
        }
    }
}

impl Sequential for Queue {
    type Operation = QueueCall;
    type Answer = QueueAnswer;

    fn step(&mut self, &call: &QueueCall, &answer: &QueueAnswer) -> bool {
        match (call, answer) {
            (_, QueueAnswer::Nothing) => true,
            (QueueCall::Push(_), QueueAnswer::Full) => self.items.len() >= self.room,
            (QueueCall::Push(item), QueueAnswer::Pushed) => {
                self.push(item);
                self.items.len() <= self.room
            }
            (QueueCall::Push(_), _) => false,
            (_, QueueAnswer::Empty) => self.items.is_empty(),
            (_, QueueAnswer::Got(item)) => self.take(call, item),
            (_, QueueAnswer::Pushed | QueueAnswer::Full) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QueueAnswer::{Empty, Full, Got, Pushed};
    use super::QueueCall::{Back, Front, Push};
    use super::*;

    fn tells(mut queue: Queue, story: &[(QueueCall, QueueAnswer)]) -> bool {
        story.iter().all(|(call, answer)| queue.step(call, answer))
    }

    #[test]
    fn an_exact_queue_gives_what_is_at_its_ends() {
        let queue = || Queue::new(Order::Exact, 3);
        let three = [(Push(1), Pushed), (Push(2), Pushed), (Push(3), Pushed)];
        let then = |more: &[_]| tells(queue(), &[&three, more].concat());
        assert!(then(&[(Front, Got(1)), (Back, Got(3)), (Front, Got(2)), (Back, Empty)]));
        assert!(then(&[(Push(4), Full)]));
        assert!(!then(&[(Push(4), Pushed)]));
        assert!(!then(&[(Front, Got(2))]));
        assert!(!then(&[(Front, Empty)]));
        assert!(!tells(queue(), &[(Push(1), Full)]));
    }

    #[test]
    fn one_within_bounds_gives_one_of_the_oldest_and_leaves_none_behind() {
        let queue = || Queue::new(Order::Within(2), 4);
        let four = [1, 2, 3, 4].map(|item| (Push(item), Pushed));
        let then = |more: &[_]| tells(queue(), &[&four, more].concat());
        assert!(then(&[(Front, Got(2)), (Front, Got(1)), (Front, Got(4)), (Front, Got(3))]));
        assert!(!then(&[(Front, Got(3))]));
        assert!(!then(&[(Front, Got(2)), (Front, Got(3))]));
        assert!(!then(&[(Front, Empty)]));
    }

    #[test]
    fn one_without_order_gives_each_item_once() {
        let queue = || Queue::new(Order::None, 3);
        let two = [(Push(1), Pushed), (Push(2), Pushed)];
        let then = |more: &[_]| tells(queue(), &[&two, more].concat());
        assert!(then(&[(Front, Got(2)), (Front, Got(1)), (Front, Empty)]));
        assert!(!then(&[(Front, Got(2)), (Front, Got(2))]));
        assert!(!then(&[(Front, Empty)]));
    }
}
