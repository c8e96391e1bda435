//! Policies of a [`Pool`](super::Pool): which task a worker runs next, and from which worker it
//! steals.
//!
//! Most of the crate's policies are a [`Scheme`] of an order and a way to steal; others are types
//! of their own. Your own policy is a type that implements [`Policy`], built from parts of the
//! crates `antiphon-runtime` and `antiphon-sync`:
//!
//! ```
//! use antiphon::pool::{Pool, policy::Policy};
//! use antiphon_linux::Linux;
//! use antiphon_runtime::sched::{Others, Own};
//! use antiphon_sync::queue::{Deque, Item, Stolen};
//!
//! /// Runs the newest task first, and every eighth time the oldest.
//! struct Mostly;
//!
//! // SAFETY: tasks only go into the worker's queue, and only come out of queues.
//! unsafe impl Policy<Linux> for Mostly {
//!     type Queue = Deque<Linux>;
//!     /// The number of tasks that the worker has taken.
//!     type State = u32;
//!
//!     fn queue(&self) -> Deque<Linux> {
//!         Deque::new(128, 1 << 20)
//!     }
//!
//!     fn pop(&self, own: &Own<'_, Deque<Linux>>, taken: &mut u32) -> Option<Item> {
//!         *taken = taken.wrapping_add(1);
//!         if taken.is_multiple_of(8) { own.pop_front() } else { own.pop_back() }
//!     }
//!
//!     fn steal(
//!         &self,
//!         own: &Own<'_, Deque<Linux>>,
//!         _: &mut u32,
//!         others: &Others<'_, Deque<Linux>>,
//!     ) -> Stolen {
//!         others.try_each(0..others.count(), |victim| own.steal(victim, |there| there / 2))
//!     }
//! }
//!
//! let pool = Pool::with_policy(2, Mostly)?;
//! assert_eq!(pool.spawn(|| "run").join().unwrap(), "run");
//! # Ok::<(), std::io::Error>(())
//! ```

pub use antiphon_runtime::sched::{
    Adaptive, Aging, BoxedPolicy, ByWeight, Deadlines, Fifo, InBlocks, Lazy, Lifo, LifoSlot,
    Neighbours, Policy, Ranked, Requests, Reverse, Scheme, Share, Spill, Staged, Steal, Stochastic,
    Swap, Switch, Tickets, UnknownPolicy,
};
