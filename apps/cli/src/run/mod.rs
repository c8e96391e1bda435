//! `run`: CMD with its pthread locks replaced, and a report of what its threads waited for.
//!
//! | module | does |
//! |---|---|
//! | [`children`] | names programs that the library did not get into |
//! | [`child`] | starts CMD, passes signals on, ends as it does |
//! | [`sampler`] | looks at its threads from outside, a hundred times a second at most |
//! | [`ends`] | when waits ended that went on to the end |
//! | [`waits`] | what kind of waiting a system call is |
//! | [`symbols`] | names of call sites |
//! | [`summary`] | puts the recording and the samples together |
//! | [`order`] | which locks are taken within which |
//! | [`notes`] | what there is to say beside the tables |
//! | [`text`], [`html`] | the report for people |
//!
//! CMD's stdout is CMD's: everything of ours goes to stderr, or to the file of `--report`.

mod child;
mod children;
mod ends;
mod html;
mod notes;
mod order;
mod sampler;
pub mod summary;
pub mod symbols;
mod text;
mod waits;

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Platform as _};
use antiphon_record::{Recording, Scope};
use clap::Args;

use crate::failure::Failure;
use crate::output::report;
use crate::output::table::colour;
use crate::preload::{self, Under};
use crate::program::{self, Refusal};
use crate::sites::{self, Sites};
use summary::{KeptOut, Report, Run};

/// Run CMD with its pthread locks replaced, and report what its threads waited for
#[derive(Args)]
#[command(after_help = format!("\
Exits as CMD does, with 128 + N if signal N killed it. Own failures: 125, CMD can't be run: 126, no
such CMD: 127. The report goes to stderr, after CMD has ended.

Example:
  antiphon run --profile --html waits.html -- xz -T4 -k -c FILE > FILE.xz

{}", sites::HELP))]
pub struct Arguments {
    /// Our lock, or glibc: CMD keeps its own locks and is only observed, with --profile from
    /// inside, else from outside, without call sites and without cost
    #[arg(long, value_name = "L", default_value = "shfl-mutex", value_parser = preload::choices())]
    lock: String,
    /// Record every acquisition and every hold, not only waits
    #[arg(long)]
    profile: bool,
    /// Only CMD itself, and what it forks: what it executes keeps its own locks
    #[arg(long)]
    no_children: bool,
    /// Choose policies of locks by call site; see below
    #[arg(long, value_name = "F")]
    sites: Option<PathBuf>,
    /// Write the report to a file, too: .json, .txt or .html
    #[arg(long, value_name = "F")]
    report: Option<PathBuf>,
    /// Write the report as a page for a browser, too: bars, histograms, the lock-order graph
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs CMD and reports.
///
/// # Errors
///
/// If CMD can't be started, or the report can't be written; CMD's own failure is none.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = ReportFile::of(arguments)?;
    let program = program::find(&arguments.command[0]).map_err(refused)?;
    let inside = arguments.profile || arguments.lock != preload::GLIBC;
    let kept_out = program::obstacle(&program).filter(|_| inside);
    let kept_out = kept_out.map(|obstacle| KeptOut::new(obstacle, arguments.no_children));
    if let Some(kept_out) = &kept_out {
        let what = notes::done_to_locks(&arguments.lock);
        // Whoever closed stderr does not want to know, here and below.
        let _ = writeln!(std::io::stderr(), "antiphon: {}", kept_out.beforehand(what));
    }
    if arguments.sites.is_some() && arguments.lock == preload::GLIBC {
        let message = "--sites chooses policies of our locks; leave --lock glibc out";
        return Err(Failure::wrapper(message));
    }
    let sites = arguments.sites.as_deref().map(|path| Sites::read(path, &program));
    let sites = sites.transpose().map_err(Failure::wrapper)?;
    let recording = Tape::new(arguments.profile)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    if inside && kept_out.as_ref().is_none_or(|kept_out| kept_out.only_cmd) {
        let library = preload::unpack().map_err(Failure::wrapper)?;
        let under = Under {
            library: &library,
            lock: &arguments.lock,
            recording: Some(&recording.path),
            sites: sites.as_ref(),
            children: !arguments.no_children,
        };
        under.put(&mut command);
    }
    let begun = Instant::now();
    let child = child::start(&mut command)
        .map_err(|error| refused(Refusal::of(&arguments.command[0], &program, &error)))?;
    let pid = child.pid();
    let sampler = sampler::Sampler::start(pid, Arc::clone(&recording.recording));
    let ended = child.wait().map_err(|error| Failure::wrapper(format!("waiting: {error}")))?;
    let (wall, end_ns) = (begun.elapsed(), Linux::now(Clock::Monotonic));
    let unread = |error| Failure::wrapper(format!("reading the recording: {error}"));
    let sampled = sampler.stop().map_err(unread)?;
    let mut snapshot = recording.recording.read().map_err(unread)?;
    ends::close(&mut snapshot, &sampled, pid, end_ns);
    let report = Report::new(
        Run {
            command: arguments.command.iter().map(|word| word.to_string_lossy().into()).collect(),
            lock: arguments.lock.clone(),
            profile: arguments.profile,
            wall,
            ended: ended.to_string(),
            kept_out,
            children: !arguments.no_children,
            unmatched: sites.as_ref().map(Sites::unmatched).transpose().map_err(unread)?,
        },
        &snapshot,
        &sampled,
    );
    let text = text::render(&report, colour(&std::io::stderr()));
    let _ = std::io::stderr().write_all(text.as_bytes());
    for file in files {
        file.write(&report)?;
    }
    Ok(ended.exit_code())
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::NotFound(why) => Failure::not_found(why),
        Refusal::CannotRun(why) => Failure::cannot_run(why),
    }
}

