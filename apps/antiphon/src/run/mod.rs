//! `run`: runs CMD with its pthread locks replaced, and reports what its threads waited for.
//!
//! | module | does |
//! |---|---|
//! | [`children`] | names programs that the library did not get into |
//! | [`session`] | runs CMD, with a recording |
//! | [`child`] | starts CMD, passes signals on, ends as it does |
//! | [`execute`] | makes the kernel execute CMD |
//! | [`inherited`] | restores for CMD the state in which this process was started |
//! | [`signals`] | takes signals one by one |
//! | [`door`] | hands the recording to programs that can't open it |
//! | [`size`] | creates files of ours without the limit for CMD's files |
//! | [`room`] | whether a thread of ours would be one too many |
//! | [`coop`] | configures CMD's event loops for `--coop`, and reports on them |
//! | [`sampler`] | samples its threads from outside, a hundred times a second at most |
//! | [`places`] | functions in which threads sleep, as the sampler sees them |
//! | [`ends`] | determines the ends of waits that threads were in when they ended |
//! | [`waits`] | the kind of waiting of a system call |
//! | [`facts`] | facts that need no recording |
//! | [`names`] | names of processes and call sites of a recording |
//! | [`summary`] | combines the recording and the samples |
//! | [`callers`] | the callers of the functions that wait |
//! | [`home`], [`classes`] | what names a lock; locks of one name together |
//! | [`rows`] | a row: a lock at a call site |
//! | [`order`] | which locks are taken within which |
//! | [`notes`] | notes beside the tables |
//! | [`unseen`] | what the report could not see, and why |
//! | [`text`], [`html`] | the report for people |
//!
//! CMD's stdout is left to CMD: our output goes to stderr, or to the file of `--report`.

pub mod callers;
mod child;
mod children;
mod classes;
mod coop;
mod door;
mod ends;
pub mod execute;
mod facts;
pub mod home;
mod html;
pub mod inherited;
pub mod names;
mod notes;
pub mod order;
pub mod places;
mod room;
mod rows;
mod sampler;
mod session;
mod signals;
mod size;
pub mod sleepers;
pub mod summary;
mod text;
mod unseen;
mod waits;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use antiphon_record::Scope;
use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::report;
use antiphon_report::table::colour;
use clap::Args;

use crate::{preload, sites};
use coop::{Coop, CoopArguments};
pub use session::{Session, TAPE};
use summary::Report;
use text::Form;

/// Run CMD with its pthread locks replaced, and report what its threads waited for
#[derive(Args)]
#[command(after_help = format!("\
CMD behaves as it does without Antiphon, or is not started:
  - Exit code: that of CMD, or 128 + N if signal N killed it. If antiphon fails before CMD starts:
    125; if CMD can't be run: 126; if there is no such CMD: 127. If CMD has ended with 0 and an
    output file can't be written: 125.
  - Signals: all signals to this process are passed on to CMD, except KILL and STOP; if this process
    is killed, CMD is killed, too. CMD inherits dispositions and mask unchanged.
  - Descriptors and limits: CMD inherits them unchanged. A limit on memory, files or processes may
    cost the recording or a part of it, and the report says so.
  - Environment: LD_PRELOAD and variables that begin with ANTIPHON_ are added.
  - Processes that CMD leaves running are not waited for.
docs/contract.md has all items and the remaining differences. The report goes to stderr, after CMD
has ended.

Example:
  antiphon run --profile --html waits.html -- xz -T4 -k -c FILE > FILE.xz
  antiphon run --coop --domain desk --cpu 1 -- Xvfb :1

