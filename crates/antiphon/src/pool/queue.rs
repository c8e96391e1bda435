//! Queues of tasks, for [policies](super::policy) of your own.

pub use antiphon_sync::queue::{
    ChaseLev, Deque, Full, Item, MultiQueue, RankedQueue, RelaxedQueue, Slotted, Stolen, WorkQueue,
};
