//! Rows: figures of a subject in a case, for scripts.
//!
//! | key | what |
//! |---|---|
//! | `threads` | cores that are used; `players` and `hogs` are those of all of them |
//! | `tardiness_us` | of all players' timers; `others` leaves out those that misbehave |
//! | `jain_cpu` | Jain's index of CPU time, of all players and hogs of the machine |
//! | `jain_cpu_players`, `jain_fps` | of players' CPU time, and of the frames they have shown |
//! | `players_share` | their part of all CPU time |
//! | `frames_per_s`, `ops_per_s` | frames shown and chunks decoded, of all players |
//! | `switches_per_s` | from one thread to another, of a core |
//! | `handovers_per_s` | how often the subject gives a core to a thread, of a core |
//! | `remote_transfers_per_handover` | lines from another socket |
//! | `moves` | members that went to another core |

use antiphon_report::failure::Failure;
use antiphon_report::stats::jain;
use antiphon_runtime::coop::PLACES;
use antiphon_sim::Machine;
use serde_json::{Value, json};

use super::cases::{Case, Placement};
use super::experiment::{Observed, compete};
use super::plan::{Plan, Setting};
use super::subjects::Subject;
use crate::compete::tardiness::Tardiness;
use crate::named::Named as _;
use crate::sim::report::{row, trace};

/// The figures of a subject in a case.
pub struct Row {
    pub subject: Subject,
    pub case: &'static Case,
    pub cores: usize,
    /// Number of hogs on each core.
    pub hogs: usize,
    pub placement: Placement,
    pub players: usize,
    pub tardiness: Tardiness,
    pub others: Option<Tardiness>,
    pub jain_cpu: f64,
    pub jain_cpu_players: f64,
    pub jain_fps: f64,
    pub players_share: f64,
    pub frames_per_s: f64,
    pub chunks_per_s: f64,
    pub switches_per_s: f64,
    pub handovers_per_s: Option<f64>,
    pub remote_per_handover: Option<f64>,
    pub moves: u64,
    trace: u64,
}

impl Row {
    /// Simulates the subject in the case.
    ///
    /// # Errors
    ///
    /// If the threads deadlock.
    pub fn of(
        setting: &Setting<'_>,
        subject: Subject,
        case: &'static Case,
    ) -> Result<Self, Failure> {
        check_room(setting, subject, case)?;
        let observed = compete(setting, subject, case).map_err(|stuck| {
            Failure::measured(format!("{}, {}: {stuck}", subject.name(), case.name))
        })?;
        let Setting { cores, hogs, placement, .. } = *setting;
        let Observed { seen, plan, accounts: [before, after], turns, remote, moves, trace } =
            observed;
        let players = seen.len();
        let ran = before.ran_ns.iter().zip(&after.ran_ns);
        // Helpers do not compete.
        let ran = ran.take(players + hogs * cores);
        let ran_ns: Vec<u64> = ran.map(|(before, after)| after - before).collect();
        let counted_s = (after.at_ns - before.at_ns) as f64 / 1e9;
        let per_core_s = |count: u64| count as f64 / counted_s / cores as f64;
        let late = |skips: fn(bool) -> bool| -> Vec<u64> {
            let kept = seen.iter().zip(&plan.players).filter(|(_, seat)| !skips(seat.misbehaves));
            kept.flat_map(|(seen, _)| seen.tardiness_ns.iter().copied()).collect()
        };
        let sum = |of: &[u64]| of.iter().sum::<u64>() as f64;
        let shown = || seen.iter().map(|seen| seen.shown);
        let whole_s = plan.end_ns as f64 / 1e9;
        Ok(Self {
            subject,
            case,
            cores,
            hogs,
            placement,
            players,
            tardiness: Tardiness::of(&late(|_| false)),
            others: case.misbehaves.then(|| Tardiness::of(&late(|misbehaves| misbehaves))),
            jain_cpu: jain(ran_ns.iter().copied()).unwrap_or(0.0),
            jain_cpu_players: jain(ran_ns[..players].iter().copied()).unwrap_or(0.0),
            jain_fps: jain(shown()).unwrap_or(0.0),
            players_share: sum(&ran_ns[..players]) / sum(&ran_ns).max(1.0),
            frames_per_s: shown().sum::<u64>() as f64 / counted_s,
            chunks_per_s: seen.iter().map(|seen| seen.chunks).sum::<u64>() as f64 / counted_s,
            switches_per_s: per_core_s(after.counts.switches - before.counts.switches),
            handovers_per_s: turns.map(|turns| turns as f64 / whole_s / cores as f64),
            remote_per_handover: turns
                .filter(|turns| *turns > 0)
                .map(|turns| remote as f64 / turns as f64),
            moves,
            trace,
        })
    }

    /// Returns the object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let keys = json!({
            "case": self.case.name, "placement": self.placement.name(), "players": self.players,
            "hogs": self.hogs * self.cores, "tardiness_us": self.tardiness.json(),
            "others": self.others.map(|others| others.json()), "jain_cpu": self.jain_cpu,
            "jain_cpu_players": self.jain_cpu_players, "jain_fps": self.jain_fps,
            "players_share": self.players_share, "frames_per_s": self.frames_per_s,
            "ops_per_s": self.chunks_per_s, "switches_per_s": self.switches_per_s,
            "handovers_per_s": self.handovers_per_s,
            "remote_transfers_per_handover": self.remote_per_handover, "moves": self.moves,
            "trace": trace(self.trace),
        });
        row(machine, self.subject.name(), self.cores, keys)
    }
}

/// Checks that the members of each core have room on its page.
fn check_room(setting: &Setting<'_>, subject: Subject, case: &Case) -> Result<(), Failure> {
    let most = |plan: &Plan| (0..setting.cores).map(|core| plan.on(core).count()).max();
    // A player that moves goes to a core with fewer members.
    let most = most(&Plan::new(setting, case)).unwrap_or_default();
    if subject == Subject::T3 && most > PLACES {
        return Err(Failure::arguments(format!(
            "{most} players on a core: a domain has room for {PLACES}; fewer --players, or another \
             --placement or --seed"
        )));
    }
    Ok(())
}
