//! `sim clock`: the cost of timestamps on simulated machines.
//!
//! First the clock is measured on the simulated machine, by the code that measures a real one. Then
//! each thread takes stamps, on a CPU of its own, until the time is up.

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::rc::Rc;

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::progress::Progress;
use antiphon_report::report::print_or_say;
use antiphon_report::table::{Cell as Field, Table, colour_stdout, si};
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, count, finished};
use antiphon_sync::clock::{Apart, Least, Meeting, Ordo};
use clap::Args;
use serde_json::{Value, json};

use super::report::{body, chosen, heading, row};
use crate::clocks::{Repeat, SUBJECTS, Site, Subject};

/// Timestamps: a shared counter, the CPU's counter, the clock, Ordo; and transactions that are
/// ordered by them
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The
counters of its nodes differ as its file says; the code finds that out as on a real machine.
docs/clock.md says what the subjects do.

Example:
  antiphon sim clock --machine 8s-192c --threads 1,24,192
  antiphon sim clock --machine numa-1024c --subject shared,ordo --json")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Numbers of threads [default: one, the CPUs of a socket, of the machine]
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Subjects: shared, counter, clock, ordo, ordo-new, tl2-shared, tl2-ordo, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    subject: String,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulated time, in milliseconds
    #[arg(long, value_name = "T", default_value_t = 0.1, allow_negative_numbers = true)]
    ms: f64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Rounds of measurement with each CPU; few are enough, because no thread is interrupted here.