{}", sites::HELP))]
pub struct Arguments {
    /// Lock that CMD uses. With glibc, CMD keeps its own locks and is only observed: with --profile
    /// from inside, otherwise from outside, without call sites and at no cost [default: shfl-mutex;
    /// glibc with --coop]
    #[arg(long, value_name = "L", value_parser = preload::choices())]
    lock: Option<String>,
    /// Record every acquisition and every hold, not only waits
    #[arg(long)]
    profile: bool,
    /// Replace locks only in CMD and in processes that it forks; programs that these execute keep
    /// their own locks
    #[arg(long)]
    no_children: bool,
    /// Choose lock policies by call site, with the file F; see below
    #[arg(long, value_name = "F")]
    sites: Option<PathBuf>,
    /// Show all call sites, with their full names, paths and inlined functions
    #[arg(long)]
    wide: bool,
    /// Also write the report to the file F, which ends in .json, .txt or .html
    #[arg(long, value_name = "F")]
    report: Option<PathBuf>,
    /// Also write the report to F as a page for a browser, with bars, histograms and the lock-order
    /// graph
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    #[command(flatten)]
    coop: CoopArguments,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs CMD and reports.
///
/// # Errors
///
/// If CMD can't be started, or the report can't be written; that CMD itself fails is not an error.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = ReportFile::all(arguments.report.as_deref(), arguments.html.as_deref())?;
    let coop = Coop::open(&arguments.coop)?;
    if coop.is_some() && arguments.no_children {
        let message =
            "--no-children can't be used with --coop, which replaces no locks: leave one out";
        return Err(Failure::wrapper(message));
    }
    let usual = if coop.is_some() { preload::GLIBC } else { preload::LOCKS[0] };
    let session = Session {
        command: &arguments.command,
        lock: arguments.lock.as_deref().unwrap_or(usual),
        scope: if arguments.profile { Scope::Full } else { Scope::Contended },
        children: !arguments.no_children,
        sites: arguments.sites.as_deref(),
        coop: coop.as_ref(),
    };
    let done = session.run(|_| Ok(()))?;
    let told = done.seen.report().and_then(|report| tell(&report, arguments.wide, files));
    Ok(done.ended.exit_code_after(told))
}

/// Shows the report, and writes it to the requested files.
///
/// # Errors
///
/// If a file can't be written.
pub fn tell(report: &Report, wide: bool, files: Vec<ReportFile>) -> Result<(), Failure> {
    let text = text::render(report, Form { colour: colour(&std::io::stderr()), wide });
    // A failed write means that the user has closed stderr.
    let _ = std::io::stderr().write_all(text.as_bytes());
    // Every file is written, even if one before it has failed.
    let written: Vec<_> = files.into_iter().map(|file| file.write(report, wide)).collect();
    written.into_iter().collect()
}

/// The format of a report file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Text,
    Html,
}

impl Format {
    fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Ok(Self::Json),
            Some("txt") => Ok(Self::Text),
            Some("html") => Ok(Self::Html),
            _ => Err(Failure::wrapper(format!(
                "--report takes a file that ends in .json, .txt or .html, not {}",
                path.display()
            ))),
        }
    }
}

/// A file of `--report` or `--html`, opened before CMD runs: a run of an hour should not end in "no
/// such folder".
pub struct ReportFile {
    file: OutputFile,
    format: Format,
}

impl ReportFile {
    /// Opens the files of `--report` and `--html` that are given.
    ///
    /// # Errors
    ///
    /// If a file can't be written, or its ending is unknown.
    pub fn all(report: Option<&Path>, html: Option<&Path>) -> Result<Vec<Self>, Failure> {
        let mut files = Vec::new();
        if let Some(path) = report {
            files.push(Self::open("--report", path, Format::of(path)?)?);
        }
        if let Some(path) = html {
            files.push(Self::open("--html", path, Format::Html)?);
        }
        Ok(files)
    }

    fn open(option: &'static str, path: &Path, format: Format) -> Result<Self, Failure> {
        let file = OutputFile::open(option, path).map_err(Failure::of_wrapper)?;
        Ok(Self { file, format })
    }

    fn write(self, report: &Report, wide: bool) -> Result<(), Failure> {
        let text = match self.format {
            Format::Json => format!("{:#}\n", report::framed(report.json())),
            Format::Text => text::render(report, Form { wide, colour: false }),
            Format::Html => html::page(report),
        };
        self.file.write(&text).map_err(Failure::of_wrapper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_as_its_ending_says() {
        let of = |name: &str| Format::of(Path::new(name)).ok();
        assert_eq!(of("a.json"), Some(Format::Json));
        assert_eq!(of("b/a.b.txt"), Some(Format::Text));
        assert_eq!(of("a.html"), Some(Format::Html));
        assert_eq!((of("a.xml"), of("json"), of(".json")), (None, None, None));
    }
}
