//! `sim locks` and `sim rwlocks`: the locks in the cases of the documents, on simulated machines.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use antiphon_replay::locks::{LOCKS, SimLock};
use antiphon_sim::Placement;
use clap::Args;
use serde_json::{Value, json};

use super::cases::{self, Case};
use super::experiment::{Arbitration, Pages, Setting};
use super::search::{self, VARIANTS};
use super::shard::{self, Shard};
use super::sweep::{self, Cell};
use super::{find, page, published, rows, tables, timeline, trace};
use crate::bench::Family;
use crate::failure::Failure;
use crate::list::{Counts, names};
use crate::output::table::{colour_stdout, duration, si};
use crate::output::{report, say};

/// What is simulated, and what is printed of it.
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The same
command prints the same each time; how long it took goes to stderr. docs/simulator.md says what the
cases do, and how far such figures can be trusted.

Example:
  antiphon sim locks --machine 8s-192c --threads 1,24,48,96,192,384 --subject shfl-mutex,mcs,futex
  antiphon sim rwlocks --case enumerate,mixed --html curves.html
  antiphon sim locks --timeline --case create,lock2 --html years.html
  antiphon sim locks --case all --shard 1/4 --json > 1.json; antiphon sim locks --merge *.json")]
pub struct Arguments {
    /// The machine: a name that `antiphon sim machines` has, host, or a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Threads; one, a socket, two, half the machine, the machine and twice that, if not said
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Locks, or all of them: all
    #[arg(long, value_name = "LIST")]
    subject: Option<String>,
    /// What threads do, or all of it: all
    #[arg(long, value_name = "LIST", default_value = "create")]
    case: String,
    /// Of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Simulate each row with so many seeds, from --seed on; it is the median's, with the range
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u16,
    /// Simulated milliseconds
    #[arg(long, value_name = "T", default_value_t = 5.0, allow_negative_numbers = true)]
    ms: f64,
    /// In which order requests for a contended line are served
    #[arg(long, value_name = "A", value_enum, default_value = "fifo")]
    arbitration: Arbitration,
    /// Whose memory lines are in: near (always the reader's), first-touch, interleaved, or a node
    #[arg(long, value_name = "P", default_value = "near")]
    pages: Pages,
    /// Locks with other parameters than they come with; who is not beaten in work, fairness and
    /// wakes together is marked
    #[arg(long, conflicts_with = "subject")]
    search: bool,
    /// Locks by the year in which they were published, with as many threads as the machine has CPUs
    #[arg(long, conflicts_with_all = ["subject", "search", "threads", "shard", "merge"])]
    timeline: bool,
    /// Only a part of the rows, the I-th of N: for many machines, each with --json
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Simulate nothing: put together what parts have printed with --json
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["machine", "threads", "subject", "case", "seed", "seeds", "ms",
            "arbitration", "pages", "shard"]
    )]
    merge: Vec<PathBuf>,
    /// Write what each thread does in one row to a timeline, for Perfetto or Chrome: so name one
    /// lock, one case and one number of threads
    #[arg(long, value_name = "FILE", conflicts_with_all = ["search", "timeline", "shard", "merge"])]
    trace: Option<PathBuf>,
    /// Write the curves to a page, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The locks that are simulated if none are named: each idea once.
const MUTEXES: &str = "tas,ticket,mcs,mcs-stp,futex,cna,cohort-tkt-mcs,hmcs,cst-mutex,qspinlock,\
                       linux-mutex,shfl-spin,shfl-mutex";

