//! The costs of the parts of a conference, on an otherwise idle CPU.

use crate::bench::mix::conference::{PERIOD_NS, WINDOW_NS};

/// Time from one frame to the next, as in `bench mix`.
pub const EACH_NS: u64 = PERIOD_NS;
/// A frame that is sent later than this after it was due is a breach.
pub const LATE_NS: u64 = WINDOW_NS;

/// The costs of a frame.
pub struct Codec {
    pub name: &'static str,
    pub about: &'static str,
    /// Cost of receiving and decoding a frame.
    pub receive_ns: u64,
    /// Cost of adding a frame to the others.
    pub mix_ns: u64,
    /// Cost of encoding and sending a frame.
    pub send_ns: u64,
    /// Cost of making the task that encodes and sends.
    pub spawn_ns: u64,
}

/// The codecs of frames.
pub static CODECS: [Codec; 4] = [
    Codec {
        name: "published",
        about: "a guess: 1400 conferences on 100 workers are at the edge of 10 ms, as published",
        // Frames are due together, so 10 % more or less of this time makes 0 to 20 % of them late.
        receive_ns: PUBLISHED_NS,
        mix_ns: 2_000,
        send_ns: PUBLISHED_NS,
        // The time is that of packets in the same program.
        spawn_ns: 600,
    },
    // Medians, measured in plain loops on a Xeon at 2.5 GHz: the work of `bench mix`.
    Codec {
        name: "md5",
        about: "the same in Rust, as measured",
        receive_ns: 2_900,
        mix_ns: 60,
        send_ns: 2_700,
        spawn_ns: 60,
    },
    Codec {
        name: "g711",
        about: "G.711, 160 bytes, as measured",
        receive_ns: 140,
        mix_ns: 25,
        send_ns: 310,
        spawn_ns: 60,
    },
    Codec {
        name: "opus",
        about: "Opus, 960 samples at 64 kbit/s by libopus 1.3.1, as measured",
        receive_ns: 18_000,
        mix_ns: 130,
        send_ns: 110_000,
        spawn_ns: 60,
    },
];

const PUBLISHED_NS: u64 = 130_000;

/// Cost of a thread's switch from one fiber to another.
pub const SWITCH_NS: u64 = 100;
