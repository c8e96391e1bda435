//! Time without a shared cache line: stamps from the counters of CPUs, with a known uncertainty.
//!
//! A counter that all threads increment orders everything, but all threads wait for its cache line.
//! Each CPU has its own counter, which ticks at the rate of all others, but was started at another
//! moment. Two stamps whose distance is more than any two counters can be apart are in the order in
//! which they were taken; the order of two closer stamps is unknown. That is Ordo (S. Kashyap, C.
//! Min, K. Kim, T. Kim, "A scalable ordering primitive for multicore machines", EuroSys 2018).
//!
//! | module | contains |
//! |---|---|
//! | `measure` | how far counters are apart: two threads, a word, and what follows for all CPUs |
//! | `ordo` | [`Ordo`]: stamps, their order, and a stamp that is certainly later |
//! | `stamps` | [`Stamps`]: a protocol's source of versions, a counter or the clock |
//! | `tl2` | [`tl2`]: transactions ordered by such stamps |
//!
//! | invariant | says |
//! |---|---|
//! | CLOCK-1 | the result of the measurement is never less than counters are apart |
//! | CLOCK-2 | of two stamps, the one taken first never compares greater |
//!
//! CLOCK-1 rests on the order that [`Clocks::counter`](antiphon_platform::Clocks::counter)
//! promises. It holds whatever happens to the two threads: a delay between a reading and its
//! arrival makes a sample larger, and the minimum is taken. So one round is enough, and more rounds
//! only make the bound tighter; on a busy machine it takes some rounds until both threads run at
//! the same time.
//!
//! Nothing is known about a thread on a CPU that was not measured (one that came online later), nor
//! about a virtual machine that was moved to another host.

mod log;
mod measure;
mod ordo;
mod stamps;
pub mod tl2;

pub use measure::{Apart, Least, Meeting};
pub use ordo::{Order, Ordo};
pub use stamps::{SharedCounter, Stamps};
