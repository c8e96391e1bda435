//! `sim guests`: two levels of scheduling, and what hints between them win back.
//!
//! | module | has |
//! |---|---|
//! | [`experiment`] | a lock in virtual machines |
//! | [`scenario`] | a program whose threads tell one thing, beside the same that does not |
//! | [`epochs`] | a writer that waits for readers of an epoch |
//! | [`releases`] | programs that sleep until a time, beside others that compute |
//! | [`told`] | a lock whose program tells its sections |

mod epochs;
mod experiment;
mod releases;
mod scenario;
#[cfg(test)]
mod shapes;
mod told;

use std::process::ExitCode;

use antiphon_replay::locks::{LOCKS, SimLock};
use antiphon_report::failure::Failure;
use antiphon_report::machine;
use antiphon_report::table::{Cell, Table, colour_stdout, duration, si};
use antiphon_report::words::several;
use antiphon_sim::Outcome;
use clap::Args;
use serde_json::{Value, json};

use super::cases::{self, Case};
use super::report::{body, chosen, heading, print, row, trace};
use crate::bench::Family;
use epochs::Grace;
use experiment::{Hints, Measured, Setting, carry_out};
use releases::Releases;

/// Two levels of scheduling: locks in virtual machines that share the CPUs, with and without hints
/// between guests and host
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model, not a measurement. Each guest has a virtual
CPU for each CPU, and a lock of its own. The work is that of all guests together; alone is that of
one guest that has the machine for itself.

  none       the host and its guests know nothing of each other
  sections   locks tell the host their sections, which it does not interrupt for a while
  preempted  the host tells its guests which virtual CPUs will lose or have lost their CPU
  both       sections and preempted

Example:
  antiphon sim guests
  antiphon sim guests --subject shfl-rwlock --case mixed --guests 3 --json
  antiphon sim guests --releases --guests 3 --ms 100
  antiphon sim guests --epochs")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Number of virtual machines
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(2..=8))]
    guests: u32,
    /// Number of threads of each guest [default: the machine's CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Locks to simulate
    #[arg(long, value_name = "LIST", default_value = "shfl-mutex,shfl-spin,mcs,ticket,futex")]
    subject: String,
    /// Case, one of those of `antiphon sim locks`, or of `antiphon sim rwlocks` for a
    /// readers-writer lock
    #[arg(long, value_name = "CASE", default_value = "create")]
    case: String,
    /// Hints to simulate, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    hints: String,
    /// Simulate no locks, but guests whose threads sleep until a time, beside guests whose threads
    /// compute: without hints, and with a host that is told the times
    #[arg(long, conflicts_with_all = ["subject", "case", "hints"])]
    releases: bool,
    /// Simulate no locks, but guests in each of which a writer waits until no thread reads old data
    /// (reclamation by epochs): without hints, and with readers that tell their sections
    #[arg(long, conflicts_with_all = ["subject", "case", "hints", "releases"])]
    epochs: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulated time, in milliseconds
    #[arg(long, value_name = "T", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    ms: u16,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; a lock that can't make progress; if stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let described = machine::named(&arguments.machine)?.described;
    let setting = Setting {
        machine: described.machine.clone(),
        seed: arguments.seed,
        limit_ns: u64::from(arguments.ms) * 1_000_000,
        threads: arguments.threads.map_or(described.machine.cores() as usize, usize::from),
        guests: arguments.guests,
    };
    let frame = (arguments.ms, arguments.json);
    if arguments.releases {
        return scenario::run::<Releases>(frame, &setting, &described);
    }
    if arguments.epochs {
        if setting.threads < 2 {
            let what = "--threads: --epochs takes two or more, a writer and a reader";
            return Err(Failure::arguments(what));
        }
        return scenario::run::<Grace>(frame, &setting, &described);
    }
    let hints = chosen("hints", &arguments.hints, &Hints::ALL, (Hints::name, true))?;
    let taken: Vec<&SimLock> = LOCKS.iter().filter(|lock| !lock.delegates()).collect();
    let locks = chosen("subject", &arguments.subject, &taken, (|lock| lock.name, false))?;
    let case = cases::named(&arguments.case)
        .ok_or_else(|| Failure::arguments(format!("--case: no case {:?}", arguments.case)))?;
    if let Some(lock) = locks.iter().find(|lock| !has(case, lock)) {
        let what = format!("--case {}: not for {}", case.name, lock.name);
        return Err(Failure::arguments(what));
    }
    let mut rows = Vec::new();
    for lock in locks {
        let measured = carry_out(&setting, lock, case, &hints);
        rows.push(Row { lock: lock.name, measured: measured.map_err(Failure::measured)? });
    }
    let conditions = json!({
        "seed": setting.seed, "ms": arguments.ms, "guests": setting.guests, "case": case.name,
        "host_slice_ns": setting.machine.slice_ns,
    });
    let objects = || rows.iter().map(|row| row.object(&setting, case)).collect();
    let text = || {
        let heading = setting.heading(arguments.ms);
        format!("{heading}\n\n{}: {}\n{}", case.name, case.about, text(&setting, &rows))
    };
    print(arguments.json, (None, String::new), || body(&described, conditions, objects()), text)
}

impl Setting {
    fn heading(&self, ms: u16) -> String {
        let guests = several(self.guests.into(), "guest");
        let threads = several(self.threads as u64, "thread");
        let words = format!("{guests}, {threads} each, {ms} ms, seed {}", self.seed);
        heading(&self.machine, &words)
    }
}

