//! The figures of a repetition.

use antiphon_report::stats::{jain, median, quantile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::player::Seen;
use super::sentinel::Noise;
use crate::compete::level::Level;
use crate::compete::tardiness::{Tardiness, sorted_us};
use crate::compete::tier_stats::TierStats;
use crate::compete::usage::Usage;

/// The observations of a repetition.
pub struct Observed {
    /// What each player observed.
    pub players: Vec<Played>,
    /// CPU time and switches of each program, players first.
    pub used: Vec<Usage>,
    /// Noise that the sentinels observed, by CPU; empty without sentinels.
    pub noise: Vec<Noise>,
    /// Why no sentinel ran, if one was wanted.
    pub no_sentinel: Option<String>,
    /// The level of the run: which programs it competed with.
    pub level: Level,
    /// Time from one frame of a player to the next.
    pub period_ns: u64,
    /// Time at which all programs began.
    pub begin_ns: u64,
    /// Length of the time over which `used` was measured.
    pub wall_ns: u64,
    /// Length of the time in which frames were due.
    pub counted_ns: u64,
    /// Number of CPUs that the programs shared.
    pub cpus: usize,
    /// Whether the first player misbehaved.
    pub misbehaves: bool,
}

/// The observations of a player.
pub struct Played {
    /// The player's own observations.
    pub seen: Seen,
    /// The place of its CPU in the list of CPUs.
    pub cpu: usize,
    /// Share of a CPU that the player wanted.
    pub demand: f64,
}

/// The figures of one player.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlayerFigures {
    /// Tardiness of its timers.
    pub tardiness: Tardiness,
    /// Frames shown per second.
    pub fps: f64,
    /// Frames that were due but not shown.
    pub drops: u64,
    /// CPU time of the player, as a share of one CPU.
    pub cpu: f64,
    /// Share of a CPU that the player wanted.
    pub demand: f64,
    /// Statistics of its tier, over all repetitions.
    pub tier_stats: TierStats,
}

/// The figures of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The tardiness of all players' timers.
    pub tardiness: Tardiness,
    /// The tardiness without the player that misbehaved.
    pub others: Option<Tardiness>,
    /// Quantiles of tardiness at up to [`POINTS`] evenly spaced shares, in microseconds.
    pub points_us: Vec<f64>,
    /// Figures of each player.
    pub players: Vec<PlayerFigures>,
    /// CPU time of each hog, in CPUs.
    pub hogs: Vec<f64>,
    /// Jain's index of the CPU time of all programs.
    pub jain_cpu: f64,
    /// Jain's index of the CPU time of the players alone.
    pub jain_cpu_players: f64,
    /// Jain's index of the frames shown.
    pub jain_fps: f64,
    /// Players' share of the CPU time of all programs.
    pub players_share: f64,
    /// Frames shown per second by all players.
    pub fps: f64,
    /// Chunks decoded per second by all players.
    pub chunks_per_s: f64,
    /// Context switches of all programs per second, without those that sentinels caused.
    pub switches_per_s: f64,
    /// Context switches of players per second.
    pub player_switches_per_s: f64,
    /// CPU time of all programs, in CPUs.
    pub cpus: f64,
    /// Maximal lateness of a sentinel, in microseconds.
    pub noise_us: Option<f64>,
    /// Maximal lateness of a timer beyond the sentinel's in the same seconds, in microseconds.
    pub beyond_noise_us: Option<f64>,
    /// Why no sentinel ran.
    pub no_sentinel: Option<String>,
    /// The level of the run: which programs it competed with.
    pub level: Level,
}

/// Maximal number of points kept of a distribution.
const POINTS: usize = 2000;

impl Figures {
    /// The figures of the observations.
    pub fn of(seen: &Observed) -> Self {
        let all = |skip: usize| -> Vec<u64> {
            let players = seen.players.iter().skip(skip);
            players.flat_map(|player| player.seen.tardiness_ns.iter().copied()).collect()
        };
        let (players, hogs) = seen.used.split_at(seen.players.len());
        let wall = seen.wall_ns as f64;
        let cpu_ns = |of: &[Usage]| of.iter().map(|one| one.cpu_ns).sum::<u64>() as f64;
        let switches = |of: &[Usage]| of.iter().map(|one| one.switches).sum::<u64>() as f64;
        let per_s = |count: f64| count * 1e9 / wall;
        let counted_s = seen.counted_ns as f64 / 1e9;
        let cpus = cpu_ns(&seen.used) / wall;
        let shown = |player: &Played| player.seen.shown;
        let sorted = sorted_us(&all(0));
        let points = (0..POINTS).map(|point| point as f64 / (POINTS - 1) as f64);
        Self {
            tardiness: Tardiness::of(&all(0)),
            others: seen.misbehaves.then(|| Tardiness::of(&all(1))),
            points_us: points.filter_map(|share| quantile(&sorted, share)).collect(),
            players: seen
                .players
                .iter()
                .zip(players)
                .map(|(one, used)| one.figures(used, seen))
                .collect(),
            hogs: hogs.iter().map(|one| one.cpu_ns as f64 / wall).collect(),
            jain_cpu: jain(seen.used.iter().map(|one| one.cpu_ns)).unwrap_or(0.0),
            jain_cpu_players: jain(players.iter().map(|one| one.cpu_ns)).unwrap_or(0.0),
            jain_fps: jain(seen.players.iter().map(shown)).unwrap_or(0.0),
            players_share: cpu_ns(players) / cpu_ns(&seen.used).max(1.0),
            fps: seen.players.iter().map(shown).sum::<u64>() as f64 / counted_s,
            chunks_per_s: seen.players.iter().map(|one| one.seen.chunks).sum::<u64>() as f64
                / counted_s,
            switches_per_s: (per_s(switches(&seen.used)) - seen.sentinel_switches(cpus)).max(0.0),
            player_switches_per_s: per_s(switches(players)),
            cpus,
            noise_us: seen.noise_us(),
            beyond_noise_us: seen.beyond_noise_us(),
            no_sentinel: seen.no_sentinel.clone(),
            level: seen.level.clone(),
        }
    }
}

