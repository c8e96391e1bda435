//! The recent events of the workers of a pool: [`Pool::recording`](super::Pool::recording).
//!
//! A [`Recording`] has the [`Event`]s of each worker and the tasks that were [`Timed`]. It
//! summarizes them ([`Latency`], [`Spawned`]), and writes them as a timeline.

pub use antiphon_runtime::flight::{Event, Found, LONG_NS, Sample, What};

pub use crate::observe::{Latency, Part, Recorded, Recording, Span, Spawned, Timed, Times};
