//! The figures of a run.

use antiphon_coop::Options;
use antiphon_player::Layer;
use antiphon_report::schedule::{Schedule, Used};
use antiphon_report::stats::{Below, distribution, jain};
use serde_json::{Map, Value, json};

use super::kinds::{Kind, Played};
use super::plan::Plan;
use super::program::Seen;
use super::troubles::Troubles;
use super::watch::Observed;
use crate::compete::level::weakens;
use crate::compete::tardiness::{Tardiness, sorted_us};
use crate::compete::tier_stats::TierStats;
use crate::compete::usage::Usage;

/// The figures of a program that plays.
pub struct PlayerFigures {
    /// Kind of the program.
    pub kind: Kind,
    /// The clip, sound or game that it plays.
    pub plays: String,
    /// Whether its time was not spent on decoding, or only in part.
    pub model: bool,
    /// Tardiness of its frames, chunks or steps.
    pub late: Tardiness,
    /// Distribution of the tardiness, in microseconds.
    pub cdf: Vec<Below>,
    /// Frames shown, chunks played or steps made per second.
    pub fps: f64,
    /// CPU time of the program, as a share of one CPU.
    pub cpu: f64,
    /// The frames that it has played.
    pub played: Played,
    /// What its tier has done for it.
    pub done: TierStats,
    /// Number of callbacks that took longer than a millisecond.
    pub long: u64,
    /// The troubles that kept it from being on time.
    pub troubles: Troubles,
    /// Why it did not play to the end, in words to follow its name, if so; then only its usage is
    /// known.
    pub gone: Option<String>,
}

/// All figures of a run.
pub struct Figures {
    /// The adaptive players.
    pub players: Vec<PlayerFigures>,
    /// The player that does not adapt.
    pub steady: Option<PlayerFigures>,
    /// CPU time of each hog, as a share of one CPU.
    pub hogs: Vec<f64>,
    /// Tardiness of all players together.
    pub late: Tardiness,
    /// Distribution of the tardiness, in microseconds, without a player that misbehaves.
    pub cdf: Vec<Below>,
    /// Jain's index of the CPU time of all programs but the steady player.
    pub jain_cpu: f64,
    /// Whether a player has dropped something. If none has, each had as much of the CPU as it
    /// wanted, and `jain_cpu` is meaningless.
    pub cpu_was_short: bool,
    /// Jain's index of the frames that players of video showed.
    pub jain_fps: f64,
    /// Jain's index of the players' quality: the share of the due work that was done in time.
    pub jain_quality: f64,
    /// Players' share of the CPU time of all programs.
    pub players_share: f64,
    /// CPU time of all programs, in CPUs.
    pub cpus: f64,
    /// Context switches of all programs per second.
    pub switches_per_s: f64,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Options by which the cooperating programs shared the CPU.
    pub options: Options,
    /// CPU time of each program in each step, players first, as a share of one CPU; with the end of
    /// the step, in seconds.
    pub over_time: Vec<(f64, Vec<f64>)>,
}

impl Figures {
    /// Computes the figures of an observed run.
    pub fn of(plan: &Plan, observed: &Observed) -> Self {
        let steps = &observed.used;
        let wall_ns = steps.last().map_or(1, |(at_ns, _)| *at_ns).max(1);
        let seconds = wall_ns as f64 / 1e9;
        let used = between(steps.first(), steps.last());
        let share = |of: &Usage| of.cpu_ns as f64 / wall_ns as f64;
        let mut parts: Vec<_> = observed
            .seen
            .iter()
            .enumerate()
            .map(|(number, seen)| {
                let plays = plan.plays(number).to_owned();
                PlayerFigures::of(
                    plan.parts[number].kind,
                    plays,
                    seen,
                    seconds,
                    share(&used[number]),
                )
            })
            .collect();
        let steady = parts.split_off(plan.players.min(parts.len())).pop();
        let (players, rest) = used.split_at(plan.players);
        let hogs = &rest[usize::from(steady.is_some())..];
        let stayed = players.iter().zip(&parts).filter(|(_, one)| one.gone.is_none());
        let fair = stayed.map(|(used, _)| used).chain(hogs);
        let cpu_ns = |of: &[Usage]| of.iter().map(|one| one.cpu_ns).sum::<u64>() as f64;
        let all: Vec<_> = parts.iter().flat_map(|one| &one.played.tardiness_ns).copied().collect();
        let behaves = usize::from(plan.misbehave > 0.0);
        let behaving = parts.iter().skip(behaves).flat_map(|one| &one.played.tardiness_ns);
        let stayed = || parts.iter().filter(|one| one.gone.is_none());
        let videos = || stayed().filter(|one| one.kind == Kind::Video);
        let qualities = stayed().map(|one| (one.played.quality * 1e6) as u64);
        Self {
            cpu_was_short: stayed().any(|one| one.played.dropped > 0),
            late: Tardiness::of(&all),
            cdf: distribution(&sorted_us(&behaving.copied().collect::<Vec<_>>())),
            jain_cpu: jain(fair.map(|one| one.cpu_ns)).unwrap_or(0.0),
            jain_fps: jain(videos().map(|one| one.played.shown)).unwrap_or(0.0),
            jain_quality: jain(qualities).unwrap_or(0.0),
            players_share: cpu_ns(players) / cpu_ns(&used).max(1.0),
            cpus: cpu_ns(&used) / wall_ns as f64,
            switches_per_s: used.iter().map(|one| one.switches).sum::<u64>() as f64 / seconds,
            hogs: hogs.iter().map(share).collect(),
            players: parts,
            steady,
            seconds,
            options: observed.options,
            over_time: over_time(steps),
        }
    }

