//! Programs in Go, the source of which is in this command: built when they are to be measured.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde::Deserialize;

use super::figures::{Figures, Latencies};
use crate::bench::rounds::Outcome;
use crate::failure::Failure;
use crate::stats::Histogram;

/// A program in a folder of its own, which goes with this.
pub struct Built(PathBuf);

const PROGRAM: &str = "program";

impl Built {
    /// Builds the program `source`; says what is missing if that can't be.
    ///
    /// # Errors
    ///
    /// If there is no folder for it.
    pub fn of(name: &str, source: &str) -> Result<Result<Self, String>, Failure> {
        let folder = format!("antiphon-go-{name}-{}", std::process::id());
        let built = Self(std::env::temp_dir().join(folder));
        let written =
            fs::create_dir(&built.0).and_then(|()| fs::write(built.0.join("main.go"), source));
        written.map_err(|error| {
            Failure::measured(format!("can't write to {}: {error}", built.0.display()))
        })?;
        Ok(built.build().map(|()| built))
    }

    fn build(&self) -> Result<(), String> {
        let build = Command::new("go")
            .args(["build", "-o", PROGRAM, "main.go"])
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output();
        match build {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr);
                Err(format!(
                    "go build failed: {}",
                    said.lines().last().unwrap_or("it said nothing")
                ))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err("no go on the PATH; install Go".to_owned())
            }
            Err(error) => Err(format!("can't start go: {error}")),
        }
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.0.join(PROGRAM)
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        // What is left behind is in the folder for what is temporary.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where the program is, if one in Go is asked for, and an empty path if not.
///
/// # Errors
///
/// Why there is none.
pub fn program_for(built: Option<&Result<Built, String>>, is_go: bool) -> Result<PathBuf, String> {
    match built.filter(|_| is_go) {
        Some(built) => built.as_ref().map(Built::program).map_err(Clone::clone),
        None => Ok(PathBuf::new()),
    }
}

/// Becomes the program, which prints the outcome of the repetition. Returns why it could not.
pub fn become_it(program: &Path, arguments: &[String]) -> String {
    format!("can't start {}: {}", program.display(), Command::new(program).args(arguments).exec())
}

/// What a program that runs tasks prints.
#[derive(Deserialize)]
struct Printed {
    /// What was not done as it should have been.
    wrong: String,
    seconds: f64,
    tasks: u64,
    cpu_ns: f64,
    waited_ns: f64,
    sum_ns: f64,
    /// Latencies, and how often each was seen.
    latencies_ns: Vec<(u64, u64)>,
}

/// Has the program, if there is one, carry out a repetition with so many workers.
///
/// # Errors
///
/// If it can't be started, or fails.
pub fn measure(
    program: &Result<PathBuf, String>,
    workers: usize,
    arguments: &[String],
) -> Result<Outcome<Figures>, String> {
    let program = match program {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Missing(why.clone())),
    };
    let output = Command::new(program)
        .args(arguments)
        .env("GOMAXPROCS", workers.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("can't start the program in Go: {error}"))?;
    if !output.status.success() {
        return Err(format!("the program in Go ended with {}", output.status));
    }
    let printed: Printed =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    if !printed.wrong.is_empty() {
        return Ok(Outcome::Violation(printed.wrong));
    }
    Ok(Outcome::Figures(figures(&printed)))
}

fn figures(printed: &Printed) -> Figures {
    let mut seen = Histogram::new();
    printed.latencies_ns.iter().for_each(|&(ns, times)| seen.record(ns, times));
    let (tasks, packets) = (printed.tasks as f64, printed.latencies_ns.iter().map(|one| one.1));
    let at = |share| seen.quantile(share);
    let latencies = Latencies {
        mean: printed.sum_ns / packets.sum::<u64>() as f64,
        p20: at(0.2),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: seen.max() as f64,
        ..Latencies::default()
    };
    Figures {
        tasks_per_s: tasks / printed.seconds,
        cpu_us_per_task: (printed.cpu_ns - printed.waited_ns).max(0.0) / 1e3 / tasks,
        steps: vec![latencies],
        counted: None,
    }
}
