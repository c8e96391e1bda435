//! One look at a program's locks, pools, or both, and at the threads under the scheduler.

use antiphon_report::failure::Failure;
use antiphon_report::table::duration;
use serde_json::{Value, json};

use super::Order;
use super::find::{Found, command_of};
use super::look::{Look, Lookout};
use super::pools::{Blind, Part, Pools, Program};
use super::scheduled::{Asks, Scheduled};

/// A program that is looked at repeatedly.
pub struct Watched {
    locks: Option<Lookout>,
    program: Option<Program>,
    name: String,
    /// The first look at the pools, which was taken to find them.
    first: Option<Pools>,
    scheduler: Asks,
}

/// The result of one look.
pub struct View {
    /// The waits of the program.
    pub locks: Option<Look>,
    /// The pools of the program.
    pub pools: Option<Pools>,
    /// The threads under the scheduler in the kernel.
    pub scheduled: Option<Scheduled>,
    /// Whether the program still runs, so that a further look is worthwhile.
    pub runs: bool,
    /// The command, and the process that shows its pools.
    program: Option<(String, u32)>,
}

impl Watched {
    pub fn new(Found { source, program }: Found) -> Self {
        let (program, first) = program.unzip();
        let name = program.as_ref().map(|program| command_of(program.pid)).unwrap_or_default();
        Self { locks: source.map(Lookout::new), program, name, first, scheduler: Asks::default() }
    }

    /// Looks at the locks and the pools.
    ///
    /// # Errors
    ///
    /// Those of reading the recording, or the message that the program sends instead of an answer.
    pub fn look(&mut self) -> Result<View, Failure> {
        let unread = |error| Failure::measured(format!("reading the recording: {error}"));
        let locks = self.locks.as_mut().map(Lookout::look).transpose().map_err(unread)?;
        let program = self.program.as_ref().map(|program| (self.name.clone(), program.pid));
        let again = || match self.program.as_mut()?.look() {
            Ok(pools) => Some(Ok(pools)),
            // The program has ended, or is about to.
            Err(Blind::Shows(_)) => None,
            Err(Blind::Says(failure)) => Some(Err(failure)),
        };
        let first = self.first.take().map(Ok);
        let pools = first.or_else(again).transpose()?;
        let scheduled = self.scheduler.look();
        // Without a program, the scheduler is what there is to look at.
        let without = pools.is_some() || self.program.is_none() && scheduled.is_some();
        let runs = locks.as_ref().map_or(without, |look| look.runs);
        Ok(View { locks, pools, scheduled, runs, program })
    }
}

impl View {
    /// This look; if the program has ended, with the pools of the `last` look.
    pub fn or_last(self, last: Self) -> Self {
        let pools = if self.runs { self.pools } else { self.pools.or(last.pools) };
        Self { pools, ..self }
    }

    /// The body of the JSON report.
    pub fn json(&self) -> Value {
        let alone = || {
            let (name, pid) = self.program.as_ref().map(|(name, pid)| (name, pid)).unzip();
            json!({ "program": name, "pid": pid, "runs": self.runs })
        };
        let mut body = self.locks.as_ref().map_or_else(alone, Look::json);
        body["pools_pid"] = json!(self.program.as_ref().map(|(_, pid)| pid));
        body["pools"] = self.pools.as_ref().map_or_else(|| json!([]), |pools| pools.told.clone());
        body["scheduler"] = json!(self.scheduled.as_ref().map(Scheduled::json));
        body
    }

    /// The lines above the tables.
    pub fn heads(&self, order: Option<Order>) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.locks {
            Some(look) => lines.extend(heads(look)),
            None => {
                let state = if self.runs { "" } else { " · has ended" };
                let heads = |(name, pid): &(String, u32)| {
                    format!("antiphon top: {name} · process {pid}{state}")
                };
                lines.extend(self.program.iter().map(heads));
            }
        }
        lines.push(match (order, &self.locks) {
            (Some(order), Some(_)) => {
                format!("sorted by {} (s: another order, q: end)", order.name())
            }
            (Some(_), None) => "q: end".to_owned(),
            (None, _) => String::new(),
        });
        lines
    }

    /// The text about the program's pools and the scheduler's threads, at most `most` rows of each
    /// table.
    pub fn parts(&self, most: usize) -> Vec<Part> {
        let pools = self.pools.iter().flat_map(|pools| pools.parts(most));
        let scheduled = self.scheduled.iter().flat_map(|scheduled| scheduled.parts(most));
        pools.chain(scheduled).collect()
    }
}

/// The lines above the table of call sites.
fn heads(look: &Look) -> [String; 2] {
    let runner = match look.runner {
        Some(pid) if look.runs => format!(" · antiphon run is process {pid}"),
        Some(_) => " · has ended".to_owned(),
        None => String::new(),
    };
    let seen = if look.profile { "all acquisitions" } else { "waits" };
    [
        format!("antiphon top: {}{runner}", look.name),
        format!(
            "{} · {} processes · {} threads, {} waiting · {seen} recorded",
            duration(look.age_ns as f64),
            look.processes,
            look.threads,
            look.waiting.len(),
        ),
    ]
}