const ROUNDS: u32 = 32;
/// Simulated time that no measurement reaches.
const LONG_NS: u64 = 10_000_000_000;

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; threads that can't make progress; if stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let described = machine::named(&arguments.machine)?.described;
    let subjects = chosen("subject", &arguments.subject, &SUBJECTS, (|one| one.name, true))?;
    if !(0.001..=1_000.0).contains(&arguments.ms) {
        return Err(Failure::arguments("--ms takes a time from 0.001 to 1000, such as 0.1"));
    }
    let (machine, seed) = (&described.machine, arguments.seed);
    let cpus = machine.cores() as usize;
    let threads = arguments.threads.clone().map_or_else(
        || vec![1, cpus / machine.topology.nodes() as usize, cpus],
        |Counts(threads)| threads,
    );
    let apart_ns = measured(machine, seed)?;
    let mut progress = Progress::new(threads.len() * subjects.len());
    let mut rows = Vec::new();
    for &threads in &threads {
        let first = rows.len();
        for &subject in &subjects {
            let limit_ns = (arguments.ms * 1e6).round() as u64;
            rows.push(Row::of(machine, seed, apart_ns, subject, threads, limit_ns)?);
            progress.step(&format!("{threads} threads: {}", subject.name));
        }
        Row::compare(&mut rows[first..]);
    }
    drop(progress);
    let (ms, offset_ns) = (arguments.ms, offset_ns(machine));
    let conditions = json!({
        "seed": seed, "ms": ms, "uncertainty_ns": apart_ns, "offset_ns": offset_ns,
    });
    let objects = || rows.iter().map(|row| row.object(machine)).collect();
    print_or_say(
        arguments.json,
        || body(&described, conditions, objects()),
        || {
            format!(
                "{}\nOrdo: uncertain within {apart_ns} ns, as the program finds; counters are \
                 apart by {offset_ns} ns at most\n\n{}",
                heading(machine, &format!("{ms} ms, seed {seed}")),
                text(&rows, colour_stdout())
            )
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the greatest offset between the machine's counters, according to its file.
fn offset_ns(machine: &Machine) -> u64 {
    let offsets = &machine.clock_offsets_ns;
    let apart = offsets.iter().max().zip(offsets.iter().min()).map(|(most, least)| most - least);
    apart.unwrap_or(machine.clock_offset_ns)
}

/// Returns the greatest offset that a program on it measures; a counter there counts nanoseconds.
fn measured(machine: &Machine, seed: u64) -> Result<u64, Failure> {
    let others = machine.cores() - 1;
    let meetings: Rc<Vec<_>> = Rc::new((0..others).map(|_| Meeting::<Sim>::new()).collect());
    let hub = Rc::new(RefCell::new(Vec::new()));
    let all: Rc<Vec<Cell<Option<Least>>>> = Rc::new(vec![Cell::new(None); others as usize]);
    let mut simulation = Simulation::new(machine.clone(), seed).thread_on(0, {
        let (meetings, hub) = (Rc::clone(&meetings), Rc::clone(&hub));
        move || {
            let lead = |meeting: &Meeting<Sim>| meeting.lead(ROUNDS, LONG_NS);
            hub.replace(meetings.iter().map(lead).collect());
        }
    });
    for place in 0..others as usize {
        let (meetings, all) = (Rc::clone(&meetings), Rc::clone(&all));
        let follow = move || all[place].set(Some(meetings[place].follow()));
        simulation = simulation.thread_on(place as u32 + 1, follow);
    }
    let _ = simulation.run(LONG_NS).map_err(Failure::measured)?;
    let mut apart = Apart::new();
    let others = all.iter().filter_map(Cell::get);
    hub.take().into_iter().zip(others).for_each(|(hub, other)| apart.add(hub, other));
    Ok(apart.ticks())
}

/// The figures of a subject with a number of threads.
struct Row {
    subject: Subject,
    threads: usize,
    ops_per_s: f64,
    /// Time that a thread takes for an operation; `None` if no operation was completed.
    ns_per_op: Option<f64>,
    aborts_per_kop: f64,
    /// The ratio to the reference.
    ratio: Option<f64>,
}

impl Row {
    fn of(
        machine: &Machine,
        seed: u64,
        apart_ns: u64,
        subject: Subject,
        threads: usize,
        limit_ns: u64,
    ) -> Result<Self, Failure> {
        let site = Rc::new(OwnLine(Site::<Sim>::new(threads, Ordo::new(apart_ns))));
        let aborts = Rc::new(Cell::new(0));
        let shared = (Rc::clone(&site), Rc::clone(&aborts));
        let simulation = Simulation::new(machine.clone(), seed).threads(threads, move |thread| {
            let (site, aborts) = shared;
            let aborted = site.run(subject, thread, UntilFinished);
            aborts.set(aborts.get() + aborted);
        });
        let outcome = simulation.run(limit_ns).map_err(Failure::measured)?;
        if !site.is_sound() {
            let what = format!("{} with {threads} threads has lost a transaction", subject.name);
            return Err(Failure::measured(what));
        }
        let operations = outcome.total_operations() as f64;
        let each = |all: f64| (operations > 0.0).then(|| all / operations);
        Ok(Self {
            subject,
            threads,
            ops_per_s: operations * 1e9 / limit_ns as f64,
            ns_per_op: each(threads as f64 * limit_ns as f64),
            aborts_per_kop: each(aborts.get() as f64 * 1e3).unwrap_or_default(),
            ratio: None,
        })
    }

    /// Sets the ratios of the rows of one number of threads.
    fn compare(rows: &mut [Self]) {
        let work: Vec<_> = rows.iter().map(|row| (row.subject.name, row.ns_per_op)).collect();
        for row in rows {
            let to = work.iter().find(|(name, _)| *name == row.subject.reference);
            let to =
                to.and_then(|&(_, ns)| ns).filter(|_| row.subject.reference != row.subject.name);
            row.ratio = row.ns_per_op.zip(to).map(|(own, to)| own / to);
        }
    }

    fn object(&self, machine: &Machine) -> Value {
        let keys = json!({
            "ns_per_op": self.ns_per_op, "ops_per_s": self.ops_per_s,
            "aborts_per_kop": self.aborts_per_kop, "reference": self.subject.reference,
            "ratio": self.ratio,
        });
        row(machine, self.subject.name, self.threads, keys)
    }
}

fn text(rows: &[Row], colour: bool) -> String {
    let table = Table::of(
        rows,
        &[
            (">threads", &|row| Field::number(row.threads.to_string())),
            ("subject", &|row| Field::text(row.subject.name)),
            (">ns each", &|row| Field::known(row.ns_per_op, |ns| format!("{ns:.1}"))),
            (">ops/s", &|row| Field::number(si(row.ops_per_s))),
            (">ratio", &|row| Field::known(row.ratio, |ratio| format!("{ratio:.4}×"))),
            ("to", &|row| Field::text(row.ratio.map_or("-", |_| row.subject.reference))),
            (">aborts/kop", &|row| Field::number(format!("{:.2}", row.aborts_per_kop))),
        ],
    );
    format!("{}A ratio is of times: less is better.\n", table.render(colour))
}

/// Repeats until the simulated time is up. Returns how often an operation was retried.
struct UntilFinished;

impl Repeat for UntilFinished {
    type Done = u64;

    fn repeat(self, mut operation: impl FnMut() -> u32) -> u64 {
        let mut aborts = 0;
        while !finished() {
            aborts += u64::from(operation());
            count();
        }
        aborts
    }
}
