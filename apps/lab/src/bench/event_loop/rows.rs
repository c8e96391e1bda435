//! The values of a row of a scheme.

use antiphon_report::schedule::Used;
use antiphon_report::stats::{Below, Quartiles, distribution};
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use super::cases::Cell;
use super::figures::{Figures, PlayerFigures};
use super::schemes::{self, Scheme, Shares};
use crate::bench::ratio::Ratio;
use crate::bench::report::{self, Beside, extend};
use crate::compete::level::Level;
use crate::compete::tardiness::Tardiness;
use crate::compete::terms::Grouping;

/// The results of one scheme under one set of conditions.
pub type Row = report::Row<Cell, Summary>;

/// The values of a row.
pub struct Summary {
    /// The tardiness of all timers.
    pub tardiness: Tardiness,
    /// The tardiness without the player that misbehaved.
    pub others: Option<Tardiness>,
    /// Distribution of tardiness, in microseconds.
    pub cdf: Vec<Below>,
    /// Figures of each player.
    pub players: Vec<PlayerFigures>,
    /// Medians of the figures of these names in [`Figures`].
    pub medians: Vec<(&'static str, Option<f64>)>,
    /// Quartiles of the 99th percentile of tardiness.
    pub quartiles: Option<Quartiles>,
    /// Ratio of the 99th percentile to the first peer's.
    pub ratio: Ratio,
    /// Ratio of chunks per second to the first peer's.
    pub ratio_chunks: Ratio,
    /// Why no sentinel ran.
    pub no_sentinel: Option<String>,
    /// The level of the run: which programs it competed with.
    pub level: Option<Level>,
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let players: Vec<_> = self.players.iter().map(PlayerFigures::json).collect();
        let mut object = Map::new();
        for keys in [
            json!({
                "tardiness_us": self.tardiness.json(),
                "others_tardiness_us": self.others.as_ref().map(Tardiness::json),
                "cdf_us": Below::object(&self.cdf), "players": players,
                "p25": self.quartiles.map(|of| of.p25), "p75": self.quartiles.map(|of| of.p75),
                "no_sentinel": self.no_sentinel, "level": self.level,
            }),
            self.medians.iter().map(|(name, median)| ((*name).to_owned(), json!(median))).collect(),
            json!(self.ratio),
            json!(self.ratio_chunks),
        ] {
            extend(&mut object, keys);
        }
        object.serialize(to)
    }
}

type Figure = (&'static str, fn(&Figures) -> Option<f64>);

/// Figures whose median is part of a row.
const MEDIANS: &[Figure] = &[
    ("jain_cpu", |of| Some(of.jain_cpu)),
    ("jain_cpu_players", |of| Some(of.jain_cpu_players)),
    ("jain_fps", |of| Some(of.jain_fps)),
    ("players_share", |of| Some(of.players_share)),
    ("fps", |of| Some(of.fps)),
    ("chunks_per_s", |of| Some(of.chunks_per_s)),
    ("switches_per_s", |of| Some(of.switches_per_s)),
    ("player_switches_per_s", |of| Some(of.player_switches_per_s)),
    ("cpus", |of| Some(of.cpus)),
    ("noise_us", |of| of.noise_us),
    ("beyond_noise_us", |of| of.beyond_noise_us),
];

impl Summary {
    /// Summarises the repetitions of a scheme.
    pub fn of(one: &Beside<'_, Cell, Figures>) -> Self {
        let figures = one.figures();
        let tardiness: Vec<_> = figures.iter().map(|one| one.tardiness).collect();
        let others: Vec<_> = figures.iter().filter_map(|one| one.others).collect();
        let mut points: Vec<_> =
            figures.iter().flat_map(|one| one.points_us.iter().copied()).collect();
        points.sort_by(f64::total_cmp);
        let players = figures.iter().map(|one| one.players.len()).min().unwrap_or(0);
        let player = |number: usize| {
            let all: Vec<_> = figures.iter().map(|one| &one.players[number]).collect();
            PlayerFigures::medians(&all)
        };
        Self {
            tardiness: Tardiness::medians(&tardiness),
            others: (!others.is_empty()).then(|| Tardiness::medians(&others)),
            cdf: distribution(&points),
            players: (0..players).map(player).collect(),
            medians: MEDIANS.iter().map(|&(name, of)| (name, one.median(of))).collect(),
            quartiles: one.quartiles(|figures| figures.tardiness.p99_us),
            ratio: one.ratio("ratio", |figures| figures.tardiness.p99_us),
            ratio_chunks: one.ratio("ratio_chunks", |figures| figures.chunks_per_s),
            no_sentinel: figures.first().and_then(|one| one.no_sentinel.clone()),
            level: figures.first().map(|one| one.level.clone()),
        }
    }

    /// Returns the median of the figure of this name.
    pub fn median(&self, name: &str) -> Option<f64> {
        self.medians.iter().find(|(known, _)| *known == name).and_then(|(_, median)| *median)
    }
}

impl Row {
    /// Returns the row's scheme.
    pub fn scheme(&self) -> Option<&'static Scheme> {
        schemes::of_name(self.subject)
    }

    /// Returns the options that have an effect on the scheme.
    pub fn used(&self) -> Used {
        self.scheme().map_or(Used::Nothing, Scheme::used)
    }

    /// Returns whether the players share a group.
    pub fn grouped(&self) -> bool {
        let shares = self.scheme().is_some_and(|scheme| scheme.shares != Shares::Nothing);
        self.cell.group == Grouping::One && shares
    }

    /// Returns the rights that the scheme needs.
    pub fn needs(&self) -> String {
        let one_group = self.cell.group == Grouping::One;
        self.scheme().map_or_else(String::new, |scheme| scheme.needs(one_group))
    }
}
