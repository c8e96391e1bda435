//! `--merge`: combines parts that were printed with `--json` into one report.
//!
//! Nothing in a file is trusted: parts must be of one plan, made by this version, each present
//! once, each with the rows that are assigned to it, and each row with what a simulation prints.

use std::path::{Path, PathBuf};

use antiphon_report::failure::Failure;
use antiphon_report::input;
use antiphon_report::report;
use serde::Deserialize;
use serde_json::Value;

use super::plan::{self, Plan};
use super::row::{Head, Outcome, Row};
use super::shard::Shard;
use super::sweep::Cell;
use crate::bench::Family;

/// Maximal size of a part: a row has some thousand bytes, and there are some ten thousand rows if
/// each lock is in each case.
const MOST_BYTES: usize = 64 << 20;

/// A simulation and its result.
pub struct Simulated {
    pub plan: Plan,
    pub rows: Vec<Row>,
    /// Number of simulated memory operations.
    pub operations: u64,
}

/// The fields of a report that are used.
#[derive(Deserialize)]
struct Report {
    schema: u32,
    antiphon: String,
    command: String,
    simulated: Plan,
    /// `None` in a whole report.
    shard: Option<Shard>,
    rows: Vec<Value>,
    sim: Operations,
}

#[derive(Deserialize)]
struct Operations {
    ops: u64,
}

/// A report and its file.
struct Part<'a> {
    file: &'a Path,
    shard: Shard,
    report: Report,
}

/// Merges the parts in `files`; the rows are in the order in which a single command prints them.
///
/// # Errors
///
/// 2: a file that can't be read or is not such a report; parts of different plans; a part that is
/// missing or present twice; rows that are not those of their part.
pub fn merge(family: Family, files: &[PathBuf]) -> Result<Simulated, Failure> {
    let parts = files.iter().map(|file| read(family, file)).collect::<Result<Vec<_>, _>>()?;
    complete(&parts)?;
    let [first, others @ ..] = &parts[..] else {
        return Err(Failure::arguments("--merge takes files, such as *.json"));
    };
    others.iter().try_for_each(|part| same_plan(first, part))?;
    let plan = first.report.simulated.clone();
    // Checked before cells are made: a part that announces more rows must contain them.
    let count = plan.rows().ok_or_else(|| first.fail("too many rows"))?;
    parts.iter().try_for_each(|part| part.has_its_share(count))?;
    let cells = plan.cells(family).map_err(|why| first.fail(&why))?;
    let mut rows: Vec<Option<Row>> = vec![None; count];
    let mut operations = 0_u64;
    for part in &parts {
        let places = (0..count).filter(|&place| part.shard.has(place));
        for (number, (place, value)) in places.zip(&part.report.rows).enumerate() {
            let row = Row::read(value).and_then(|row| of_cell(&plan, cells[place], row));
            let wrong = |why: String| part.fail(&format!("row {}: {why}", number + 1));
            rows[place] = Some(row.map_err(wrong)?);
        }
        let sum = operations.checked_add(part.report.sim.ops);
        operations = sum.ok_or_else(|| part.fail("sim.ops: more than can be counted"))?;
    }
    // All places have a row: the parts are complete, and each has its share.
    Ok(Simulated { plan, rows: rows.into_iter().flatten().collect(), operations })
}

fn read<'a>(family: Family, file: &'a Path) -> Result<Part<'a>, Failure> {
    let fail = |why: &str| Failure::arguments(format!("{}: {why}", file.display()));
    let bytes = input::bytes(file, MOST_BYTES).map_err(|error| fail(&error.to_string()))?;
    let verb = plan::verb(family);
    let report: Report = serde_json::from_slice(&bytes)
        .map_err(|error| fail(&format!("not what antiphon sim {verb} --json prints: {error}")))?;
    let (version, schema) = (env!("CARGO_PKG_VERSION"), report::SCHEMA);
    if (&*report.antiphon, report.schema) != (version, schema) {
        let (its, of) = (&report.antiphon, report.schema);
        let what = format!("made by antiphon {its}, schema {of}; this is {version}, {schema}");
        return Err(fail(&format!("{what}: make all parts by one version")));
    }
    let its = &report.simulated.verb;
    if its != verb {
        return Err(fail(&format!("it is of sim {its}: merge it by antiphon sim {its} --merge")));
    }
    Ok(Part { file, shard: report.shard.unwrap_or(Shard::WHOLE), report })
}

