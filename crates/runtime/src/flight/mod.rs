//! A flight recorder: the recent activities of each worker of a crew, for later inspection.
//!
//! | file | contents |
//! |---|---|
//! | `ring` | the storage: the latest records of one writer, for any reader |
//! | `event` | the recorded events |
//! | `log` | the records that a worker writes |
//! | `pace` | how often a worker reads the clock for that |
//!
//! It is always on, so it must cost next to nothing: most tasks are counted, and some timed.

mod event;
mod log;
mod pace;
mod ring;

use alloc::vec::Vec;

use antiphon_platform::Platform;

pub use event::{Event, Found, LONG_NS, Sample, What};
pub(crate) use log::Log;
pub use pace::Pace;
pub use ring::Ring;

/// The number of words of an [`Event`].
const WORDS: usize = 4;

/// The ring with the events of a worker.
pub(crate) type Records<P> = Ring<P, WORDS>;

/// Returns when the latest event of a ring ended; `None`: it has none, or it is being overwritten.
pub(crate) fn latest_ns<P: Platform>(ring: &Records<P>) -> Option<u64> {
    ring.latest().and_then(Event::of_words).map(|event| event.ended_ns)
}

/// Returns the latest events of a ring, the oldest first.
pub(crate) fn events<P: Platform>(ring: &Records<P>) -> Vec<Event> {
    ring.read().into_iter().filter_map(Event::of_words).collect()
}