fn has(case: &Case, lock: &SimLock) -> bool {
    let family: Family = cases::family(lock);
    cases::of(family).any(|known| known.name == case.name)
}

/// A lock and its results.
struct Row {
    lock: &'static str,
    measured: Measured,
}

impl Row {
    fn object(&self, setting: &Setting, case: &Case) -> Value {
        let mut keys = json!({
            "case": case.name, "guests": setting.guests,
            "alone": { "ops_per_s": rate(setting, &self.measured.alone) },
        });
        for (hints, outcome) in &self.measured.with {
            keys[hints.name()] = self.figures(setting, outcome);
        }
        row(&setting.machine, self.lock, setting.threads, keys)
    }

    fn figures(&self, setting: &Setting, outcome: &Outcome) -> Value {
        let steals = &outcome.steals;
        json!({
            "ops_per_s": rate(setting, outcome),
            "of_alone": self.measured.of_alone(outcome),
            "times_none": self.measured.times_none(outcome),
            "won_back": self.measured.won_back(outcome),
            "preemptions": steals.preemptions,
            "owners_preempted": steals.of_owners,
            "next_preempted": steals.of_next,
            "woken_without_cpu": steals.of_woken,
            "woken_wait_ns": woken_ns(outcome),
            "put_off": steals.put_off,
            "overrun": steals.overrun,
            "yields": steals.yields,
            "trace": trace(outcome.trace_hash),
        })
    }
}

impl Measured {
    /// Returns the work as a share of that of one guest alone.
    fn of_alone(&self, outcome: &Outcome) -> Option<f64> {
        ratio(outcome.total_operations() as f64, self.alone.total_operations() as f64)
    }

    /// Returns the work as a multiple of that without hints, if that was simulated.
    fn times_none(&self, outcome: &Outcome) -> Option<f64> {
        ratio(outcome.total_operations() as f64, self.none()?)
    }

    /// Returns the share that hints win back of what a second level of scheduling costs without
    /// them; `None` if it costs nothing.
    fn won_back(&self, outcome: &Outcome) -> Option<f64> {
        let lost = self.alone.total_operations() as f64 - self.none()?;
        let won = outcome.total_operations() as f64 - self.none()?;
        if lost > 0.0 { ratio(won, lost) } else { None }
    }

    fn none(&self) -> Option<f64> {
        let none = self.with.iter().find(|(hints, _)| *hints == Hints::None);
        none.map(|(_, outcome)| outcome.total_operations() as f64)
    }
}

fn rate(setting: &Setting, outcome: &Outcome) -> f64 {
    outcome.total_operations() as f64 * 1e9 / setting.limit_ns as f64
}

/// A simulated figure does not deserve more than three decimal places.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| (part / whole * 1e3).round() / 1e3)
}

/// Returns the average time for which a thread that was woken waits for its virtual CPU to run.
fn woken_ns(outcome: &Outcome) -> Option<u64> {
    outcome.steals.woken_ns.checked_div(outcome.steals.of_woken)
}

fn text(setting: &Setting, rows: &[Row]) -> String {
    let all: Vec<_> = rows
        .iter()
        .flat_map(|Row { lock, measured }| {
            measured.with.iter().map(move |(hints, outcome)| (lock, measured, hints, outcome))
        })
        .collect();
    let two = |figure| Cell::known(figure, |figure: f64| format!("{figure:.2}"));
    let count = |count: u64| Cell::number(count.to_string());
    let work = Table::of(
        &all,
        &[
            ("operations/s", &|(lock, ..)| Cell::text(**lock)),
            (">alone", &|(_, of, ..)| Cell::number(si(rate(setting, &of.alone)))),
            ("hints", &|(.., hints, _)| Cell::text(hints.name())),
            (">together", &|(.., outcome)| Cell::number(si(rate(setting, outcome)))),
            (">of alone", &|(_, of, _, outcome)| two(of.of_alone(outcome))),
            (">times none", &|(_, of, _, outcome)| two(of.times_none(outcome))),
            (">won back", &|(_, of, _, outcome)| two(of.won_back(outcome))),
        ],
    );
    let counts = Table::of(
        &all,
        &[
            ("", &|(lock, ..)| Cell::text(**lock)),
            ("hints", &|(.., hints, _)| Cell::text(hints.name())),
            (">preempted", &|(.., outcome)| count(outcome.steals.preemptions)),
            (">owners", &|(.., outcome)| count(outcome.steals.of_owners)),
            (">next", &|(.., outcome)| count(outcome.steals.of_next)),
            (">woken", &|(.., outcome)| count(outcome.steals.of_woken)),
            (">wait", &|(.., outcome)| Cell::known(woken_ns(outcome), |ns| duration(ns as f64))),
            (">put off", &|(.., outcome)| count(outcome.steals.put_off)),
            (">overrun", &|(.., outcome)| count(outcome.steals.overrun)),
            (">yields", &|(.., outcome)| count(outcome.steals.yields)),
        ],
    );
    let colour = colour_stdout();
    format!("{}\n{}\n{RULE}", work.render(colour), counts.render(colour))
}

const RULE: &str = "\
won back   of the work that is lost without hints, the share that is done with them
preempted  virtual CPUs that lost their CPU because their slice was over
owners     of those, the ones whose thread owned a lock, to write or to read
next       spinners that got a lock while their virtual CPU had no CPU, and used it after
woken      threads woken while their virtual CPU had no CPU, and their average wait for it
put off    preemptions put off because of a section; overrun: of them, those that came in one
yields     virtual CPUs given away by spinners
";
