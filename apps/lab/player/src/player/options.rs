//! The parameters of a player.

use crate::importance::Scale;

/// The options of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The look-ahead; programs of a group share it.
    pub scale: Scale,
    /// How long before its due time a frame that is not decoded is dropped, in nanoseconds: the
    /// remaining time would not suffice for most frames, and work on a frame begun too late is
    /// wasted.
    pub margin_ns: u64,
    /// A different number for each player of a group: of frames that are due at the same time,
    /// players then lose different ones, and each loses as many.
    pub phase: u64,
    /// Number of times that the clip is played; `None`: until the loop stops.
    pub passes: Option<u64>,
    /// Whether pictures have a [counter](crate::counter), which is read when they are shown.
    pub has_counter: bool,
}

impl Default for Options {
    /// One pass, without a counter, with the usual look-ahead and a margin of 2 ms.
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