/// Checks that each part is present once.
fn complete(parts: &[Part<'_>]) -> Result<(), Failure> {
    let Some(first) = parts.first() else { return Ok(()) };
    let of = first.shard.of;
    let mut found: Vec<Option<&Part<'_>>> = vec![None; of];
    for part in parts {
        if part.shard.of != of {
            let what = format!("part {}, and {} is part {}", part.shard, first.name(), first.shard);
            return Err(part.fail(&format!("{what}: parts of as many belong together")));
        }
        if let Some(before) = found[part.shard.number - 1].replace(part) {
            let what = format!("part {}, and so is {}", part.shard, before.name());
            return Err(part.fail(&format!("{what}; name each part once")));
        }
    }
    let missing = (1..=of).filter(|number| found[number - 1].is_none());
    let missing: Vec<_> = missing.map(|number| Shard { number, of }.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::arguments(format!(
        "parts are missing: {}; make each by its --shard with the other arguments of {}: {}",
        missing.join(", "),
        first.name(),
        first.report.command
    )))
}

fn same_plan(first: &Part<'_>, part: &Part<'_>) -> Result<(), Failure> {
    let (ours, theirs) = (&first.report.simulated, &part.report.simulated);
    if ours == theirs {
        return Ok(());
    }
    let value = |plan| serde_json::to_value(plan).map_err(|error| part.fail(&error.to_string()));
    let (ours, theirs) = (value(ours)?, value(theirs)?);
    let keys = theirs.as_object().into_iter().flat_map(|plan| plan.keys());
    let differs = |key: &&String| ours[key.as_str()] != theirs[key.as_str()];
    let said = |key: &String| format!("{key} is {}, not {}", theirs[key], ours[key]);
    let what: Vec<_> = keys.filter(differs).map(said).collect();
    let what = format!("{} as in {}", what.join(", "), first.name());
    Err(part.fail(&format!("{what}: parts of different simulations don't add up")))
}

/// Returns `row` if it is of this cell. Which rows are beaten is determined anew from all of them.
fn of_cell(plan: &Plan, cell: Cell, row: Row) -> Result<Row, String> {
    let Cell { subject, case, threads, .. } = cell;
    let wanted = Head {
        model: true,
        machine: plan.machine.clone(),
        arbitration: plan.arbitration,
        pages: plan.pages,
        seed: row.head.seed,
        subject: subject.name.to_owned(),
        case: case.name.to_owned(),
        threads,
    };
    if row.head != wanted {
        let what = format!("{}, {}, threads: {threads}", subject.name, case.name);
        return Err(format!("not of {what}, as simulated, whose place it has"));
    }
    if row.head.seed.wrapping_sub(plan.seed) >= plan.seeds.into() {
        return Err(format!("seed {} is none of those that were simulated", row.head.seed));
    }
    if let Outcome::Figures(figures) = &row.outcome
        && figures.ops_per_s_of_seeds.seeds != usize::from(plan.seeds)
    {
        return Err("ops_per_s_of_seeds: seeds: not as many as were simulated".to_owned());
    }
    Ok(Row { front: None, ..row })
}

impl Part<'_> {
    fn has_its_share(&self, count: usize) -> Result<(), Failure> {
        let (rows, share) = (self.report.rows.len(), self.shard.share(count));
        if rows == share {
            return Ok(());
        }
        Err(self.fail(&format!("{rows} rows, but part {} has {share}", self.shard)))
    }

    fn name(&self) -> String {
        self.file.display().to_string()
    }

    fn fail(&self, why: &str) -> Failure {
        Failure::arguments(format!("{}: {why}", self.name()))
    }
}
