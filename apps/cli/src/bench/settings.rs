//! What every family of locks may be asked, and the way from a plan to what is printed.

use std::process::ExitCode;

use clap::Args;

use super::measure::Ticks;
use super::neighbours::Load;
use super::plan::{Cell, Plan};
use super::subjects::Family;
use super::{rows, tables};
use crate::failure::Failure;
use crate::list::names;
use crate::output::{progress::Progress, report, say};

/// How to measure.
#[derive(Args)]
pub struct Settings {
    /// An idle machine, or two busy neighbours beside us
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle")]
    pub load: Vec<Load>,
    /// How long to measure in each repetition
    #[arg(long, value_name = "S", default_value_t = 0.2, allow_negative_numbers = true)]
    seconds: f64,
    /// Repetitions that count
    #[arg(long, value_name = "N", default_value_t = 11)]
    repetitions: usize,
    /// Of the order of subjects
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

impl Settings {
    /// The plan that measures these locks of a family in these cells.
    ///
    /// # Errors
    ///
    /// Bad arguments.
    pub fn plan(
        &self,
        family: Family,
        (ours, peers): (&str, &str),
        cells: Vec<Cell>,
    ) -> Result<Plan, Failure> {
        if !(self.seconds > 0.0 && self.seconds <= 3600.0) {
            let wanted = "--seconds takes a time from 0.001 to 3600, such as 0.2";
            return Err(Failure::arguments(wanted));
        }
        if self.repetitions == 0 {
            return Err(Failure::arguments("--repetitions takes a number from 1, such as 11"));
        }
        let subjects = names("lock of ours", ours, family.ours()).map_err(Failure::arguments)?;
        let peers = names("peer", peers, family.peers()).map_err(Failure::arguments)?;
        if subjects.is_empty() && peers.is_empty() {
            return Err(Failure::arguments("nothing to measure; name a lock with --subject"));
        }
        if cells.is_empty() {
            let wanted = "readers who never leave need a writer beside them: --threads 2 or more";
            return Err(Failure::arguments(wanted));
        }
        let (repetitions, seconds, seed) = (self.repetitions, self.seconds, self.seed);
        let ticks = Ticks::calibrate();
        Ok(Plan { family, cells, subjects, peers, repetitions, seconds, seed, ticks })
    }

    /// Carries it out and prints what came of it.
    ///
    /// # Errors
    ///
    /// A lock that broke or never came to an end.
    pub fn carry_out(&self, plan: &Plan) -> Result<ExitCode, Failure> {
        let mut progress = Progress::new(plan.steps());
        let measured = plan.carry_out(&mut progress)?;
        drop(progress);
        let report = rows::put_together(plan, &measured);
        if self.json {
            report::print(report.json())?;
        } else {
            say(&tables::text(&report))?;
        }
        if let Some(cpus) = report.others_cpus().filter(|&cpus| cpus > 0.1) {
            eprintln!("antiphon: the machine was not idle: others used {cpus:.1} CPUs meanwhile");
        }
        match report.trouble() {
            Some(trouble) => Err(Failure::measured(trouble)),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}
