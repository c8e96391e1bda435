//! First in, first out, with a slot for the task that became ready last.

use antiphon_platform::Platform;
use antiphon_sync::queue::{Item, Slotted, Stolen};

use super::policy::{Others, Own, Policy};
use super::spread::Spread;

/// The task that was made ready last is next, because its data is still in the cache, but at most
/// `in_a_row` times in a row; then the first is next. Starvation-free.
///
/// The last task is in a [slot](Slotted) of its own, from which other workers take it when it is
/// `age_ns` old: a worker that is busy for long keeps no task to itself.
///
/// ```
/// use antiphon_runtime::sched::{LifoSlot, Share, Steal};
///
/// let policy = LifoSlot::new(Steal { share: Share::Half }).in_a_row(3).age_ns(100_000);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LifoSlot<S> {
    spread: S,
    in_a_row: u32,
    age_ns: u64,
    capacity: usize,
    most: usize,
}

impl<S> LifoSlot<S> {
    /// Three in a row, as Tokio has it; others take the last when it is 100 µs old, as in Kotlin's
    /// coroutines. Room for 256 tasks at first, and for a million at most.
    pub const fn new(spread: S) -> Self {
        Self { spread, in_a_row: 3, age_ns: 100_000, capacity: 256, most: 1 << 20 }
    }

    /// After `in_a_row` tasks in a row from the slot, the first is next.
    #[must_use]
    pub fn in_a_row(self, in_a_row: u32) -> Self {
        Self { in_a_row, ..self }
    }

    /// Other workers take a task that has been in the slot for `age_ns` nanoseconds.
    #[must_use]
    pub fn age_ns(self, age_ns: u64) -> Self {
        Self { age_ns, ..self }
    }

    /// Each worker has room for `capacity` tasks at first, and for `most` at most, beside the one
    /// in the slot.
    #[must_use]
    pub fn capacity(self, capacity: usize, most: usize) -> Self {
        Self { capacity, most, ..self }
    }
}

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl<P: Platform, S: Spread> Policy<P> for LifoSlot<S> {
    type Queue = Slotted<P>;
    /// How many tasks in a row were from the slot.
    type State = u32;

    fn queue(&self) -> Slotted<P> {
        Slotted::new(self.capacity, self.most, self.age_ns)
    }

    fn pop(&self, own: &Own<'_, Slotted<P>>, row: &mut u32) -> Option<Item> {
        if *row < self.in_a_row
            && let Some(task) = own.pop_slot()
        {
            *row += 1;
            return Some(task);
        }
        *row = 0;
        own.pop_front()
    }

    fn steal(
        &self,
        own: &Own<'_, Slotted<P>>,
        _: &mut u32,
        others: &Others<'_, Slotted<P>>,
    ) -> Stolen {
        self.spread.steal(own, others, P::random)
    }
}

impl<P: Platform> Own<'_, Slotted<P>> {
    /// Takes the task in the slot.
    #[must_use]
    pub fn pop_slot(&self) -> Option<Item> {
        // SAFETY: `new`.
        unsafe { self.queue.pop_slot() }
    }
}
