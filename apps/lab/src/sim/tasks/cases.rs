//! The tasks of each case: which thread makes them ready, and what they cost.
//!
//! A packet is copied by a spawner, scanned by a task, and in some cases followed by further tasks,
//! one after the other. Times are simulated computing; only `cache` has the packet's lines
//! move.

use antiphon_report::stats::Random;

/// The tasks that follow the scan of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// A number of tasks, each of which reads 20 bytes at random.
    Reads(u32),
    /// A number of tasks; and, after one packet in a thousand, two that sleep.
    Sleeps(u32),
    /// A lattice, folded layer by layer: as many tasks as the first number says, or for one packet
    /// in two hundred as many as the second; each takes as long as its layer is wide.
    Folds(u32, u32),
}

/// A case of the dissertation.
pub struct Case {
    pub name: &'static str,
    pub figure: &'static str,
    pub about: &'static str,
    /// The packets of the published figure.
    pub packets: u32,
    pub spawners: usize,
    /// How many tasks a worker has room for.
    pub room: usize,
    /// Beside what scanning takes.
    pub extra_ns: u64,
    pub then: Then,
}

/// How long the slow tasks of `bimodal` keep their worker: they sleep in the system.
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

/// All of them.
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
    /// How many layers a packet's lattice has, if it has one.
    pub fn depth(&self, packet: u32) -> Option<u32> {
        let Then::Folds(short, long) = self.then else { return None };
        // The same ones for all subjects.
        let is_long = Random(packet.into()).draw().is_multiple_of(LONG_OF);
        Some(if is_long { long } else { short })
    }
}

/// One option of this many is long.
const LONG_OF: u64 = 200;

/// The costs of the program, on a CPU of its own.
pub struct Costs {
    pub name: &'static str,
    /// A scan of [`MEAN_BYTES`].
    pub scan_ns: u64,
    /// The time of a spawner from one packet to the next, but for scheduling it.
    pub spawn_ns: u64,
    /// A task that follows.
    pub step_ns: u64,
    /// A thousand nodes of a lattice.
    pub nodes_ns: u64,
}

/// The packets' mean length.
pub const MEAN_BYTES: u64 = 2_135;

/// The costs, by program.
pub static COSTS: [Costs; 2] = [
    Costs {
        // The dissertation's, made out of its figures.
        name: "ocaml",
        // Five domains, of which one spawns, scan 0.33 M/s.
        scan_ns: 12_000,
        // No more than 1.5 M/s come from one spawner.
        spawn_ns: 600,
        // 110 domains, of which ten spawn, end 2.05 M/s: 49 µs each, and eleven tasks.
        step_ns: 3_700,
        // On 5 domains, last in, first out, 99 % of options have ended after 9 s: 45 s of CPU time
        // for 1.9 thousand million nodes, most of them of the long ones.
        nodes_ns: 22_000,
    },
    Costs {
        // Copying and scanning is measured, in a plain loop on a Xeon of 2023; the rest is
        // estimated.
        name: "rust",
        scan_ns: 1_540,
        spawn_ns: 100,
        step_ns: 200,
        // Measured: `antiphon bench options --against loop`.
        nodes_ns: 230,
    },
];

/// The length of the packet that was drawn, of ten.
pub const fn bytes(drawn: u32) -> u64 {
    2_000 + 30 * (drawn % 10) as u64
}
