//! The work of a repetition: it starts the programs, lets them compete, and measures them from
//! outside.

use std::path::PathBuf;

use antiphon_coop::{Domain, DomainOptions};
use antiphon_report::schedule::Schedule;
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::cases::Cell;
use super::figures::{Figures, Observed, Played};
use super::player::Window;
use super::program::{self, Begin, Part};
use super::schemes::scheduling::Needs;
use super::schemes::{self, Scheme, Shares};
use super::sentinel::Sentinel;
use crate::bench::{self, rounds::Outcome};
use crate::compete::cgroup::Groups;
use crate::compete::level::Level;
use crate::compete::order::{OwnLevel, Role};
use crate::compete::process::Program;
use crate::compete::stand_aside;
use crate::compete::terms::{Grouping, Levels, wanted};
use crate::compete::usage::Usage;
use crate::compete::work::{Pace, now_ns, sleep_until};

/// The order for one repetition.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Name of the scheme.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// CPUs that the programs are assigned to, in turn.
    pub cpus: Vec<u32>,
    /// The settings that all repetitions share.
    pub how: How,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Warm-up before it, which is not measured, in seconds.
    pub warm_s: f64,
}

/// The settings that all repetitions share.
#[derive(Clone, Serialize, Deserialize)]
pub struct How {
    /// Calibrated speed of programs' work.
    pub pace: Pace,
    /// Share of a CPU that a player wants, averaged over all players.
    pub demand: f64,
    /// Whether all players and all their frames cost the same.
    pub even: bool,
    /// Probability that the first player gives the CPU away too late.
    pub misbehave: f64,
    /// Period of the sentinel's wake-ups, in nanoseconds; 0 for no sentinel.
    pub sentinel_ns: u64,
    /// Whether the run should weigh more than all other sessions.
    pub first: bool,
    /// Scheduling options of programs that cooperate on a CPU.
    pub schedule: Schedule,
    /// Path of gcc's compiler, if it competes.
    pub compiler: Option<PathBuf>,
    /// Seed of clips and phases.
    pub seed: u64,
}

/// Time from when all programs are ready to their start, and the minimum from there to their first
/// frames.
const BEGIN_NS: u64 = 20_000_000;

/// Runs one repetition.
///
/// # Errors
///
/// If the subject is not known.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let scheme = schemes::of_name(&order.subject);
    let scheme = scheme.ok_or_else(|| format!("no scheme '{}'", order.subject))?;
    if let Some(missing) = scheme.missing(order.cell.group == Grouping::One) {
        return Ok(Outcome::Missing(missing));
    }
    let groups = match order.cell.levels {
        Levels::Cgroup => Some(Groups::make(order.cell.players + order.cell.hogs)?),
        Levels::One | Levels::Each => None,
    };
    let real_time = groups.as_ref().filter(|_| matches!(scheme.needs, Needs::Realtime(_)));
    if let Some(Err(why)) = real_time.map(Groups::give_real_time) {
        return Ok(Outcome::Missing(why));
    }
    Ok(observe(order, scheme, groups.as_ref())
        .map_or_else(Outcome::Violation, |seen| Outcome::Figures(Figures::of(&seen))))
}

