//! The arguments that all verbs of `bench` share, and the way from figures to the output.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::list::names;
use antiphon_report::report::print_or_say;
use clap::Args;
use serde_json::Value;

use super::neighbours::Load;
use super::rounds::Rounds;

/// How to measure.
#[derive(Args)]
pub struct Settings {
    /// Load beside the measured threads: idle (none), noisy (two busy processes), crowd (a process
    /// with 100 busy threads), or crowd=N (with N busy threads)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle")]
    pub load: Vec<Load>,
    /// Number of repetitions that count, after a discarded one
    #[arg(long, value_name = "N", default_value_t = 11)]
    repetitions: usize,
    /// Seed of the random order of the subjects
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The output of a run.
pub struct Printed {
    /// The body of the JSON report.
    pub json: Value,
    /// The tables.
    pub text: String,
    /// CPUs that other processes used on average, if the machine was meant to be idle.
    pub others_cpus: Option<f64>,
    /// The failures as one line.
    pub trouble: Option<String>,
}

impl Settings {
    /// Returns the subjects that take turns: those selected by `ours` and `peers`, each from its
    /// known names.
    ///
    /// # Errors
    ///
    /// Bad arguments; `what` names our subjects in the message.
    pub fn rounds(
        &self,
        what: &str,
        (ours, known): (&str, &[&'static str]),
        (peers, known_peers): (&str, &[&'static str]),
    ) -> Result<Rounds, Failure> {
        if self.repetitions == 0 {
            return Err(Failure::arguments("--repetitions takes a number from 1, such as 11"));
        }
        let subjects =
            names(&format!("{what} of ours"), ours, known).map_err(Failure::arguments)?;
        let peers = names("peer", peers, known_peers).map_err(Failure::arguments)?;
        if subjects.is_empty() && peers.is_empty() {
            let wanted = format!("nothing to measure; name a {what} with --subject");
            return Err(Failure::arguments(wanted));
        }
        let (repetitions, seed) = (self.repetitions, self.seed);
        Ok(Rounds { subjects, peers, repetitions, seed, ..Rounds::default() })
    }

    /// Prints the output.
    ///
    /// # Errors
    ///
    /// The failure of a subject.
    pub fn print(&self, printed: Printed) -> Result<ExitCode, Failure> {
        print_or_say(self.json, || printed.json, || printed.text)?;
        if let Some(cpus) = printed.others_cpus.filter(|&cpus| cpus > 0.1) {
            eprintln!("antiphon: the machine was not idle: others used {cpus:.1} CPUs meanwhile");
        }
        match printed.trouble {
            Some(trouble) => Err(Failure::measured(trouble)),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Checks a value of `--seconds`.
///
/// # Errors
///
/// If it is not a valid time.
pub fn check_seconds(seconds: f64) -> Result<(), Failure> {
    let wanted = "--seconds takes a time from 0.001 to 3600, such as 0.2";
    let good = seconds > 0.0 && seconds <= 3600.0;
    if good { Ok(()) } else { Err(Failure::arguments(wanted)) }
}
