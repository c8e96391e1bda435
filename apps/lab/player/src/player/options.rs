//! The parameters of a player.

use crate::importance::Scale;

/// How a player plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The look-ahead; programs of a group share it.
    pub scale: Scale,
    /// How long before its time a frame is dropped that is not decoded, in nanoseconds: what
    /// remains would not suffice for most frames, and a frame begun too late is work for nothing.
    pub margin_ns: u64,
    /// Another one for each player of a group: of frames that are due at once, players lose those
    /// of different times, and all of them as many.
    pub phase: u64,
    /// How often the clip is played; `None`: until the loop stops.
    pub passes: Option<u64>,
    /// Pictures have a [counter](crate::counter), which is to be read when they are shown.
    pub has_counter: bool,
}

impl Default for Options {
    /// Once, without a counter, with the usual look-ahead and a margin of 2 ms.
    fn default() -> Self {
        Self {
            scale: Scale::default(),
            margin_ns: 2_000_000,
            phase: 0,
            passes: Some(1),
            has_counter: false,
        }
    }
}