impl Observed {
    /// Switches per second caused by sentinels: one per wake-up, if the CPU was not idle.
    fn sentinel_switches(&self, busy_cpus: f64) -> f64 {
        let wakes: u64 = self.noise.iter().map(|noise| noise.wakes).sum();
        let run_ns = self.begin_to_end_ns();
        let busy = (busy_cpus / self.cpus as f64).min(1.0);
        wakes as f64 * 1e9 / run_ns as f64 * busy
    }

    /// Approximate time during which sentinels ran.
    fn begin_to_end_ns(&self) -> u64 {
        let first = self.players.iter().map(|player| player.seen.first_ns).max().unwrap_or(0);
        (first + self.counted_ns).saturating_sub(self.begin_ns).max(1)
    }

    fn noise_us(&self) -> Option<f64> {
        let worst = self.noise.iter().map(|noise| noise.worst_ns(self.begin_ns, u64::MAX));
        worst.max().map(|ns| ns as f64 / 1e3)
    }

    fn beyond_noise_us(&self) -> Option<f64> {
        let beyond = self.players.iter().filter_map(|player| {
            let noise = self.noise.get(player.cpu)?;
            let late = player.seen.tardiness_ns.iter().enumerate().map(|(number, &late_ns)| {
                let due_ns = player.seen.first_ns + number as u64 * self.period_ns;
                let noise_ns = noise.worst_ns(due_ns, due_ns + late_ns);
                (late_ns as f64 - noise_ns as f64) / 1e3
            });
            late.reduce(f64::max)
        });
        beyond.reduce(f64::max)
    }
}

impl Played {
    fn figures(&self, used: &Usage, seen: &Observed) -> PlayerFigures {
        let timers = self.seen.tardiness_ns.len() as u64;
        PlayerFigures {
            tardiness: Tardiness::of(&self.seen.tardiness_ns),
            fps: self.seen.shown as f64 * 1e9 / seen.counted_ns as f64,
            drops: timers - self.seen.shown,
            cpu: used.cpu_ns as f64 / seen.wall_ns as f64,
            demand: self.demand,
            tier_stats: self.seen.tier_stats.clone(),
        }
    }
}

impl PlayerFigures {
    /// Returns the medians over repetitions.
    pub fn medians(all: &[&Self]) -> Self {
        let tardiness: Vec<_> = all.iter().map(|one| one.tardiness).collect();
        let of = |figure: fn(&Self) -> f64| median(all.iter().map(|one| figure(one)).collect());
        let of = |figure| of(figure).unwrap_or(0.0);
        Self {
            tardiness: Tardiness::medians(&tardiness),
            fps: of(|one| one.fps),
            drops: all.iter().map(|one| one.drops).sum(),
            cpu: of(|one| one.cpu),
            demand: of(|one| one.demand),
            tier_stats: TierStats::sum(all.iter().map(|one| &one.tier_stats)),
        }
    }

    /// Returns the object for reports.
    pub fn json(&self) -> Value {
        json!({
            "tardiness_us": self.tardiness.json(), "fps": self.fps, "drops": self.drops,
            "cpu": self.cpu, "demand": self.demand, "tier_stats": self.tier_stats.json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(tardiness_ns: Vec<u64>, shown: u64) -> Played {
        let first_ns = 2_000_000_000;
        let tier_stats = TierStats::default();
        let seen = Seen { first_ns, tardiness_ns, shown, chunks: 30, tier_stats };
        Played { seen, cpu: 0, demand: 0.5 }
    }

    fn observed() -> Observed {
        Observed {
            players: vec![played(vec![3_000_000; 50], 40), played(vec![1_000_000; 50], 20)],
            used: [400, 400, 200]
                .map(|ms| Usage { cpu_ns: ms * 1_000_000, switches: 100 })
                .to_vec(),
            noise: Vec::new(),
            no_sentinel: Some("not here".to_owned()),
            level: Level::default(),
            period_ns: 20_000_000,
            begin_ns: 1_000_000_000,
            wall_ns: 1_000_000_000,
            counted_ns: 1_000_000_000,
            cpus: 1,
            misbehaves: true,
        }
    }

    #[test]
    fn all_is_put_together() {
        let figures = Figures::of(&observed());
        let Tardiness { p50_us, max_us, within_1ms, timers, .. } = figures.tardiness;
        assert_eq!((p50_us, max_us, within_1ms, timers), (2000.0, 3000.0, 0.5, 100));
        assert_eq!(figures.others.map(|others| (others.max_us, others.timers)), Some((1000.0, 50)));
        assert_eq!(
            (figures.fps, figures.chunks_per_s, figures.switches_per_s),
            (60.0, 60.0, 300.0)
        );
        assert_eq!((figures.players_share, figures.cpus, figures.hogs), (0.8, 1.0, vec![0.2]));
        assert_eq!(figures.jain_cpu_players, 1.0);
        assert!(figures.jain_cpu < 0.95 && figures.jain_fps < 0.95);
        let drops: Vec<_> = figures.players.iter().map(|player| player.drops).collect();
        assert_eq!((drops, figures.points_us.len()), (vec![10, 30], POINTS));
        assert_eq!((figures.noise_us, figures.beyond_noise_us), (None, None));
    }
}
