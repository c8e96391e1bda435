//! The arguments that both families of locks share, and the way from a plan to the output.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use clap::Args;

use super::measure::Ticks;
use super::plan::{Cell, Plan};
use super::settings::{Printed, Settings, check_seconds};
use super::subjects::Family;
use super::{rows, tables};

/// How to measure locks.
#[derive(Args)]
pub struct LockSettings {
    #[command(flatten)]
    pub settings: Settings,
    /// How long each repetition measures; the default is 0.2, and with a crowd as long as its
    /// threads take to have ten turns each
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seconds: Option<f64>,
}

impl LockSettings {
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
        self.seconds.map_or(Ok(()), check_seconds)?;
        let (ours, peers) = ((ours, family.ours()), (peers, family.peers()));
        let rounds = self.settings.rounds("lock", ours, peers)?;
        if cells.is_empty() {
            let wanted = "readers that never leave need a writer beside them: --threads 2 or more";
            return Err(Failure::arguments(wanted));
        }
        Ok(Plan { family, cells, rounds, seconds: self.seconds, ticks: Ticks::calibrate() })
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
        self.settings.print(Printed {
            json: report.json(),
            text: tables::text(&report),
            others_cpus: report.others_cpus(),
            trouble: report.trouble(),
        })
    }
}
