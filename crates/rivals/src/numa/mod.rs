//! The NUMA-aware locks that every paper compares with, as published, for comparison with ours in
//! the simulator, in the model checker and in `bench locks`.
//!
//! | lock | bytes, 8 sockets | a waiter reads | order | bypass |
//! |---|---|---|---|---|
//! | [`Hbo`] | 2 | the lock, now and then; neighbours more often | free for all | none |
//! | [`Hclh`] | 576 | the node before its own | by socket, as they come | bounded |
//! | [`CBoMcs`] | 576 | its own node; one a socket the lock | by socket; sockets barge | none |
//! | [`CTktMcs`] | 576 | the same | by socket; these in turn | bounded |
//! | [`CohortRw`] | 1152 | the same; readers the lock | writers first | bounded |
//! | [`Malthusian`] | 16 | its own node; then sleeps | as few as will do | by lot |
//! | [`Hmcs`] | 576 | its own node | by socket; these in turn | bounded |
//! | [`Ahmcs`] | 1088 | its own node | the same, where it pays | bounded |
//! | [`Cna`] | 8 | its own node | those of the owner's socket first | by lot |
//!
//! Bypass by lot: waiters that are passed over come back at random, rarely. Bounded: at most as
//! many hand-overs as the budgets of all sockets add up to. None: waiters may starve.
//!
//! | | in `004_…`, "Lock's research efforts" | try | needs at unlock, as published |
//! |---|---|---|---|
//! | HBO | 2003 | by its first exchange | the lock |
//! | HCLH | 2006 | none in the paper; here, of the global queue | the caller's node |
//! | cohort | 2012 | here, of the global lock alone | the caller's node |
//! | readers-writer cohort | 2013 | of both, undone if it fails | the caller's node or counter |
//! | Malthusian | 2014 | as of the MCS lock | the caller's node |
//! | HMCS, AHMCS | 2015, 2016 | none in the paper; here, of the top queue | the caller's node |
//! | CNA | – | as of the MCS lock | the caller's node |
//!
//! The last column is an interface that a mutex does not have ("API change" in `000_…`): here the
//! lock names its owner's node, as in [`classic`](crate::classic). The lock contains the words for
//! each socket: for as many sockets as the type says, with no upper bound; if the machine has more,
//! some share the words. Those locks are as large when no thread contends, which `004_…`
//! criticises; the type for one socket is small.
//!
//! They are for comparison, not for programs: no wait has a deadline, no lock takes account of how
//! crowded the machine is, and a lock that a thread waits for at a `fork` is unusable in the child.
//! A free lock owns no node, so nothing is leaked when it is dropped.

mod ahmcs;
mod cna;
mod cohort;
mod cohort_rw;
mod hbo;
mod hclh;
mod hmcs;
mod malthusian;
mod queue;

use crate::registry::shows;

crate::locks!(numa => shows);
pub use cohort::{Cohort, Oblivious};
pub use cohort_rw::{CohortRw, Seat};
