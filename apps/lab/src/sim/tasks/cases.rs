//! The tasks of each case: which threads make them ready, and what they cost.
//!
//! A packet is copied by a spawner, scanned by a task, and in some cases followed by a chain of
//! further tasks. Computing is simulated as time; only `cache` moves the packet's lines.

use antiphon_report::stats::Random;

/// The tasks that follow the scan of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// This number of tasks, each of which reads 20 random bytes.
    Reads(u32),
    /// This number of tasks and, after one packet in a thousand, two tasks that sleep.
    Sleeps(u32),
    /// A lattice, folded layer by layer: the first number of tasks, or the second for one packet in
    /// two hundred; the time of each is proportional to the width of its layer.
    Folds(u32, u32),
}

/// A case of the dissertation.
pub struct Case {
    pub name: &'static str,
    pub figure: &'static str,
    pub about: &'static str,
    /// Number of packets of the published figure.
    pub packets: u32,
    pub spawners: usize,
    /// Capacity of a worker's queue, in tasks.
    pub room: usize,
    /// Time of a scan in addition to its usual cost.
    pub extra_ns: u64,
    pub then: Then,
}

/// Time for which the slow tasks of `bimodal` keep their worker: they sleep in a system call.
pub const SLEEP_NS: u64 = 20_000_000;

const GENERAL: Case = Case {
    name: "general",
    figure: "7.1-7.3",
    about: "one spawner, as fast as it can",
    packets: 50_000,
    spawners: 1,
    room: 128,
    extra_ns: 0,
    then: Then::Nothing,
};

/// All cases.
pub static CASES: [Case; 8] = [
    GENERAL,
    Case {
        name: "large",
        figure: "7.4",
        about: "the same, 2 million packets",
        packets: 2_000_000,
        ..GENERAL
    },
    Case {
        name: "heavy",
        figure: "7.5",
        about: "the same, 500 ns more a packet",
        extra_ns: 500,
        ..GENERAL
    },
    Case { name: "spawners", figure: "7.6", about: "the same, 4 spawners", spawners: 4, ..GENERAL },
    Case {
        name: "cache",
        figure: "cache effects",
        about: "10 spawners; then 10 tasks in a row, each of which reads the packet",
        packets: 500_000,
        spawners: 10,
        room: 1024,
        then: Then::Reads(10),
        ..GENERAL
    },
    Case {
        name: "bimodal",
        figure: "bimodal",
        about: "10 spawners; then 3 tasks in a row, and rarely two that sleep for 20 ms",
        packets: 100_000,
        spawners: 10,
        room: 1024,
        then: Then::Sleeps(3),
        ..GENERAL
    },
    Case {
        name: "one-bimodal",
        figure: "Domainslib",
        about: "the same of one spawner",
        packets: 100_000,
        room: 1024,
        then: Then::Sleeps(3),
        ..GENERAL
    },
    Case {
        name: "options",
        figure: "options",
        about: "one spawner of options: 20 tasks in a row each, or rarely 5000",
        packets: 30_000,
        room: 1 << 15,
        then: Then::Folds(20, 5000),
        ..GENERAL
    },
];

impl Case {
    /// Returns the number of layers of a packet's lattice, if it has one.
    pub fn depth(&self, packet: u32) -> Option<u32> {
        let Then::Folds(short, long) = self.then else { return None };
        // The same packets for all subjects.
        let is_long = Random(packet.into()).draw().is_multiple_of(LONG_OF);
        Some(if is_long { long } else { short })
    }
}

/// One option in this many is long.
const LONG_OF: u64 = 200;

/// Costs of the program, on an otherwise idle CPU.
pub struct Costs {
    pub name: &'static str,
    /// Time of a scan of [`MEAN_BYTES`].
    pub scan_ns: u64,
    /// Time of a spawner from one packet to the next, without scheduling it.
    pub spawn_ns: u64,
    /// Time of a task that follows.
    pub step_ns: u64,
    /// Time of a thousand nodes of a lattice.
    pub nodes_ns: u64,
}

/// Mean length of packets.
pub const MEAN_BYTES: u64 = 2_135;

/// Costs by program.
pub static COSTS: [Costs; 2] = [
    Costs {
        // The dissertation's program, derived from its figures.
        name: "ocaml",
        // Five domains, one of which spawns, scan 0.33 M/s.
        scan_ns: 12_000,
        // One spawner makes at most 1.5 M/s.
        spawn_ns: 600,
        // 110 domains, ten of which spawn, complete 2.05 M/s: 49 µs each, for eleven tasks.
        step_ns: 3_700,
        // On 5 domains, last in, first out, 99 % of options have ended after 9 s: 45 s of CPU time
        // for 1.9 thousand million nodes, most of them in long options.
        nodes_ns: 22_000,
    },
    Costs {
        // Copying and scanning were measured, in a plain loop on a Xeon of 2023; the rest is
        // estimated.
        name: "rust",
        scan_ns: 1_540,
        spawn_ns: 100,
        step_ns: 200,
        // Measured: `antiphon bench options --against loop`.
        nodes_ns: 230,
    },
];

/// Returns the length of packet `drawn`, of ten.
pub const fn bytes(drawn: u32) -> u64 {
    2_000 + 30 * (drawn % 10) as u64
}
