//! First in, first out, with a slot for the task that became ready last.

use antiphon_platform::Platform;
use antiphon_sync::queue::{Item, Slotted, Stolen};

use super::policy::{Others, Own, Policy};
use super::spread::Spread;

/// The task that became ready last is next, because its data is still in the cache, but at most
/// `in_a_row` times in a row; then the first is next. Starvation-free.
///
/// The last task is in a separate [slot](Slotted), from which other workers take it when it is
/// `age_ns` old: a worker that is in a long task does not keep it.
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
    /// Three in a row, as in Tokio; others take the last task when it is 100 µs old, as in Kotlin's
    /// coroutines. Room for 256 tasks at first, and for at most a million.
    pub const fn new(spread: S) -> Self {
        Self { spread, in_a_row: 3, age_ns: 100_000, capacity: 256, most: 1 << 20 }
    }

    /// After `in_a_row` consecutive tasks from the slot, the first task of the queue is next.
    #[must_use]
    pub fn in_a_row(self, in_a_row: u32) -> Self {
        Self { in_a_row, ..self }
    }

    /// Other workers take a task that has been in the slot for `age_ns` nanoseconds.
    #[must_use]
    pub fn age_ns(self, age_ns: u64) -> Self {
        Self { age_ns, ..self }
    }

    /// Each worker has room for `capacity` tasks at first, and for at most `most`, in addition to
    /// the one in the slot.
    #[must_use]
    pub fn capacity(self, capacity: usize, most: usize) -> Self {
        Self { capacity, most, ..self }
    }
}

// SAFETY: each task goes into one queue, and tasks come only out of queues.
unsafe impl<P: Platform, S: Spread> Policy<P> for LifoSlot<S> {
    type Queue = Slotted<P>;
    /// Number of consecutive tasks from the slot.
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
        // SAFETY: the caller of `Own::new` owns the queue.
        unsafe { self.queue.pop_slot() }
    }
}
