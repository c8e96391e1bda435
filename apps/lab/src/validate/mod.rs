//! `validate`: the same locks under the same workload, on this machine and simulated.
//!
//! | module | has |
//! |---|---|
//! | [`workload`] | the work of threads, generic over the world in which they run |
//! | [`settings`] | numbers of threads, their CPUs, and lengths of runs |
//! | [`native`] | threads of this machine |
//! | [`simulated`] | threads of a simulated one |
//! | [`peer`] | the C library's mutex, which can't be simulated |
//! | [`compare`] | both worlds, lock by lock |
//! | [`budget`] | the time budget, and an early end by the user |
//! | [`line`] | whether the machine is still the one that was calibrated |
//! | [`marks`] | marks of native threads, and their evaluation |
//! | [`rows`] | measured and predicted figures |
//! | [`agree`] | the rule by which the two agree or differ |
//! | [`report`], [`text`], [`page`] | the report, for scripts and for people |

mod agree;
mod budget;
mod compare;
mod line;
mod marks;
mod native;
mod page;
mod peer;
mod report;
mod rows;
mod settings;
mod simulated;
mod text;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use antiphon_linux::Linux;
use antiphon_platform::LightUnlock as _;
use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::progress::Progress;
use antiphon_report::table::{colour_stdout, printable};
use antiphon_report::{machine, say};
use antiphon_sim::{Description, Machine};
use clap::Args;

use crate::pinned::usable;
use crate::sim::calibrate;
use budget::Budget;
use line::Line;
use report::Report;
use settings::{FULL, Order, QUICK};
use workload::LOCKS;

/// Compare the simulator's predictions with measurements on this machine
#[derive(Args)]
#[command(after_help = "\
It measures this machine's latencies as `antiphon sim calibrate` does; the simulator gets no other
figures. Then it runs the same locks on this machine and simulated, with 1, 2, 4, ... threads up to
a socket, all CPUs, and twice and four times as many, and reports for each whether the two agree.
The machine should be idle. If it is interrupted, it writes the results so far.

The folder then has machine.toml (for `sim --machine`), report.json and report.html.

Example:
  antiphon validate
  antiphon validate --quick --out first-look
  antiphon validate --machine antiphon-validate/machine.toml --minutes 30 --json")]
pub struct Arguments {
    /// Machine to predict for, instead of calibrating this one: a name, or the path of a file
    #[arg(long, value_name = "M")]
    machine: Option<String>,
    /// Largest duration in minutes, in addition to the measurement of latencies
    #[arg(long, value_name = "T", default_value_t = 10.0, allow_negative_numbers = true)]
    minutes: f64,
    /// Measure and simulate each row once, in a short run
    #[arg(long)]
    quick: bool,
    /// Folder for the reports, which is created if necessary [default: antiphon-validate; with
    /// --json, none]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The default folder of reports.
const FOLDER: &str = "antiphon-validate";

/// Measures, predicts, and writes and prints the report.
///
/// # Errors
///
/// Bad arguments; if CPUs can't be used; if a lock fails; if a file or stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let minutes = arguments.minutes;
    if !(0.01..=1440.0).contains(&minutes) {
        return Err(Failure::arguments("--minutes takes a time from 0.01 to 1440, such as 10"));
    }
    let extent = if arguments.quick { QUICK } else { FULL };
    let named = arguments.machine.as_deref().map(machine::named).transpose()?;
    let usual = (!arguments.json).then(|| PathBuf::from(FOLDER));
    let folder = arguments.out.clone().or(usual);
    let files = folder.as_deref().map(Files::open).transpose()?;
    let (text, described, noisy) = match named {
        Some(found) => (found.text.into_owned(), found.described, false),
        None => {
            let calibrated = calibrate::calibrate(arguments.quick)?;
            let described = calibrated.described()?;
            let noisy = calibrated.is_noisy();
            (calibrated.text, described, noisy)
        }
    };
    let (order, skipped) = places(&described)?;
    let mut line = Line::of(&described, &order.places)?;
    // The locks here unlock in the way that this process supports.
    let machine = Machine { light: Linux::light(), ..described.machine };
    budget::note_signals();
    let files = files.map(|files| files.put_machine(&text)).transpose()?;

