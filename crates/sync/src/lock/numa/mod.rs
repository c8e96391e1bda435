//! The NUMA-aware locks that every paper compares with, as they were published, to stand beside
//! ours in the simulator, in the model checker and in `bench locks`.
//!
//! | lock | bytes, 8 sockets | a waiter | order | bypass |
//! |---|---|---|---|---|
//! | [`Cna`] | 8 | reads its own node | those of the owner's socket first | by lot |
//! | [`CBoMcs`] | 576 | the same; one a socket backs off | the same; sockets barge | none |
//! | [`CTktMcs`] | 576 | the same; one a socket draws a ticket | the same; sockets in turn | bounded |
//!
//! They are to compare with and not for programs, as those in [`classic`](super::classic): no wait
//! has a deadline, none minds how crowded the machine is, and a lock that somebody waits for at a
//! `fork` is of no use in the child. A free lock owns no node.

mod cna;
mod cohort;
mod queue;

pub use cna::Cna;
pub use cohort::{CBoMcs, CTktMcs, Cohort, Oblivious};
