//! `replay`: runs a recorded program on a simulated machine, once for each lock.
//!
//! | module | does |
//! |---|---|
//! | [`rehearse`] | runs all replays, on all CPUs |
//! | [`study`] | their results: rows, sites, the recommendation |
//! | [`text`] | the results as tables |
//! | [`html`] | the results as a page, with curves |

mod html;
mod rehearse;
pub mod study;
mod text;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use antiphon_replay::locks::SimLock;
use antiphon_replay::{Evidence, GLIBC, IDEAL, Plan, Play, Subject, Work, middle, timeline};
use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::{report, say, table};
use antiphon_sim::{Arbitration, Machine};
use antiphon_trace::{Error, Reader, Trace};
use clap::{Args, ValueEnum};

use study::Study;

/// Run a recorded program on a simulated machine, once with each lock, and recommend a lock
#[derive(Args)]
#[command(after_help = "\
A replay repeats the computing of the threads, but not their waits: locks are acquired again, and a
wait on a condition ends when the thread that has notified it does so again. All figures are
simulated. They don't include the cost of the program's own data on that machine (see --data-lines),
nor the speed of its CPUs.

Threads that began in the same function are workers. --threads is the number of all threads; only
the number of workers changes with it. `fixed`: all workers together do the recorded work;
`per-thread`: each does the work of one of them. futex stands for glibc's mutex; readers-writer
locks are ours, except with linux-mutex and qspinlock (the kernel's) and with cst-mutex (CST's).

Examples:
  antiphon replay xz.trace --machine 8s-192c --html report.html
  antiphon replay xz.trace --machine host --lock mcs,cna --threads 2,4")]
pub struct Arguments {
    /// Trace that `antiphon record` has written
    trace: PathBuf,
    /// Simulated machine: a name from `antiphon sim machines`, or the path of a machine file
    #[arg(long, value_name = "M")]
    machine: String,
    /// Numbers of threads to simulate [default: as recorded, a node's CPUs, all CPUs]
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Locks to compare, in addition to futex and the ideal lock
    #[arg(long, value_name = "LIST", default_value = "shfl-mutex,shfl-mutex+light")]
    lock: String,
    /// How the work grows with the number of threads
    #[arg(long, value_enum, default_value = "fixed")]
    work: Mode,
    /// Number of cache lines of the lock's data that each critical section touches, at most 64
    #[arg(long, value_name = "N", default_value_t = 0)]
    data_lines: usize,
    /// Largest number of acquisitions to replay: of a longer recording, the middle is replayed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    takes: usize,
    /// Also write the report to F as a page for a browser
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Write a timeline for Perfetto or Chrome to F: the recording, and below it the replay on M
    /// with futex and the same number of threads
    #[arg(long, value_name = "F")]
    export: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// [`Work`], on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Fixed,
    PerThread,
}

/// More cache lines than a program's critical section touches.
const MOST_LINES: usize = 64;

