//! `sim locks` and `sim rwlocks`: the locks in the cases of the documents, on simulated machines.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::{Counts, names};
use antiphon_report::machine;
use antiphon_report::table::{colour_stdout, duration, si};
use antiphon_report::words::{noun, several};
use antiphon_report::{report, say};
use antiphon_sim::{Description, Machine, Placement};
use antiphon_trace::Trace;
use clap::Args;
use serde_json::{Value, json};

use super::experiment::{Arbitration, Pages, Setting};
use super::merge::{Simulated, merge};
use super::plan::{self, Plan};
use super::shard::Shard;
use super::sweep::{self, Cell};
use super::{cases, page, published, rows, search, tables, timeline, trace};
use crate::bench::Family;

/// The arguments of a simulation.
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The same
command prints the same each time; the time that it took goes to stderr. docs/simulator.md says what
the cases do, and how far such figures can be trusted.

Example:
  antiphon sim locks --machine 8s-192c --threads 1,24,48,96,192,384 --subject shfl-mutex,mcs,futex
  antiphon sim rwlocks --case enumerate,mixed --html curves.html
  antiphon sim locks --timeline --case create,lock2 --html years.html
  antiphon sim locks --case all --shard 1/4 --json > 1.json; antiphon sim locks --merge *.json")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Numbers of threads [default: one, the CPUs of a socket, of two, of half the machine, of the
    /// machine, and twice those]
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Locks to simulate, or all
    #[arg(long, value_name = "LIST")]
    subject: Option<String>,
    /// Cases to simulate, or all
    #[arg(long, value_name = "LIST", default_value = "create")]
    case: String,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of seeds, from --seed on, with which each row is simulated; the row has the median,
    /// and the range
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u16,
    /// Simulated time, in milliseconds
    #[arg(long, value_name = "T", default_value_t = 5.0, allow_negative_numbers = true)]
    ms: f64,
    /// Order in which requests for a contended cache line are served
    #[arg(long, value_name = "A", value_enum, default_value = "fifo")]
    arbitration: Arbitration,
    /// Node of the memory: near (always the reader's), first-touch, interleaved, or the number of a
    /// node
    #[arg(long, value_name = "P", default_value = "near")]
    pages: Pages,
    /// Vary the parameters of the locks; mark those that no other beats in work, fairness and wakes
    /// together
    #[arg(long, conflicts_with = "subject")]
    search: bool,
    /// Show locks by the year of their publication, with as many threads as the machine has CPUs
    #[arg(long, conflicts_with_all = ["subject", "search", "threads", "shard", "merge"])]
    timeline: bool,
    /// Simulate only the I-th of N parts of the rows, to spread them over several computers with
    /// --json
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Simulate nothing, but combine parts that were printed with --json
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["machine", "threads", "subject", "case", "seed", "seeds", "ms",
            "arbitration", "pages", "shard"]
    )]
    merge: Vec<PathBuf>,
    /// Write a timeline of the threads of one row to FILE, for Perfetto or Chrome. Needs one lock,
    /// one case and one number of threads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["search", "timeline", "shard", "merge"])]
    trace: Option<PathBuf>,
    /// Also write the curves to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The locks that are simulated by default: one for each idea.
const MUTEXES: &str = "tas,ticket,mcs,mcs-stp,futex,cna,cohort-tkt-mcs,hmcs,cst-mutex,qspinlock,\
                       linux-mutex,shfl-spin,shfl-mutex";

/// Simulates or merges parts, and prints the results.
///
/// # Errors
///
/// Bad arguments; a lock that can't make progress; if a file or stdout can't be written.
pub fn run(family: Family, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let trace = OutputFile::of("--trace", arguments.trace.as_deref())?;
    let (simulated, traced) = match &arguments.merge[..] {
        [] => simulate(family, arguments)?,
        files => (merge(family, files)?, None),
    };
    let Simulated { plan, rows, operations } = simulated;
    if arguments.search && !plan.search {
        let what = "--search: these are parts of no search; leave it out";
        return Err(Failure::arguments(what));
    }
    let rows = serde_json::to_value(rows).map_err(Failure::measured)?;
    let Value::Array(mut rows) = rows else { unreachable!("a list is a list") };
    // In a part, it can't be decided which locks are beaten.
    if plan.search && arguments.shard.is_none() {
        search::mark(&mut rows);
    }
    if arguments.timeline {
        timeline::date(&mut rows);
    }
    let drawn = html.map_or(Ok(()), |file| {
        let heading = plan.heading();
        file.write(&match arguments.timeline {
            true => timeline::page(&heading, &rows),
            false => page::page(&plan.machine, &heading, &rows),
        })
    });
    let traced = trace.zip(traced).map_or(Ok(()), |(file, (called, trace))| {
        file.write_by(|out| antiphon_replay::timeline(&[(&*called, &trace)], out))
    });
    let failed = rows.iter().find(|row| row.get("failed").is_some()).map(trouble);
    if arguments.json {
        report::print(object(&plan, arguments.shard, rows, operations))?;
    } else {
        let text = if arguments.timeline { timeline::text } else { tables::text };
        say(&format!("{}\n\n{}", plan.heading(), text(&rows, colour_stdout())))?;
    }
    drawn.and(traced)?;
    failed.map_or(Ok(ExitCode::SUCCESS), |trouble| Err(Failure::measured(trouble)))
}

