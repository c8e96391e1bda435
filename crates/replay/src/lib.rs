//! Replays a recorded program on a simulated machine, to find out which lock it would need there.
//!
//! ```text
//!   Trace ──► Plan ──► Script ──► Play ──► Played
//!         what each    with so     on a     how fast, how long threads
//!         thread does  many        machine  waited, and where
//!                      threads
//! ```
//!
//! The locks are the library's own code, and between them the threads do what was recorded. **Every
//! figure is simulated.** The simulation does not know how the program's own data would move
//! between caches ([`Play::data_lines`] lets each critical section touch some lines), what threads
//! would do differently in another order, or how fast the machine's CPUs are compared with the
//! recorded ones.
//!
//! ```
//! use std::sync::Arc;
//! use antiphon_replay::{GLIBC, Plan, Play, Script, Subject};
//! use antiphon_sim::{Arbitration, Machine};
//! use antiphon_trace::{Event, Lock, LockKind, Site, Thread, Trace, What};
//!
//! let take = What::Takes { lock: 0, site: 0, shared: false, tried: false };
//! let events = [(10, take), (250, What::Releases { lock: 0 })];
//! let events = events.map(|(at_ns, what)| Event { at_ns, what }).to_vec();
//! let trace = Trace {
//!     locks: vec![Lock { kind: LockKind::Mutex, address: 0x5000, process: 0 }],
//!     sites: vec![Site::default()],
//!     threads: vec![Thread { events, ..Thread::default() }],
//!     ..Trace::default()
//! };
//! let script = Arc::new(Script::recorded(&Arc::new(Plan::new(&trace))));
//! let (machine, arbitration) = (Machine::eight_sockets(), Arbitration::Fifo);
//! let play = Play { machine, arbitration, seed: 1, data_lines: 0 };
//! let played = play.play(&script, Subject::named(GLIBC).expect("a lock")).expect("an end");
//! assert!(played.takes == 1 && played.end_ns >= 240);
//! ```

mod export;
pub mod locks;
mod outcome;
mod plan;
mod random;
mod recommend;
mod scale;
mod stage;
mod step;
mod subject;
mod window;

pub use export::timeline;
pub use locks::IDEAL;
pub use outcome::{Played, SiteTimes};
pub use plan::{Cleaned, Lock, Plan, Program};
pub use recommend::{Confidence, Evidence, Recommendation, Row, Verdict, recommend};
pub use scale::{Script, Work};
pub use stage::Play;
pub use step::{Step, Timed};
pub use subject::{GLIBC, Subject};
pub use window::middle;
