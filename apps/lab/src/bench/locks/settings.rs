//! The arguments that both families of locks share, and the shared contents of their reports.

use antiphon_report::failure::Failure;
use clap::Args;
use serde_json::{Value, json};

use super::measure::Figures;
use super::plan::{Cell, Plan};
use super::rows::{self, Row, Summary};
use super::subjects::Family;
use super::tables;
use super::waits::{self, Verdict};
use crate::bench::benchmark::Benchmark;
use crate::bench::columns::Columns;
use crate::bench::report::Beside;
use crate::bench::settings::{Settings, check_seconds};
use crate::ticks::Ticks;

/// How to measure locks.
#[derive(Args)]
pub struct LockSettings {
    #[command(flatten)]
    pub settings: Settings,
    /// Length of each repetition, in seconds [default: 0.2; with a crowd, the time in which each of
    /// its threads has ten turns]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seconds: Option<f64>,
}

impl LockSettings {
    /// Makes the plan that measures these locks of a family in these cells.
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
}

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(self, one)]
    }

    fn body(&self, rows: &[Row]) -> Value {
        let peer = self.rounds.peers.first().copied();
        let means = rows::means(self, rows);
        let means: Vec<_> = means.iter().map(|one| one.json(self.family, peer)).collect();
        let waits: Vec<_> = self.waits(rows).iter().map(|one| one.json(peer)).collect();
        let seconds = self.cells.iter().map(|cell| self.seconds_of(cell.load)).reduce(f64::min);
        json!({ "summary": means, "waits": waits, "seconds": seconds })
    }

    fn is_together(&self, one: &Cell, other: &Cell) -> bool {
        let of = |cell: &Cell| (cell.load, cell.case, cell.reads);
        of(one) == of(other)
    }

    fn heading(&self, cell: &Cell) -> String {
        tables::heading(cell)
    }

    fn columns(&self, rows: &[Row]) -> Columns<Cell, Summary> {
        tables::columns(rows)
    }

    fn about(&self, rows: &[Row]) -> String {
        let peer = self.rounds.peers.first().copied().unwrap_or("nothing");
        tables::about(rows, &rows::means(self, rows), &self.waits(rows), peer)
    }
}

impl Plan {
    /// Returns whether our locks made any thread wait too long, by load, lock and rule.
    fn waits(&self, rows: &[Row]) -> Vec<Verdict> {
        let peer = self.rounds.peers.first();
        peer.map_or(Vec::new(), |peer| waits::verdicts(rows, &self.rounds.subjects, peer))
    }
}