    /// Returns the fault of a player, or how it ended too early, in one line. Running out of time
    /// is not a fault.
    pub fn fault(&self) -> Option<String> {
        let all = self.players.iter().chain(&self.steady).enumerate();
        let mut faults = all.filter_map(|(number, one)| {
            let name = format!("player {number} ({})", one.plays);
            let gone = one.gone.as_ref().map(|gone| format!("{name} {gone}"));
            gone.or_else(|| Some(format!("{name}: {}", one.played.fault()?)))
        });
        faults.next()
    }

    /// Returns the object for scripts.
    pub fn json(&self, plan: &Plan) -> Value {
        let clips = plan.clips.iter().map(|ready| {
            let (width, height) = ready.clip.size();
            json!({
                "name": ready.name, "width": width, "height": height,
                "frames": ready.clip.frames().len(), "hz": 1e9 / ready.clip.frame_ns() as f64,
                "generated": ready.has_counter,
                "layered": ready.clip.units().iter().all(|unit| unit.is_free),
            })
        });
        json!({
            "players": self.players.iter().map(PlayerFigures::json).collect::<Vec<_>>(),
            "steady": self.steady.as_ref().map(|one| {
                let mut steady = one.json();
                steady["nice"] = json!(plan.parts.last().map(|part| part.nice));
                steady
            }),
            "hogs": self.hogs, "competitor": plan.competitor,
            "tardiness_us": self.late.json(), "cdf_us": Below::object(&self.cdf),
            "jain_cpu": self.jain_cpu, "jain_fps": self.jain_fps,
            "jain_quality": self.jain_quality, "players_share": self.players_share,
            "cpus": self.cpus, "switches_per_s": self.switches_per_s,
            "cpu_was_short": self.cpu_was_short,
            "tier": plan.tier.name(), "tier_is": plan.tier.what(),
            "group": if plan.one_group { "one" } else { "each" },
            "level": plan.level, "weaker": plan.here.weaker().filter(|_| weakens(plan.tier)),
            "options": Schedule(self.options).json(Used::by(plan.tier)), "seconds": self.seconds,
            "demand": plan.demand.map(|percent| percent / 100.0), "misbehave": plan.misbehave,
            "cpu_list": plan.cpus, "clips": clips.collect::<Vec<_>>(),
        })
    }
}

impl PlayerFigures {
    fn of(kind: Kind, plays: String, seen: &Result<Seen, String>, seconds: f64, cpu: f64) -> Self {
        let gone = seen.as_ref().err().cloned();
        let Seen { played, model, done, long, troubles } =
            seen.as_ref().ok().cloned().unwrap_or_default();
        Self {
            kind,
            plays,
            model,
            late: Tardiness::of(&played.tardiness_ns),
            cdf: distribution(&sorted_us(&played.tardiness_ns)),
            fps: played.shown as f64 / seconds,
            cpu,
            played,
            done,
            long,
            troubles,
            gone,
        }
    }

    fn json(&self) -> Value {
        let Played { shown, dropped, quality, layers, per_second, decoder, .. } = &self.played;
        let layers: Map<_, _> = Layer::ALL
            .iter()
            .zip(layers)
            .map(|(layer, count)| (layer.letter().to_string(), json!(count)))
            .collect();
        let mut object = json!({
            "kind": self.kind.name(), "plays": self.plays, "decoder": decoder,
            "tardiness_us": self.late.json(), "fps": self.fps, "shown": shown, "drops": dropped,
            "layers": layers, "quality": quality, "cpu": self.cpu, "fps_by_second": per_second,
            "disorder": self.played.disorder, "read": self.played.read,
            "misread": self.played.misread, "refused": self.played.refused,
            "long_callbacks": self.long, "tier_stats": self.done.json(),
            "unseen": self.played.unseen, "troubles": self.troubles.json(), "gone": self.gone,
        });
        if self.gone.is_some() {
            for unknown in ["fps", "shown", "drops", "quality"] {
                object[unknown] = Value::Null;
            }
        }
        if self.model {
            object["model"] = json!(true);
        }
        object
    }
}

fn between(before: Option<&(u64, Vec<Usage>)>, after: Option<&(u64, Vec<Usage>)>) -> Vec<Usage> {
    let pairs = before.zip(after).map(|((_, before), (_, after))| after.iter().zip(before));
    pairs.into_iter().flatten().map(|(after, before)| after.since(*before)).collect()
}

fn over_time(steps: &[(u64, Vec<Usage>)]) -> Vec<(f64, Vec<f64>)> {
    let step = |pair: &[(u64, Vec<Usage>)]| {
        let wall_ns = pair[1].0.saturating_sub(pair[0].0).max(1) as f64;
        let used = between(pair.first(), pair.last());
        let shares = used.iter().map(|one| one.cpu_ns as f64 / wall_ns).collect();
        (pair[1].0 as f64 / 1e9, shares)
    };
    steps.windows(2).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_told_by_the_step() {
        let at = |s: u64, ms: [u64; 2]| {
            let used = ms.map(|ms| Usage { cpu_ns: ms * 1_000_000, switches: ms });
            (s * 1_000_000_000, used.to_vec())
        };
        let steps = [at(0, [5, 5]), at(1, [505, 255]), at(3, [1505, 1255])];
        let told = over_time(&steps);
        assert_eq!(told, [(1.0, vec![0.5, 0.25]), (3.0, vec![0.5, 0.5])]);
        let all = between(steps.first(), steps.last());
        assert_eq!(all.iter().map(|one| one.switches).collect::<Vec<_>>(), [1500, 1250]);
        assert_eq!(over_time(&steps[..1]), []);
    }
}
