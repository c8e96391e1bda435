//! From repetitions to rows, and rows as scripts read them.

use antiphon_coop::available;
use antiphon_report::schedule::Used;
use antiphon_report::stats::{Below, Quartiles, distribution, median, quartiles};
use serde_json::{Map, Value, json};

use super::cases::Cell;
use super::figures::{Figures, PlayerFigures};
use super::measure::How;
use super::schemes::{self, Scheme, Shares};
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Measured as Of, Rounds, Trouble, mean};
use crate::compete::level::weakens;
use crate::compete::tardiness::Tardiness;
use crate::compete::terms::Grouping;

/// The measurements of one scheme under one set of conditions.
pub type Measured = Of<Cell, Figures>;

/// The results of one scheme under one set of conditions.
pub struct Row {
    /// Its name.
    pub subject: &'static str,
    /// The scheme.
    pub scheme: Option<&'static Scheme>,
    /// Whether it is ours.
    pub ours: bool,
    /// The conditions.
    pub cell: Cell,
    /// How often it was measured.
    pub repetitions: usize,
    /// The tardiness of all timers.
    pub tardiness: Tardiness,
    /// The tardiness without the player that misbehaved.
    pub others: Option<Tardiness>,
    /// The distribution, in microseconds.
    pub cdf: Vec<Below>,
    /// Each player.
    pub players: Vec<PlayerFigures>,
    /// Medians of what [`Figures`] has under those names.
    pub medians: Vec<(&'static str, Option<f64>)>,
    /// The quartiles of p99.
    pub quartiles: Option<Quartiles>,
    /// The ratio of p99 to that of the first peer.
    pub ratio: Option<Ratio>,
    /// The ratio of chunks a second to those of the first peer.
    pub ratio_chunks: Option<Ratio>,
    /// Why there was no sentinel.
    pub no_sentinel: Option<String>,
    /// Whom the run competed with.
    pub level: Option<crate::compete::level::Level>,
    /// CPUs that others used.
    pub others_cpus: Option<f64>,
    /// Why there are no figures.
    pub trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report {
    /// The peer that ratios refer to.
    pub reference: Option<&'static str>,
    /// Rows in the order in which they were measured.
    pub rows: Vec<Row>,
    /// The settings that all repetitions shared.
    pub how: How,
    /// How long each repetition was.
    pub seconds: f64,
    /// The CPUs of the programs.
    pub cpus: Vec<u32>,
}

type Figure = (&'static str, fn(&Figures) -> Option<f64>);

/// Figures of which a row has the median.
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

/// Makes rows of the measurements.
pub fn put_together(rounds: &Rounds, measured: &[Measured]) -> Vec<Row> {
    let reference = rounds.peers.first().copied();
    let rows = measured.iter().map(|one| {
        let peer = measured
            .iter()
            .find(|other| other.cell == one.cell && Some(other.subject) == reference);
        Row { ours: rounds.subjects.contains(&one.subject), ..row(one, peer) }
    });
    rows.collect()
}

fn row(one: &Measured, peer: Option<&Measured>) -> Row {
    let figures = &one.figures;
    let ratio = |of: fn(&Figures) -> f64| {
        let pairs = peer.map(|peer| figures.iter().zip(&peer.figures));
        Ratio::of(pairs?.map(|(ours, theirs)| (of(ours), of(theirs))))
    };
    let tardiness: Vec<_> = figures.iter().map(|one| one.tardiness).collect();
    let others: Vec<_> = figures.iter().filter_map(|one| one.others).collect();
    let mut points: Vec<_> = figures.iter().flat_map(|one| one.points_us.iter().copied()).collect();
    points.sort_by(f64::total_cmp);
    let players = figures.iter().map(|one| one.players.len()).min().unwrap_or(0);
    let player = |number: usize| {
        let all: Vec<_> = figures.iter().map(|one| &one.players[number]).collect();
        PlayerFigures::medians(&all)
    };
    let medians =
        MEDIANS.iter().map(|&(name, of)| (name, median(figures.iter().filter_map(of).collect())));
    Row {
        subject: one.subject,
        ours: false,
        cell: one.cell,
        scheme: schemes::of_name(one.subject),
        repetitions: figures.len(),
        tardiness: Tardiness::medians(&tardiness),
        others: (!others.is_empty()).then(|| Tardiness::medians(&others)),
        cdf: distribution(&points),
        players: (0..players).map(player).collect(),
        medians: medians.collect(),
        quartiles: quartiles(tardiness.iter().map(|one| one.p99_us).collect()),
        ratio: ratio(|figures| figures.tardiness.p99_us),
        ratio_chunks: ratio(|figures| figures.chunks_per_s),
        no_sentinel: figures.first().and_then(|one| one.no_sentinel.clone()),
        level: figures.first().map(|one| one.level.clone()),
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
}

impl Report {
    /// The failures, in one line.
    pub fn trouble(&self) -> Option<String> {
        Trouble::failures(self.rows.iter().filter_map(|row| row.trouble.as_ref()))
    }

    /// CPUs that others used on average while the machine was meant to be idle.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.others_cpus))
    }

    /// The object for scripts.
    pub fn json(&self) -> Value {
        let rows: Vec<_> = self.rows.iter().map(|row| row.object(self)).collect();
        let used = self.rows.iter().map(Row::used).max().unwrap_or(Used::Nothing);
        json!({
            "rows": rows, "seed": self.how.seed, "seconds": self.seconds,
            "demand": self.how.demand, "alike": self.how.even, "misbehave": self.how.misbehave,
            "sentinel_us": self.how.sentinel_ns / 1000, "cpu_list": self.cpus,
            "options": self.how.schedule.json(used), "weaker": self.weaker(),
        })
    }

    /// The tiers that are weaker against programs on other levels than the run's, if any of them
    /// was measured.
    pub fn weaker(&self) -> Option<&'static str> {
        let measured = |row: &&Row| row.trouble.is_none();
        let tiers = self.rows.iter().filter(measured).filter_map(|row| row.scheme?.tier);
        tiers.into_iter().any(weakens).then(|| available().weaker()).flatten()
    }
}

impl Row {
    /// The median of the figure of that name.
    pub fn median(&self, name: &str) -> Option<f64> {
        self.medians.iter().find(|(known, _)| *known == name).and_then(|(_, median)| *median)
    }

    /// The options that have an effect on it.
    pub fn used(&self) -> Used {
        self.scheme.map_or(Used::Nothing, Scheme::used)
    }

    /// Whether its players share a group.
    pub fn grouped(&self) -> bool {
        let shares = self.scheme.is_some_and(|scheme| scheme.shares != Shares::Nothing);
        self.cell.group == Grouping::One && shares
    }

    /// The rights that it needs.
    pub fn needs(&self) -> String {
        let one_group = self.cell.group == Grouping::One;
        self.scheme.map_or_else(String::new, |scheme| scheme.needs(one_group))
    }

    fn object(&self, report: &Report) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        let Cell { load, players, hogs, competitor, hz, group, levels, cpus } = self.cell;
        put("subject", json!(self.subject));
        put("peer", json!(report.reference));
        put("ours", json!(self.ours));
        put("needs", json!(self.needs()));
        put("costs", json!(self.scheme.map(|scheme| scheme.costs)));
        put("options", report.how.schedule.json(self.used()));
        put("case", json!(if self.cell.hogs > 0 { competitor.name() } else { "players" }));
        put("load", json!(load.name()));
        put("players_n", json!(players));
        put("hogs_n", json!(hogs));
        put("competitor", json!(competitor.name()));
        put("hz", json!(hz));
        put("group", json!(group.name()));
        put("grouped", json!(self.grouped()));
        put("levels", json!(levels.name()));
        put("cpus_n", json!(cpus));
        put("threads", json!(players + hogs));
        put("repetitions", json!(self.repetitions));
        if let Some(trouble) = &self.trouble {
            let (key, what) = trouble.json();
            put(key, json!(what));
            return object;
        }
        put("tardiness_us", self.tardiness.json());
        put("others_tardiness_us", json!(self.others.as_ref().map(Tardiness::json)));
        put("cdf_us", Below::object(&self.cdf));
        put("players", self.players.iter().map(PlayerFigures::json).collect());
        for (name, median) in &self.medians {
            put(name, json!(median));
        }
        put("p25", json!(self.quartiles.map(|of| of.p25)));
        put("p75", json!(self.quartiles.map(|of| of.p75)));
        put("no_sentinel", json!(self.no_sentinel));
        put("level", json!(self.level));
        put("others_cpus", json!(self.others_cpus));
        Ratio::put(self.ratio, "ratio", &mut object);
        Ratio::put(self.ratio_chunks, "ratio_chunks", &mut object);
        object
    }
}