/// Simulates, or puts parts together, and prints.
///
/// # Errors
///
/// Bad arguments; a lock that can't go on; if the page or stdout can't be written.
pub fn run(family: Family, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut report = match &arguments.merge[..] {
        [] => simulate(family, arguments)?,
        files => shard::merge(files)?,
    };
    if let (true, Some(rows)) = (arguments.search, report["rows"].as_array_mut()) {
        search::mark(rows);
    }
    if let (true, Some(rows)) = (arguments.timeline, report["rows"].as_array_mut()) {
        timeline::date(rows);
    }
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let heading = heading(&report["simulated"]);
    if let Some(path) = &arguments.html {
        let machine = report["simulated"]["machine"].as_str().unwrap_or_default();
        let page = if arguments.timeline {
            timeline::page(&heading, rows)
        } else {
            page::page(machine, &heading, rows)
        };
        let written = std::fs::write(path, page);
        written.map_err(|error| Failure::measured(format!("{}: {error}", path.display())))?;
    }
    if arguments.json {
        report::print(report.clone())?;
    } else {
        let text = if arguments.timeline { timeline::text } else { tables::text };
        say(&format!("{heading}\n\n{}", text(rows, colour_stdout())))?;
    }
    match rows.iter().find(|row| row.get("failed").is_some()) {
        Some(row) => Err(Failure::measured(trouble(row))),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn simulate(family: Family, arguments: &Arguments) -> Result<Value, Failure> {
    let described = find::machine(&arguments.machine)?.described;
    let limit_ns = limit_ns(arguments.ms)?;
    let Arguments { seed, seeds, arbitration, pages, .. } = *arguments;
    if seeds == 0 {
        return Err(Failure::arguments("--seeds takes a number from 1, such as 3"));
    }
    let nodes = described.machine.topology.nodes();
    if let Pages(Placement::On(node)) = pages
        && node >= nodes
    {
        let what = format!("--pages {node}: {} has {nodes} nodes, from 0", arguments.machine);
        return Err(Failure::arguments(what));
    }
    let records = arguments.trace.is_some();
    let setting =
        Setting { machine: described.machine, arbitration, pages, seed, limit_ns, records };
    let mut cells = cells(family, arguments, &setting)?;
    if let Some(shard) = arguments.shard {
        let mut places = 0..;
        cells.retain(|_| places.next().is_some_and(|place| shard.has(place)));
    }
    if let (Some(_), 2..) = (&arguments.trace, cells.len() * usize::from(seeds)) {
        let what = "--trace writes down one row: name one --subject, --case and --threads";
        return Err(Failure::arguments(what));
    }
    let of_seeds = |cell: Cell| {
        (0..seeds).map(move |more| Cell { seed: seed.wrapping_add(more.into()), ..cell })
    };
    let cells: Vec<_> = cells.into_iter().flat_map(of_seeds).collect();
    let begun = Instant::now();
    let rows = sweep::rows(&setting, &cells);
    let (took, operations) = (begun.elapsed(), rows::operations(&rows));
    if let (Some(path), [row]) = (&arguments.trace, &rows[..]) {
        trace::write(path, &setting, row)?;
    }
    let rows: Vec<_> =
        rows.chunks(seeds.into()).map(|rows| rows::of_seeds(&setting, rows)).collect();
    eprintln!(
        "antiphon: {} simulated memory operations in {}",
        si(operations as f64),
        duration(took.as_nanos() as f64)
    );
    Ok(json!({
        "simulated": {
            "machine": setting.machine.name, "hash": format!("{:016x}", described.hash),
            "seed": seed, "seeds": seeds, "ms": arguments.ms, "arbitration": arbitration.name(),
            "pages": pages.to_string(),
        },
        "rows": rows, "sim": { "ops": operations },
        "published": published::rows(&setting.machine.name, &rows),
    }))
}

fn heading(simulated: &Value) -> String {
    let text = |key: &str| simulated[key].to_string().replace('"', "");
    let seeds = match (simulated["seed"].as_u64(), simulated["seeds"].as_u64()) {
        (Some(first), Some(seeds @ 2..)) => format!("{seeds} seeds from {first} on, medians"),
        _ => format!("seed {}", text("seed")),
    };
    format!(
        "Simulated (a model, not a measurement): {}, {} ms, {seeds}, arbitration {}, pages {}",
        text("machine"),
        text("ms"),
        text("arbitration"),
        text("pages")
    )
}

fn trouble(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let threads = &row["threads"];
    format!("{}, {}, {threads} threads: {}", text("subject"), text("case"), text("failed"))
}

fn limit_ns(ms: f64) -> Result<u64, Failure> {
    if (0.001..=10_000.0).contains(&ms) {
        Ok((ms * 1e6).round() as u64)
    } else {
        Err(Failure::arguments("--ms takes a time from 0.001 to 10000, such as 5"))
    }
}

/// All rows that are wanted: those of a case together, and in it those of a lock; in the order of
/// the tables of both, whatever that of the arguments is.
fn cells(family: Family, arguments: &Arguments, setting: &Setting) -> Result<Vec<Cell>, Failure> {
    let locks = LOCKS.iter().filter(|lock| cases::family(lock) == family);
    let locks: Vec<_> = locks.map(|lock| lock.name).collect();
    let known: Vec<_> = cases::of(family).map(|case| case.name).collect();
    let default = if family == Family::Exclusive { MUTEXES } else { "all" };
    let wanted = arguments.subject.as_deref().unwrap_or(default);
    let named = some_or_all("lock", wanted, &locks)?;
    let cases = some_or_all("case", &arguments.case, &known)?;
    let threads = match &arguments.threads {
        Some(Counts(threads)) => threads.clone(),
        None if arguments.timeline => vec![setting.machine.cores() as usize],
        None => usual_threads(setting),
    };
    let subjects: Vec<&SimLock> = match (arguments.search, family) {
        (false, _) if arguments.timeline => timeline::locks(family),
        (false, _) => named.iter().filter_map(|name| SimLock::named(name)).collect(),
        (true, Family::Exclusive) => VARIANTS.iter().collect(),
        (true, Family::Shared) => {
            let what = "--search: readers-writer locks have no parameters; search among sim locks";
            return Err(Failure::arguments(what));
        }
    };
    let cases: Vec<&Case> = cases.iter().filter_map(|name| cases::named(name)).collect();
    let seed = setting.seed;
    let mut cells = Vec::new();
    for case in cases {
        for &subject in &subjects {
            cells.extend(threads.iter().map(|&threads| Cell { subject, case, threads, seed }));
        }
    }
    Ok(cells)
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

/// One thread, a socket, two, half the machine, the machine, and twice as many as it has.
fn usual_threads(setting: &Setting) -> Vec<usize> {
    let cpus = setting.machine.cores() as usize;
    let socket = cpus / setting.machine.topology.nodes() as usize;
    let mut threads = vec![1, socket, (2 * socket).min(cpus), (cpus / 2).max(1), cpus, 2 * cpus];
    threads.sort_unstable();
    threads.dedup();
    threads
}
