//! The placement of threads in a simulation: players, hogs and helpers, by number.

use antiphon_report::stats::Random;
use antiphon_runtime::coop::{Domains, Options, WEIGHT};

use super::cases::{Case, Placement};
use crate::bench::event_loop::clip::Clip;
use crate::bench::event_loop::player::{Player, Window};

/// The settings that rows have in common.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub machine: &'a antiphon_sim::Machine,
    pub seed: u64,
    /// Counted time, and the warm-up before it.
    pub counted_ns: u64,
    pub warm_ns: u64,
    pub cores: usize,
    /// Average number of players on each core.
    pub players: usize,
    /// Number of hogs on each core.
    pub hogs: usize,
    pub placement: Placement,
    /// Scheduling options of cooperating programs.
    pub options: Options,
    /// Period in which each thread gets a turn if the system has no hints.
    pub round_ns: u64,
}

/// The parameters of a player.
#[derive(Clone, Copy)]
pub struct Seat {
    pub core: usize,
    pub misbehaves: bool,
    /// Share of a core that it wants.
    pub demand: f64,
    /// Seed of its clip and of its random choices.
    pub seed: u64,
    pub window: Window,
}

/// The plan of a simulation.
pub struct Plan {
    pub players: Vec<Seat>,
    /// Number of members of each core, as published when all had joined.
    pub domains: Domains,
    /// Time from which the run counts, and release time of the last frame.
    pub count_ns: u64,
    pub end_ns: u64,
}

/// Minimal time from the beginning to the first frames.
const LEAD_NS: u64 = 1_000_000;
/// The least and greatest demand of a player, as multiples of the average.
const LEAST: f64 = 0.6;
const MOST: f64 = 1.4;

impl Plan {
    /// Makes the plan of a case.
    pub fn new(setting: &Setting<'_>, case: &Case) -> Self {
        let Setting { seed, cores, counted_ns, warm_ns, placement, .. } = *setting;
        let of_core = case.players.unwrap_or(setting.players);
        let period_ns = 1_000_000_000 / case.hz;
        let count_ns = LEAD_NS + period_ns + warm_ns;
        let end_ns = count_ns + counted_ns;
        let mut random = Random(seed);
        let mut demands: Vec<_> =
            (0..cores * of_core).map(|number| demand(case, number % of_core, of_core)).collect();
        if placement != Placement::Even {
            shuffle(&mut demands, &mut random);
        }
        let mut domains = Domains::new(cores);
        let mut players = Vec::with_capacity(demands.len());
        for (number, demand) in demands.into_iter().enumerate() {
            let core = match placement {
                Placement::Even => number / of_core,
                Placement::Join => domains.join(u64::from(WEIGHT)),
                Placement::Lot | Placement::Move => (random.draw() % cores as u64) as usize,
            };
            let begin_ns = LEAD_NS + random.draw() % period_ns;
            let window = Window { begin_ns, period_ns, count_ns, end_ns };
            let misbehaves = case.misbehaves && number % of_core == 0;
            let seed = seed.wrapping_mul(1000).wrapping_add(number as u64);
            players.push(Seat { core, misbehaves, demand, seed, window });
        }
        let mut loads = vec![0; cores];
        players.iter().for_each(|seat| loads[seat.core] += u64::from(WEIGHT));
        Self { players, domains: Domains::of(loads), count_ns, end_ns }
    }

    /// Returns the numbers of the players of a core.
    pub fn on(&self, core: usize) -> impl Iterator<Item = usize> {
        let here = move |seat: &Seat| seat.core == core;
        (0..self.players.len()).filter(move |&number| here(&self.players[number]))
    }
}

impl Seat {
    /// Makes the player, at the start of its clip.
    pub fn player(&self) -> Player {
        let Self { seed, demand, window, .. } = *self;
        Player::new(Clip::new(seed, window.period_ns, demand, false), window)
    }
}

/// Returns the share of a core that the player at index `place` of `of` players wants.
fn demand(case: &Case, place: usize, of: usize) -> f64 {
    if of == 1 {
        return case.demand;
    }
    case.demand * (LEAST + (MOST - LEAST) * place as f64 / (of - 1) as f64)
}

/// The shuffle of Fisher and Yates.
fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        all.swap(last, (random.draw() % (last as u64 + 1)) as usize);
    }
}
