//! The emulator: its arguments, its time limit, its exit status.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_report::failure::Failure;

use super::rescue::Start;

const EMULATOR: &str = "qemu-system-x86_64";

/// A machine to be emulated.
pub struct Machine {
    pub cpus: u32,
    pub nodes: u32,
    /// Memory of each node.
    pub memory_mib: u32,
    /// Whether instructions are counted instead of time.
    pub exact: bool,
    /// The time limit of the run.
    pub limit: Duration,
}

/// The end of an image: the statuses that its kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    Panicked,
    Faulted,
    Misused,
    /// The image has not ended in time.
    Late,
    /// The emulator has ended with another status.
    Other(Option<i32>),
}

impl Outcome {
    /// Returns the outcome of an image that has printed these lines, from the emulator's exit
    /// status.
    fn of(status: Option<i32>, lines: &[String]) -> Self {
        let last = lines.iter().rev().find(|line| !line.is_empty());
        let said = last.and_then(|line| line.strip_prefix("status="));
        match status {
            // The machine was switched off by ACPI.
            Some(0) => match said {
                Some("passed") => Self::Passed,
                Some("failed") => Self::Failed,
                Some("panicked") => Self::Panicked,
                Some("faulted") => Self::Faulted,
                _ => Self::Other(status),
            },
            Some(33) => Self::Passed,
            Some(35) => Self::Failed,
            Some(37) => Self::Panicked,
            Some(39) => Self::Faulted,
            Some(41) => Self::Misused,
            other => Self::Other(other),
        }
    }

    /// Returns the outcome as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::Faulted => "faulted",
            Self::Misused => "misused",
            Self::Late => "late",
            Self::Other(_) => "ended",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("the program found something wrong"),
            Self::Panicked => f.write_str("the image has panicked"),
            Self::Faulted => f.write_str("a processor exception has ended the image"),
            Self::Late => f.write_str("the image did not end in time: give it more by --seconds"),
            Self::Other(Some(status)) => write!(f, "the emulator has ended with status {status}"),
            Self::Other(None) => f.write_str("the emulator was killed"),
            Self::Passed | Self::Misused => f.write_str(self.name()),
        }
    }
}

/// A run that is over.
pub struct Ended {
    pub outcome: Outcome,
    /// The lines that the image has printed.
    pub lines: Vec<String>,
    pub took: Duration,
}

/// Returns the path of the emulator.
///
/// # Errors
///
/// The emulator is missing.
pub fn find() -> Result<PathBuf, Failure> {
    on_path(EMULATOR).ok_or_else(|| {
        Failure::missing(format!("there is no {EMULATOR}: apt-get install qemu-system-x86"))
    })
}

/// Returns the path of the program with this name, from the folders of `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&path).map(|folder| folder.join(name));
    programs.find(|program| program.is_file())
}

impl Machine {
    /// Runs an image.
    ///
    /// # Errors
    ///
    /// The emulator is missing, or can't be started.
    pub fn run(&self, start: &Start) -> Result<Ended, Failure> {
        let emulator = find()?;
        let began = Instant::now();
        let mut command = Command::new(&emulator);
        command.args(self.arguments()).args(&start.arguments);
        let named = |error| Failure::missing(format!("{}: {error}", emulator.display()));
        let (lines, status) = lines_of(&mut command, began + self.limit).map_err(named)?;
        let of = |status: ExitStatus| Outcome::of(status.code(), &lines);
        let outcome = status.map_or(Outcome::Late, of);
        Ok(Ended { outcome, lines, took: began.elapsed() })
    }

    fn arguments(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut add = |words: &str| all.extend(words.split(' ').map(str::to_owned));
        add("-M q35 -nodefaults -no-reboot -display none -serial stdio");
        add("-device isa-debug-exit,iobase=0xf4,iosize=4");
        if self.exact {
            // QEMU 10.0 has x2APIC, but ends with "Bad icount read" when the image sets its timer.
            add("-cpu max,-x2apic -accel tcg -icount shift=0,sleep=off");
        } else {
            add("-cpu max -accel tcg,thread=multi");
        }
        add(&format!("-smp {} -m {}M", self.cpus, self.memory_mib * self.nodes));
        if self.nodes > 1 {
            let size = self.memory_mib;
            for node in 0..self.nodes {
                let first = self.cpus * node / self.nodes;
                let last = self.cpus * (node + 1) / self.nodes - 1;
                add(&format!("-object memory-backend-ram,id=node{node},size={size}M"));
                add(&format!("-numa node,nodeid={node},memdev=node{node},cpus={first}-{last}"));
            }
        }
        all
    }
}

/// The most that is read of an image's output, in bytes.
const MOST_OUTPUT: u64 = 64 << 20;

/// Runs a program until `end` at most. Returns its lines, and how it ended if it did so in time.
///
/// # Errors
///
/// If it can't be started or waited for.
pub fn lines_of(
    command: &mut Command,
    end: Instant,
) -> io::Result<(Vec<String>, Option<ExitStatus>)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn()?;
    let (lines, in_time) = read(&mut child, end);
    if !in_time {
        // An error means that the program has ended just now.
        let _ = child.kill();
    }
    let status = child.wait()?;
    Ok((lines, in_time.then_some(status)))
}

/// Reads the output until its end, or until `end`; in the latter case returns `false`. A child that
/// writes more than [`MOST_OUTPUT`] is killed, and the last line says so.
fn read(child: &mut Child, end: Instant) -> (Vec<String>, bool) {
    let (sender, receiver) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            let mut all = BufReader::new(out.take(MOST_OUTPUT));
            for line in (&mut all).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.send(Some(line)).is_err() {
                    return;
                }
            }
            if all.get_ref().limit() == 0 {
                // An error means that the receiver has given up.
                let _ = sender.send(None);
            }
        });
    }
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => {
                lines.push(format!("killed: it has printed more than {MOST_OUTPUT} bytes"));
                // An error means that it has ended just now.
                let _ = child.kill();
            }
            Err(RecvTimeoutError::Disconnected) => return (lines, true),
            Err(RecvTimeoutError::Timeout) => return (lines, false),
        }
    }
}
