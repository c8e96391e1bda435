//! The locks that every paper compares with, as published, for comparison with ours in the
//! simulator, in the model checker and in `bench locks`.
//!
//! | lock | bytes | a waiter | order |
//! |---|---|---|---|
//! | [`Tas`] | 1 | writes the lock over and over | free for all |
//! | [`Ttas`] | 1 | reads it, and stays away for longer each time | free for all |
//! | [`Ticket`] | 4 | reads the counter that all read | first come, first served |
//! | [`Mcs`] | 8 | reads its own node | first come, first served |
//! | [`McsStp`] | 8 | the same for a while, then sleeps | first come, first served |
//! | [`Clh`] | 8 | reads the node before its own | first come, first served |
//! | [`Futex`] | 8 | sleeps at once | free for all |
//!
//! They are for comparison, not for programs: no wait has a deadline, and no lock takes account of
//! how crowded the machine is. The queue locks need a node for each acquisition, contended or not,
//! and keep it until they unlock: when none is free, `try_lock` fails and `lock` naps until there
//! is one. A lock that a thread waits for at a `fork` is of no use in the child.

mod clh;
mod futex;
mod mcs;
mod mcs_stp;
pub(crate) mod node;
mod tas;
mod ticket;
mod ttas;

use crate::registry::shows;

crate::locks!(classic => shows);
pub(crate) use ttas::stay_away;
