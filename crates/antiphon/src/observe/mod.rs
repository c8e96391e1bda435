//! Records of tasks and fibers for people, and names of places in the program.
//!
//! Fibers and pools write here. This folder knows neither.
//!
//! | module | contents |
//! |---|---|
//! | [`timed`] | the record of a task that was timed, and the parts of its time |
//! | [`account`] | the same of a task that has not ended |
//! | [`recording`] | what a pool has recorded, and how long its tasks took |
//! | [`by_place`] | the same by the line that has spawned the tasks |
//! | [`trace`] | the same as a timeline for Perfetto |
//! | [`cycles`] | how the time of a fiber is split that did not look at the clock |
//! | [`frames`] | backtraces, as far as they say something to users |
//! | [`sources`] | which files are the library's |

mod account;
mod by_place;
mod cycles;
mod frames;
mod recording;
mod sources;
mod timed;
mod trace;

pub(crate) use account::Account;
pub use by_place::Spawned;
pub(crate) use cycles::{Cycles, PERIOD_NS, Parts, Skipped};
pub use frames::{Frame, Place, Trace};
pub(crate) use frames::{of, places, until, users, write};
pub use recording::{Latency, Recorded, Recording, Times};
pub(crate) use timed::{Caller, Spans};
pub use timed::{Part, Span, Timed};