fn observe(order: &Order, scheme: &Scheme, groups: Option<&Groups>) -> Result<Observed, String> {
    let Order { cell, cpus, how, .. } = order;
    let level = Level::take(how.first);
    stand_aside(cpus);
    let domains = domains(order, scheme)?;
    let mut programs = start(order, &domains, groups)?;
    programs.iter_mut().try_for_each(Program::ready)?;
    let at_ns = now_ns() + BEGIN_NS;
    let sentinels: Vec<_> = match how.sentinel_ns {
        0 => Vec::new(),
        period_ns => cpus.iter().map(|&cpu| Sentinel::start(cpu, period_ns, at_ns)).collect(),
    };
    let windows = windows(order, at_ns);
    for (number, program) in programs.iter_mut().enumerate() {
        // Hogs don't use the window.
        let window = windows[number.min(cell.players - 1)];
        program.begin(&Begin { at_ns, window })?;
    }
    let Window { count_ns, end_ns, .. } = windows[0];
    let usage = |programs: &[Program]| -> Vec<_> {
        programs.iter().map(|program| Usage::of(program.id())).collect()
    };
    sleep_until(count_ns);
    let (before, from_ns) = (usage(&programs), now_ns());
    sleep_until(end_ns);
    let (after, to_ns) = (usage(&programs), now_ns());
    let players: Result<Vec<_>, _> =
        programs.iter_mut().take(cell.players).map(Program::seen).collect();
    let mut noise = Vec::new();
    let mut no_sentinel = None;
    for sentinel in sentinels {
        match sentinel {
            Ok(sentinel) => noise.push(sentinel.end()),
            Err(why) => no_sentinel = Some(why),
        }
    }
    drop(programs);
    let used = before.into_iter().zip(after).map(|(before, after)| after.since(before));
    let played = players?.into_iter().enumerate().map(|(number, seen)| Played {
        seen,
        cpu: number % cpus.len(),
        demand: demand(how, number, cell.players),
    });
    Ok(Observed {
        players: played.collect(),
        used: used.collect(),
        noise,
        no_sentinel,
        level,
        period_ns: period_ns(cell),
        begin_ns: at_ns,
        wall_ns: to_ns - from_ns,
        counted_ns: end_ns - count_ns,
        cpus: cpus.len(),
        misbehaves: how.misbehave > 0.0,
    })
}

/// The domain of the players of each CPU, which they inherit; empty if the players don't cooperate.
fn domains(order: &Order, scheme: &Scheme) -> Result<Vec<Domain>, String> {
    if scheme.shares == Shares::Nothing {
        return Ok(Vec::new());
    }
    let private = |&cpu| Domain::private(DomainOptions { cpu, schedule: order.how.schedule.0 });
    order.cpus.iter().map(private).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Starts players, then hogs; each kind is assigned to the CPUs in turn.
fn start(
    order: &Order,
    domains: &[Domain],
    groups: Option<&Groups>,
) -> Result<Vec<Program>, String> {
    let Order { subject, cell, cpus, how, .. } = order;
    let place = |number: usize| cpus[number % cpus.len()];
    let hog = Role::hog(cell.competitor, how.compiler.as_ref())?;
    let player = |number: usize| {
        Role::Play(Part {
            subject: subject.clone(),
            seed: how.seed.wrapping_mul(1000).wrapping_add(number as u64),
            demand: demand(how, number, cell.players),
            even: how.even,
            one_group: cell.group == Grouping::One,
            domain: domains.get(number % cpus.len()).and_then(Domain::private_name),
            schedule: how.schedule,
            misbehaves: if number == 0 { how.misbehave } else { 0.0 },
        })
    };
    let players = (0..cell.players).map(|number| (place(number), player(number)));
    let hogs = (0..cell.hogs).map(|number| (place(cell.players + number), hog.clone()));
    players
        .chain(hogs)
        .enumerate()
        .map(|(number, (cpu, role))| {
            let own_level = match cell.levels {
                Levels::One => None,
                Levels::Each => Some(OwnLevel::Session { first: how.first }),
                Levels::Cgroup => {
                    groups.and_then(|groups| groups.folder(number)).cloned().map(OwnLevel::Group)
                }
            };
            let order = program::Order { cpu, pace: how.pace, own_level, role };
            Program::start(bench::REPETITION, &bench::Order::Program(order))
        })
        .collect()
}

/// Returns the share of a CPU that a player wants.
fn demand(how: &How, number: usize, players: usize) -> f64 {
    if how.even { how.demand } else { wanted(how.demand, number, players) }
}

fn period_ns(cell: &Cell) -> u64 {
    1_000_000_000 / cell.hz as u64
}

/// Returns the window of each player: all of the same length, each with its own phase.
fn windows(order: &Order, at_ns: u64) -> Vec<Window> {
    let period_ns = period_ns(&order.cell);
    let mut random = Random(order.how.seed);
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let count_ns = at_ns + BEGIN_NS + ns(order.warm_s);
    let end_ns = count_ns + ns(order.seconds);
    let phase = |_| at_ns + BEGIN_NS + random.draw() % period_ns;
    let begins = (0..order.cell.players).map(phase);
    begins.map(|begin_ns| Window { begin_ns, period_ns, count_ns, end_ns }).collect()
}
