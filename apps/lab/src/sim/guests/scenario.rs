//! A program in each guest that tells its host one thing, beside the same that does not.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::table::{Cell, Table, colour_stdout, duration};
use antiphon_sim::{Description, Stuck};
use serde_json::{Value, json};

use super::experiment::Setting;
use crate::sim::report::{body, print, row};

/// What the guests run, and its figures.
pub trait Scenario: Sized {
    /// The name of the row.
    const SUBJECT: &'static str;
    /// The name of the hint.
    const HINT: &'static str;
    /// The heads of the figures in the table, and what they are.
    const HEADS: &'static [&'static str];
    const RULE: &'static str;

    /// The settings of the program, for the report.
    fn conditions() -> Value;

    /// Simulates the guests; with `told`, they give the hint.
    ///
    /// # Errors
    ///
    /// If the simulation does not end.
    fn measure(setting: &Setting, told: bool) -> Result<Self, Stuck>;

    fn object(&self) -> Value;

    fn cells(&self) -> Vec<Cell>;
}

/// Simulates a scenario without its hint and with it, and prints the results.
///
/// # Errors
///
/// A simulation that does not end; if stdout can't be written.
pub fn run<S: Scenario>(
    (ms, json): (u16, bool),
    setting: &Setting,
    described: &Description,
) -> Result<ExitCode, Failure> {
    let both = [("none", false), (S::HINT, true)];
    let both: Vec<_> = both
        .into_iter()
        .map(|(name, told)| Ok((name, S::measure(setting, told)?)))
        .collect::<Result<_, Stuck>>()
        .map_err(Failure::measured)?;
    let mut conditions = S::conditions();
    conditions["seed"] = setting.seed.into();
    conditions["ms"] = ms.into();
    conditions["guests"] = setting.guests.into();
    conditions["host_slice_ns"] = setting.machine.slice_ns.into();
    let objects = || {
        let mut keys = json!({});
        for (name, measured) in &both {
            keys[*name] = measured.object();
        }
        vec![row(&setting.machine, S::SUBJECT, setting.threads, keys)]
    };
    let text = || {
        let heads: Vec<_> = ["hints"].iter().chain(S::HEADS).copied().collect();
        let mut table = Table::new(&heads);
        for (name, measured) in &both {
            let mut cells = vec![Cell::text(*name)];
            cells.extend(measured.cells());
            table.row(cells);
        }
        format!("{}\n\n{}\n{}", setting.heading(ms), table.render(colour_stdout()), S::RULE)
    };
    print(json, (None, String::new), || body(described, conditions, objects()), text)
}

/// A time, or that there is none.
pub fn time(ns: Option<u64>) -> Cell {
    Cell::known(ns, |ns| duration(ns as f64))
}

pub fn number(count: u64) -> Cell {
    Cell::number(count.to_string())
}
