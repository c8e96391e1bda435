//! Document 004, slides on NUMA-aware blocking locks. Their plots' values are not in the text: what
//! is compared is what the text says of them.

pub mod blocking;
pub mod numa;
pub mod parking;
pub mod phases;
pub mod psearchy;
pub mod snodes;

use super::model::Locks;

/// A file for each thread in one directory, on the machine of the slides.
const CREATE: Locks = Locks { machine: "8s-120c", case: "create", ms: 10.0 };
/// A socket, half the machine, the machine, two and four times as many threads as cores.
const THREADS: [usize; 6] = [1, 15, 60, 120, 240, 480];
const MACHINE: usize = 120;
const TWICE: usize = 240;
const FOUR_TIMES: usize = 480;