/// Returns the object for scripts.
fn object(plan: &Plan, shard: Option<Shard>, rows: Vec<Value>, operations: u64) -> Value {
    let published = published::rows(&plan.machine, &rows);
    let mut object = json!({
        "simulated": plan, "rows": rows, "sim": { "ops": operations }, "published": published,
    });
    if let Some(shard) = shard {
        object["shard"] = json!(shard);
    }
    object
}

/// Returns the requested rows; and the events of each thread, if a trace of the only row is
/// requested.
fn simulate(
    family: Family,
    arguments: &Arguments,
) -> Result<(Simulated, Option<(String, Trace)>), Failure> {
    let described = machine::named(&arguments.machine)?.described;
    let limit_ns = limit_ns(arguments.ms)?;
    let Arguments { seed, seeds, arbitration, pages, .. } = *arguments;
    if seeds == 0 {
        return Err(Failure::arguments("--seeds takes a number from 1, such as 3"));
    }
    let nodes = described.machine.topology.nodes();
    if let Pages(Placement::On(node)) = pages
        && node >= nodes
    {
        let what = format!(
            "--pages {node}: {} has {}, from 0",
            arguments.machine,
            several(nodes.into(), "node")
        );
        return Err(Failure::arguments(what));
    }
    let plan = plan(family, arguments, &described)?;
    let mut cells = plan.cells(family).map_err(Failure::arguments)?;
    if let Some(shard) = arguments.shard {
        let mut places = 0..;
        cells.retain(|_| places.next().is_some_and(|place| shard.has(place)));
    }
    let records = arguments.trace.is_some();
    if let (true, 2..) = (records, cells.len() * usize::from(seeds)) {
        let what = "--trace writes down one row: name one --subject, --case and --threads";
        return Err(Failure::arguments(what));
    }
    let machine = described.machine;
    let setting = Setting { machine, arbitration, pages, seed, limit_ns, records };
    let of_seeds = |cell: Cell| {
        (0..seeds).map(move |more| Cell { seed: seed.wrapping_add(more.into()), ..cell })
    };
    let cells: Vec<_> = cells.into_iter().flat_map(of_seeds).collect();
    let begun = Instant::now();
    let swept = sweep::rows(&setting, &cells);
    let (took, operations) = (begun.elapsed(), rows::operations(&swept));
    let traced = swept.first().filter(|_| records).map(|row| trace::traced(&setting, row));
    let traced = traced.transpose()?;
    let rows = swept.chunks(seeds.into()).map(|rows| rows::of_seeds(&setting, rows)).collect();
    eprintln!(
        "antiphon: {} simulated memory {} in {}",
        si(operations as f64),
        noun(operations, "operation"),
        duration(took.as_nanos() as f64)
    );
    Ok((Simulated { plan, rows, operations }, traced))
}

/// Returns the plan of the arguments, in the order of the tables of cases and locks rather than of
/// the arguments.
fn plan(family: Family, arguments: &Arguments, described: &Description) -> Result<Plan, Failure> {
    let machine = &described.machine;
    let Arguments { seed, seeds, ms, arbitration, pages, search, .. } = *arguments;
    let known = plan::locks(family, search).map_err(Failure::arguments)?;
    let known: Vec<_> = known.iter().map(|lock| lock.name).collect();
    let subjects = match (&arguments.subject, family) {
        _ if arguments.timeline => timeline::locks(family).iter().map(|lock| lock.name).collect(),
        (Some(wanted), _) => some_or_all("lock", wanted, &known)?,
        (None, Family::Exclusive) if !search => some_or_all("lock", MUTEXES, &known)?,
        (None, _) => known,
    };
    let known: Vec<_> = cases::of(family).map(|case| case.name).collect();
    let cases = some_or_all("case", &arguments.case, &known)?;
    let threads = match &arguments.threads {
        Some(Counts(threads)) => threads.clone(),
        None if arguments.timeline => vec![machine.cores() as usize],
        None => usual_threads(machine),
    };
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    Ok(Plan {
        verb: plan::verb(family).to_owned(),
        machine: machine.name.clone(),
        hash: format!("{:016x}", described.hash),
        seed,
        seeds,
        ms,
        arbitration,
        pages,
        search,
        cases: owned(cases),
        subjects: owned(subjects),
        threads,
    })
}

fn trouble(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let threads = several(row["threads"].as_u64().unwrap_or_default(), "thread");
    format!("{}, {}, {threads}: {}", text("subject"), text("case"), text("failed"))
}

fn limit_ns(ms: f64) -> Result<u64, Failure> {
    if (0.001..=10_000.0).contains(&ms) {
        Ok((ms * 1e6).round() as u64)
    } else {
        Err(Failure::arguments("--ms takes a time from 0.001 to 10000, such as 5"))
    }
}

fn some_or_all(
    what: &str,
    wanted: &str,
    known: &[&'static str],
) -> Result<Vec<&'static str>, Failure> {
    if wanted == "all" {
        return Ok(known.to_vec());
    }
    let found = names(what, wanted, known).map_err(Failure::arguments)?;
    if found.is_empty() {
        let what = format!("no {what} named; there are: {}, and all", known.join(", "));
        return Err(Failure::arguments(what));
    }
    Ok(known.iter().copied().filter(|name| found.contains(name)).collect())
}

/// One thread, a socket, two, half the machine, the machine, and twice the machine.
fn usual_threads(machine: &Machine) -> Vec<usize> {
    let cpus = machine.cores() as usize;
    let socket = cpus / machine.topology.nodes() as usize;
    let mut threads = vec![1, socket, (2 * socket).min(cpus), (cpus / 2).max(1), cpus, 2 * cpus];
    threads.sort_unstable();
    threads.dedup();
    threads
}