/// Replays a trace and reports the results.
///
/// # Errors
///
/// Bad arguments, including a trace that can't be read; an output that can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let locks = locks(&arguments.lock)?;
    if arguments.data_lines > MOST_LINES {
        let what = format!("--data-lines takes a number up to {MOST_LINES}, such as 2");
        return Err(Failure::arguments(what));
    }
    if arguments.takes == 0 {
        return Err(Failure::arguments("--takes takes a number from 1, such as 100000"));
    }
    let machine = machine::named(&arguments.machine)?.described.machine;
    let path = &arguments.trace;
    let trace = read(path)?;
    let evidence =
        Evidence { events: trace.events() as u64, dropped: trace.dropped, cut_off: trace.cut_off };
    let part = middle(&trace, arguments.takes);
    let is_part = part.is_some();
    let replayed = part.unwrap_or(trace);
    let plan = Arc::new(Plan::new(&replayed));
    if plan.takes() == 0 {
        return Err(Failure::arguments(if is_part {
            format!(
                "--takes {}: in a part this short from the middle of the recording, no lock is \
                both taken and released; give a larger number, or leave it out",
                arguments.takes
            )
        } else {
            let what = "no thread takes a lock in the recording: there is nothing to replay";
            format!("{}: {what}", path.display())
        }));
    }
    let threads = threads(arguments, &plan, &machine, is_part)?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let exported = match OutputFile::of("--export", arguments.export.as_deref())? {
        // The first lock is glibc's.
        Some(to) => export(to, arguments.data_lines, (&replayed, &plan), (&machine, locks[0])),
        None => Ok(()),
    };
    let work = match arguments.work {
        Mode::Fixed => Work::Fixed,
        Mode::PerThread => Work::PerThread,
    };
    let asked = study::Asked {
        machine,
        locks,
        threads,
        work,
        data_lines: arguments.data_lines,
        evidence,
        is_part,
    };
    let study = Study::new(&replayed, &plan, asked);
    let written = html.map_or(Ok(()), |file| file.write(&html::page(&study)));
    if arguments.json {
        report::print(study.json())?;
    } else {
        say(&text::text(&study, table::colour_stdout()))?;
    }
    exported.and(written).map(|()| ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Trace, Failure> {
    let fail = |error: Error| Failure::arguments(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| fail(error.into()))?;
    Reader::read(BufReader::new(file)).map_err(fail)
}

/// Writes the timeline, as it was recorded and as it is simulated.
fn export(
    to: OutputFile,
    data_lines: usize,
    (recorded, plan): (&Trace, &Arc<Plan>),
    (machine, lock): (&Machine, Subject),
) -> Result<(), Failure> {
    let play = Play {
        machine: machine.clone(),
        arbitration: Arbitration::Fifo,
        seed: study::SEEDS[0],
        data_lines,
    };
    let simulated = play.trace(recorded, plan, lock);
    let simulated = simulated.map_err(|stuck| Failure::measured(format!("--export: {stuck}")))?;
    let called = format!("simulated: {}, {}", machine.name, lock.name);
    let traces = [("recorded", recorded), (&*called, &simulated)];
    to.write_by(|out| timeline(&traces, out))
}

/// The locks of the list, with glibc's before them and the ideal one after them.
fn locks(list: &str) -> Result<Vec<Subject>, Failure> {
    let mut locks: Vec<Subject> = Vec::new();
    for name in [GLIBC].into_iter().chain(list.split(',').map(str::trim)).chain([IDEAL]) {
        let Some(lock) = Subject::named(name) else {
            if SimLock::named(name).is_some_and(SimLock::delegates) {
                let why = "it runs critical sections for the callers, but a recording only has \
                    acquisitions and releases; use antiphon sim locks for it";
                return Err(Failure::arguments(format!("{name} can't be replayed: {why}")));
            }
            let known: Vec<_> = Subject::all().map(|subject| subject.name).collect();
            let known = known.join(", ");
            return Err(Failure::arguments(format!("no lock {name:?}: there are {known}")));
        };
        if locks.iter().all(|other| other.name != lock.name) {
            locks.push(lock);
        }
    }
    locks.sort_by_key(|lock| lock.name == IDEAL);
    Ok(locks)
}

/// The numbers of threads to replay with.
fn threads(
    arguments: &Arguments,
    plan: &Plan,
    machine: &Machine,
    is_part: bool,
) -> Result<Vec<usize>, Failure> {
    let peak = plan.peak();
    let mut threads = match &arguments.threads {
        Some(Counts(threads)) => threads.clone(),
        None if plan.scales() => {
            let (cpus, nodes) = (machine.cores(), machine.topology.nodes());
            vec![peak, (cpus / nodes) as usize, cpus as usize]
        }
        None => vec![peak],
    };
    threads.sort_unstable();
    threads.dedup();
    if !plan.scales() && threads != [peak] {
        let (takes, cure) = (arguments.takes, format!("leave --threads out, or say {peak}"));
        let why = "began in the same function, so the work of more threads is unknown";
        return Err(Failure::arguments(if is_part {
            format!("--takes {takes}: no two threads in that part {why}: say more, {cure}")
        } else {
            format!("no two of its threads {why}: {cure}")
        }));
    }
    Ok(threads)
}
