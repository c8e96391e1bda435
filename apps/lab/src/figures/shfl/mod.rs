//! Document 000, slides of a PhD defence on locks. Their plots' values are not in the text: what is
//! compared is what the text says of them.

pub mod blocking_in_action;
pub mod create;
pub mod enumerate;
pub mod in_action;
pub mod mail;
pub mod memory;
pub mod scaling;
pub mod table;

use super::model::Locks;

/// The source of all that is compared.
const LOST: &str = "the plot's values are not in the text; bounds are from its words";

/// A file for each thread in one directory, on the machine of the slides.
const CREATE: Locks = Locks { machine: "8s-192c", case: "create", ms: 5.0 };
/// One thread, a socket, two, half the machine, the machine, and twice as many threads as cores.
const THREADS: [usize; 6] = [1, 24, 48, 96, 192, 384];
/// Of these, a socket, the machine, and twice as many.
const SOCKET: usize = 24;
const MACHINE: usize = 192;
const TWICE: usize = 384;
