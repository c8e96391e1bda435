//! `sim calibrate`: this machine's latencies as a machine file.
//!
//! | module | has |
//! |---|---|
//! | [`core`] | costs of a single CPU |
//! | [`lines`] | cost of a cache line between two CPUs |
//! | [`system`] | costs of the operating system |
//! | [`collected`] | which of these are valid, and their values in a machine file |
//! | [`file`] | a machine file with numbers replaced |
//!
//! Only latencies are measured, never a lock: a machine must not be fitted to what it should
//! predict. Each figure is the median of short windows; those in which a thread lost its CPU are
//! dropped.

mod collected;
mod core;
mod file;
mod lines;
mod system;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::machine::host;
use antiphon_report::table::{Cell, Table, colour_stdout, duration, printable};
use antiphon_report::words::several;
use antiphon_report::{report, say};
use antiphon_sim::{Description, Kind};
use clap::Args;
use serde_json::{Value, json};

use crate::pinned::{Figure, usable};
use crate::ticks::Ticks;
use collected::{Collected, Missing};
use file::replaced;
use lines::Pair;

/// Measure this machine's latencies, and write them to a machine file
#[derive(Args)]
#[command(after_help = "\
The measurement pins threads; it takes some seconds, and longer with many CPUs. The machine should
be idle; a message says if it was not. Figures that can't be measured are taken from a similar
machine, and marked so in the file.

Example:
  antiphon sim calibrate
  antiphon sim calibrate --out mine.toml; antiphon sim machines mine.toml")]
pub struct Arguments {
    /// File to write [default: the file that `--machine host` reads]
    #[arg(long, value_name = "F")]
    out: Option<PathBuf>,
    /// Measure for a shorter time, in fewer windows
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// The measurements, and the resulting file.
pub struct Calibrated {
    /// Text of the machine file.
    pub text: String,
    figures: Vec<(String, Figure)>,
    pairs: Vec<Pair>,
    missing: Vec<Missing>,
}

impl Calibrated {
    /// Parses the machine.
    ///
    /// # Errors
    ///
    /// If the file is invalid, which is a defect.
    pub fn described(&self) -> Result<Description, Failure> {
        host::described(&self.text)
    }

    /// Returns whether the machine was not quiet during a measurement, or something could not be
    /// measured.
    pub fn is_noisy(&self) -> bool {
        !self.missing.is_empty() || self.figures.iter().any(|(_, figure)| figure.is_noisy())
    }
}

/// Measures, writes the file, and prints its contents.
///
/// # Errors
///
/// If CPUs can't be used, or the file can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => host::kept_path()?,
    };
    let file = OutputFile::open("--out", &path)?;
    let calibrated = calibrate(arguments.quick)?;
    let described = calibrated.described()?;
    let written = file.write(&calibrated.text);
    let path = written.is_ok().then(|| path.display().to_string());
    if arguments.json {
        report::print(object(&calibrated, &described, path.as_deref()))?;
    } else {
        say(&text(&calibrated, &described, path.as_deref()))?;
    }
    written.map(|()| ExitCode::SUCCESS)
}

/// Measures this machine.
///
/// # Errors
///
/// If CPUs can't be used.
pub fn calibrate(quick: bool) -> Result<Calibrated, Failure> {
    let windows = if quick { 60 } else { 400 };
    let places = usable();
    let Some(&first) = places.first() else {
        return Err(Failure::missing("no CPU may be used: see taskset -p $$"));
    };
    let base = host::text()?;
    let topology = host::described(&base)?.machine.topology;
    let watch = Ticks::calibrate();
    let core = core::measure(watch, first, windows)?;
    let mut pairs = lines::pairs(&topology, &places);
    for pair in &mut pairs {
        lines::measure(watch, pair, windows)?;
    }
    let system = system::measure(watch, &places, windows)?;
    let mut of = Collected::default();
    of.single("core.load", "a chain of loads", core.load);
    of.single("core.atomic", "a chain of fetch-and-adds", core.atomic);
    of.single("core.look", "looks of a waiter in vain", core.look);
    of.single("core.fence", "a store and a fence, in a row", core.fence);
    of.single("clock.read", "readings of the monotonic clock in a row", core.clock);
    for (class, level) in topology.classes().iter().enumerate() {
        let name = &topology.levels()[level.level].name;
        of.transfers(&format!("level.{name}.transfer"), class, &pairs);
    }
    of.system(&system);
    let date = report::date();
    let date = |source: &str| format!("{date}, antiphon sim calibrate: {source}");
    for entry in &mut of.entries {
        entry.source = date(&entry.source);
    }
    for state in &mut of.idle {
        state.source = date(&state.source);
    }
    let text = host::measured(&replaced(&base, &of.entries, &of.idle));
    Ok(Calibrated { text, figures: of.figures, pairs, missing: of.missing })
}

/// Returns the current cost of a line between two CPUs, in nanoseconds; `None` if the measurement
/// was disturbed.
///
/// # Errors
///
/// If one of the CPUs can't be used.
pub fn line_ns(
    watch: Ticks,
    [from, to]: [usize; 2],
    windows: usize,
) -> Result<Option<f64>, Failure> {
    let mut pair = Pair { from, to, class: 0, ns: None };
    lines::measure(watch, &mut pair, windows)?;
    Ok(pair.ns.map(|figure| figure.median))
}

fn object(calibrated: &Calibrated, described: &Description, path: Option<&str>) -> Value {
    let figures = calibrated.figures.iter().map(|(name, figure)| {
        json!({
            "name": name, "ns": figure.median, "p25": figure.p25, "p75": figure.p75,
            "windows": figure.windows, "dropped": figure.dropped, "noisy": figure.is_noisy(),
        })
    });
    let pairs = calibrated.pairs.iter().map(|pair| {
        json!({ "from": pair.from, "to": pair.to, "ns": pair.ns.map(|figure| figure.median) })
    });
    let missing = calibrated.missing.iter();
    let missing = missing.map(|Missing { name, why }| json!({ "name": name, "why": why }));
    json!({
        "file": path, "hash": format!("{:016x}", described.hash),
        "figures": figures.collect::<Vec<_>>(), "pairs": pairs.collect::<Vec<_>>(),
        "noisy": calibrated.is_noisy(), "not_measured": missing.collect::<Vec<_>>(),
    })
}

fn text(calibrated: &Calibrated, described: &Description, path: Option<&str>) -> String {
    let mut table = Table::new(&["figure", ">median", ">quartiles", ">windows", ">dropped", ""]);
    for (name, figure) in &calibrated.figures {
        table.row(vec![
            Cell::text(name),
            Cell::number(duration(figure.median)),
            Cell::number(format!("{} to {}", duration(figure.p25), duration(figure.p75))),
            Cell::number(figure.windows.to_string()),
            Cell::number(figure.dropped.to_string()),
            Cell::text(if figure.is_noisy() { "noisy" } else { "" }),
        ]);
    }
    let (measured, all) = (described.count(Kind::Measured), described.numbers.len());
    let mut said = table.render(colour_stdout());
    let path = path.unwrap_or("Not written");
    said.push_str(&format!(
        "\n{}: {measured} of {} measured.\n",
        printable(path),
        several(all as u64, "number")
    ));
    for Missing { name, why } in &calibrated.missing {
        said.push_str(&format!("Not measured: {name}: {why}.\n"));
    }
    if calibrated.is_noisy() {
        said.push_str("This machine was not quiet: try again when it is.\n");
    }
    said
}
