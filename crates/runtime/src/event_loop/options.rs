//! The parameters of a loop.

/// The parameters of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How often a loop that is never idle checks its sources, in nanoseconds. Whatever this and
    /// `long_ns` are, a callback may go on for a microsecond if no timer is due.
    pub look_ns: u64,
    /// The shortest time between two polls for which no tier has set a time, in nanoseconds:
    /// because others' work is more important, others that have just been passed over are due, or
    /// nothing is known of others.
    pub poll_ns: u64,
    /// A callback that takes longer is [reported](super::Trouble::Long), in nanoseconds. A callback
    /// that keeps to its [budget](super::Context::is_over) takes at most half of that.
    pub long_ns: u64,
    /// For how long timers may be continuously due until that is
    /// [reported](super::Trouble::Behind), in nanoseconds.
    pub behind_ns: u64,
}

impl Default for Options {
    /// The values 250 µs, 100 µs, 1 ms, and 200 ms.
    fn default() -> Self {
        Self { look_ns: 250_000, poll_ns: 100_000, long_ns: 1_000_000, behind_ns: 200_000_000 }
    }
}
