//! Observability: records of tasks and fibers for people, and names of places in the program.
//!
//! Fibers and pools write here. This folder depends on neither.
//!
//! | module | contents |
//! |---|---|
//! | [`timed`] | the record of a timed task, and the parts of its time |
//! | [`account`] | the record of a timed task that has not ended |
//! | [`recording`] | the recording of a pool, and the latencies of its tasks |
//! | [`by_place`] | latencies by the line that has spawned the tasks |
//! | [`trace`] | a recording as a timeline for Perfetto |
//! | [`cycles`] | how the time of a fiber between two looks at the clock is split |
//! | [`frames`] | backtraces, with the frames that are meaningful to users |
//! | [`sources`] | which files belong to the library |

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
