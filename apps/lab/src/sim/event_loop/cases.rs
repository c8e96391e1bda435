//! The competitors on each core, and the placement of players.

use clap::ValueEnum;

/// The competitors on each core.
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether all players of a core share one group's part of it.
    pub one_group: bool,
    /// Whether one player of each core gives the core away too late.
    pub misbehaves: bool,
    /// Frames per second, if not the default.
    pub hz: u64,
    /// Number of players on a core, if not as asked for.
    pub players: Option<usize>,
    /// Share of a core that a player wants on average.
    pub demand: f64,
}

/// Seven of eight players want more than they get, as in the document (§5.2).
const DEMAND: f64 = 0.143;

const EACH: Case = Case {
    name: "each",
    about: "each player has a part of its core, as each hog",
    one_group: false,
    misbehaves: false,
    hz: 60,
    players: None,
    demand: DEMAND,
};

/// The cases, in the order of the list.
pub const CASES: [Case; 5] = [
    EACH,
    Case {
        name: "one",
        about: "the players of a core share one part of it, by how many frames they have shown",
        one_group: true,
        ..EACH
    },
    Case {
        name: "misbehave",
        about: "one player of each core works up to 10 ms longer in one of 100 chunks",
        misbehaves: true,
        ..EACH
    },
    Case {
        name: "alone-on-core",
        about: "one player on each core, which wants 0.6 of it",
        players: Some(1),
        demand: 0.6,
        ..EACH
    },
    Case {
        name: "light",
        about: "players of 100 Hz that want 0.05 of a core each",
        hz: 100,
        demand: 0.05,
        ..EACH
    },
];

/// Probability that a misbehaving player is late.
pub const MISBEHAVES: f64 = 0.01;

/// The placement of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Placement {
    /// As many on each core, with the same demands
    Even,
    /// Each on a core by lot
    Lot,
    /// Each where there are the fewest when it comes
    Join,
    /// By lot, and then each goes where there are fewer (t3 only)
    Move,
}