/// What a report file is written as.
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
struct ReportFile<'a> {
    option: &'static str,
    path: &'a Path,
    file: File,
    format: Format,
}

impl<'a> ReportFile<'a> {
    /// All that are asked for.
    fn of(arguments: &'a Arguments) -> Result<Vec<Self>, Failure> {
        let mut files = Vec::new();
        if let Some(path) = arguments.report.as_deref() {
            files.push(Self::create("--report", path, Format::of(path)?)?);
        }
        if let Some(path) = arguments.html.as_deref() {
            files.push(Self::create("--html", path, Format::Html)?);
        }
        Ok(files)
    }

    fn create(option: &'static str, path: &'a Path, format: Format) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Self::failure(option, path, &error))?;
        Ok(Self { option, path, file, format })
    }

    fn write(mut self, report: &Report) -> Result<(), Failure> {
        let text = match self.format {
            Format::Json => format!("{:#}\n", report::framed(report.json())),
            Format::Text => text::render(report, false),
            Format::Html => html::page(report),
        };
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Self::failure(self.option, self.path, &error))
    }

    fn failure(option: &str, path: &Path, error: &std::io::Error) -> Failure {
        Failure::wrapper(format!("{option} {}: {error}", path.display()))
    }
}

/// The name under which the mappings of a process show a recording.
pub const TAPE: &CStr = c"antiphon-recording";

/// A recording in memory that has no name in any file system, so that nothing is left of it
/// whatever becomes of us.
struct Tape {
    recording: Arc<Recording>,
    /// By which CMD and its children open it, while this process is there.
    path: String,
}

impl Tape {
    fn new(profile: bool) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::wrapper(format!("the recording: {error}"));
        // SAFETY: a string that ends in zero.
        let fd = unsafe { libc::memfd_create(TAPE.as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(fail(std::io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor, known to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let scope = if profile { Scope::Full } else { Scope::Contended };
        Ok(Self { recording: Arc::new(Recording::begin(file, scope).map_err(fail)?), path })
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

    #[test]
    fn a_tape_can_be_opened_by_its_path_and_read() {
        let tape = Tape::new(true).unwrap_or_else(|_| panic!("no memfd"));
        let opened = Recording::open(Path::new(&tape.path)).and_then(|recording| recording.read());
        assert_eq!(opened.map(|snapshot| snapshot.scope).ok(), Some(Some(Scope::Full)));
    }
}