    let budget = Budget::begin(minutes);
    let settings = order.settings();
    let mut cells = compare::cells(&settings);
    let simulated = settings.len() * LOCKS.len() * extent.seeds as usize;
    let mut progress = Progress::new(cells.len() * extent.repetitions + simulated);
    let repetitions = compare::measure(&mut cells, extent, line.as_mut(), budget, &mut progress)?;
    compare::predict(&mut cells, &machine, extent, budget, &mut progress);
    drop(progress);

    let report = Report {
        host: host(),
        model: machine.name.clone(),
        noisy,
        moved: line.map_or(0, |line| line.moved),
        repetitions,
        interrupted: budget::asked().is_some(),
        skipped,
        rows: rows::rows(&cells),
        means: Vec::new(),
        verdicts: Vec::new(),
    };
    let report = report.concluded();
    let written = files.map_or(Ok(()), |files| files.put(&report));
    if arguments.json {
        antiphon_report::report::print(report.object())?;
    } else {
        say(&printed(&report, folder.as_deref().filter(|_| written.is_ok())))?;
    }
    written?;
    budget::end_as_asked();
    match &report.failures()[..] {
        [] => Ok(ExitCode::SUCCESS),
        failures => Err(Failure::measured(failures.join("; "))),
    }
}

/// Returns the CPUs to use, and what can't be compared.
fn places(described: &Description) -> Result<(Order, Vec<String>), Failure> {
    let (usable, machine) = (usable(), &described.machine);
    let order = Order::of(&machine.topology, &usable);
    let mut skipped = Vec::new();
    let beyond = usable.len() - order.places.len();
    if order.places.is_empty() {
        let name = &machine.name;
        let what = format!("{name} has none of the CPUs that may be used: --machine host");
        return Err(Failure::arguments(what));
    }
    if beyond > 0 {
        let (name, cpus) = (&machine.name, machine.cores());
        skipped.push(format!("{beyond} CPUs: {name} has {cpus}"));
    }
    if order.places.len() < 2 {
        skipped.push("all with two CPUs: only one may be used".to_owned());
    }
    Ok((order, skipped))
}

/// Returns the name of this machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    printable(name.trim())
}

/// The files of a folder; opening them has shown that they can be written.
struct Files {
    machine: Option<OutputFile>,
    json: OutputFile,
    html: OutputFile,
}

impl Files {
    fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| {
            let hint = if folder.is_file() { "; give the path of a folder" } else { "" };
            Failure::arguments(format!("--out {}: {error}{hint}", folder.display()))
        })?;
        let file = |name: &str| OutputFile::open("--out", &folder.join(name));
        let machine = Some(file("machine.toml")?);
        Ok(Self { machine, json: file("report.json")?, html: file("report.html")? })
    }

    /// Writes the machine's file first, because everything else takes minutes.
    fn put_machine(mut self, text: &str) -> Result<Self, Failure> {
        self.machine.take().map_or(Ok(()), |file| file.write(text))?;
        Ok(self)
    }

    fn put(self, report: &Report) -> Result<(), Failure> {
        let json = format!("{:#}\n", antiphon_report::report::framed(report.object()));
        self.json.write(&json).and(self.html.write(&page::page(report)))
    }
}

fn printable_lines(lines: &[String]) -> String {
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
}

fn printed(report: &Report, folder: Option<&Path>) -> String {
    let colour = colour_stdout();
    let mut text = text::verdict(report);
    text += &format!("\n{}\n\n{}", printable_lines(&report.origin()), agree::RULE);
    if !report.differences().is_empty() {
        text += &format!("\nWhere they differ\n{}", text::differences(report, colour));
    }
    text += &format!("\n{}\n{}", text::tables(report, colour), text::notes(report));
    if let Some(folder) = folder {
        let folder = printable(&folder.display().to_string());
        text += &format!("{folder}: machine.toml, report.json, report.html\n");
    }
    text
}
