//! A simulated NUMA machine as a platform of Antiphon: `Sim`.
//!
//! Algorithms that are generic over [`Platform`](antiphon_platform::Platform) run here unchanged,
//! on any number of sockets and cores, and every line transfer, wake-up and time slice has a cost.
//! The same seed gives the same run, step by step, in any process. **Every figure is simulated**:
//! it is a prediction of the model, not a measurement of any machine. The crate's README lists what
//! the model leaves out.
//!
//! ```
//! use antiphon_platform::{Atomic, AtomicInteger, Atomics};
//! use antiphon_sim::{Machine, OwnLine, Sim, Simulation, count, finished, think};
//! use std::{rc::Rc, sync::atomic::Ordering::Relaxed};
//!
//! let counter = Rc::new(OwnLine(<Sim as Atomics>::U64::ZERO));
//! let outcome = Simulation::new(Machine::two_sockets(), 1)
//!     .threads(28, {
//!         let counter = Rc::clone(&counter);
//!         move |_| {
//!             while !finished() {
//!                 counter.fetch_add(1, Relaxed);
//!                 count();
//!                 think(200);
//!             }
//!         }
//!     })
//!     .run(100_000)
//!     .expect("nobody waits for ever");
//! assert!(outcome.counts.remote_transfers > 0);
//! assert!(counter.load(Relaxed) >= outcome.total_operations());
//! ```
//!
//! A simulation runs on the host thread that calls [`Simulation::run`]; several may run at a time
//! on several host threads, and share nothing.

mod aside;
mod atomic;
mod balance;
mod buffer;
mod clocks;
mod contention;
mod costs;
mod distance;
mod events;
mod fair;
mod guests;
mod handler;
mod host;
mod interrupt;
mod kicks;
mod line;
mod lines;
mod links;
mod machine;
mod model;
mod nodes;
mod os;
mod outcome;
mod pages;
mod parking;
mod platform;
mod random;
mod rank;
mod requests;
mod schedule;
mod shadow;
mod shared;
mod sharers;
mod simulation;
mod sleep;
mod spin;
mod step;
mod thread;
mod watch;
mod word;
mod words;
mod workload;
mod world;

pub use aside::{Aside, aside, call_back, step_aside};
pub use atomic::{SimU8, SimU16, SimU32, SimU64};
pub use contention::{Contention, Pace, Use, contend};
pub use guests::Guests;
pub use handler::{await_interrupt, interrupt, interrupt_others};
pub use kicks::kick_once;
pub use machine::{
    BadShape, CPUS, Class, Delivery, Description, Entry, Idle, Interrupt, Kernel, Kind, Known,
    Level, Link, Machine, Number, PRESETS, Part, Paths, Topology, Unit, Wakes, Wrong, known,
};
pub use model::{Arbitration, Memory, Model, Placement};
pub use outcome::{Account, Counts, Outcome, Steals, Stuck, Wait, WaitsOn, Why, jain};
pub use platform::Sim;
pub use schedule::{Schedule, Stop, Turn, give, move_to, ran_ns, sleeps, system_call, waited_ns};
pub use simulation::Simulation;
pub use workload::{Access, OwnLine, Owns, count, effective_rank, finished, name_line, note, now};
pub use workload::{owns, run_instructions, set_rank, think, touch, up_since, work};
