//! The live view on the terminal: the progress of the programs while they play.

use std::time::Duration;

use antiphon_report::failure::Failure;
use antiphon_report::screen::{Key, Screen};
use antiphon_report::table::{Cell, Table, duration};

use super::kinds::{Kind, Played};
use super::plan::Plan;
use super::tables::{heads, said_of, tier_of};
use crate::compete::tardiness::Tardiness;
use crate::compete::usage::Usage;
use crate::compete::work::now_ns;

/// The latest progress of a program, and the previous one.
#[derive(Default)]
struct Row {
    now: Played,
    before: Played,
    since_ns: u64,
    between_ns: u64,
}

/// The live view.
pub struct Live {
    screen: Screen,
    about: String,
    names: Vec<String>,
    kinds: Vec<Kind>,
    begun_ns: u64,
    seconds: f64,
    rows: Vec<Row>,
    used: Option<(u64, Vec<Usage>)>,
    cpu: Vec<f64>,
}

const REFRESH: Duration = Duration::from_millis(250);

impl Live {
    /// Takes over the terminal.
    ///
    /// # Errors
    ///
    /// If the terminal can't be written to.
    pub fn enter(plan: &Plan) -> Result<Self, Failure> {
        let names = (0..plan.parts.len()).map(|number| format!("{number} {}", plan.plays(number)));
        Ok(Self {
            screen: Screen::enter().map_err(unshown)?,
            about: format!("{}; {}", said_of(plan), tier_of(plan)),
            names: names.collect(),
            kinds: plan.parts.iter().map(|part| part.kind).collect(),
            begun_ns: now_ns(),
            seconds: plan.seconds,
            rows: plan.parts.iter().map(|_| Row::default()).collect(),
            used: None,
            cpu: Vec::new(),
        })
    }

    /// Takes a progress report of a program.
    pub fn hear(&mut self, number: usize, played: Played) {
        let (row, now_ns) = (&mut self.rows[number], now_ns());
        let since_ns = if row.since_ns == 0 { self.begun_ns } else { row.since_ns };
        row.between_ns = now_ns.saturating_sub(since_ns).max(1);
        row.since_ns = now_ns;
        row.before = std::mem::replace(&mut row.now, played);
    }

    /// Takes the usage of the programs.
    pub fn see(&mut self, at_ns: u64, used: &[Usage]) {
        if let Some((before_ns, before)) = &self.used {
            let wall_ns = at_ns.saturating_sub(*before_ns).max(1) as f64;
            let share =
                |(now, before): (&Usage, &Usage)| now.since(*before).cpu_ns as f64 / wall_ns;
            self.cpu = used.iter().zip(before).map(share).collect();
        }
        self.used = Some((at_ns, used.to_vec()));
    }

    /// Draws the view, and waits for a while, but no longer than until `at_ns`. Returns whether the
    /// user wants to end the run.
    ///
    /// # Errors
    ///
    /// If the terminal is gone.
    pub fn show_until(&self, at_ns: u64) -> Result<bool, Failure> {
        let table = self.table().render(false);
        let seconds = now_ns().saturating_sub(self.begun_ns) as f64 / 1e9;
        let mut lines = vec![
            self.about.clone(),
            format!("{seconds:.1} of {:.1} s · q: end, with what there is by then", self.seconds),
        ];
        let rows = table.lines().enumerate();
        lines.extend(rows.map(|(at, row)| format!("{}{row}", if at == 0 { ">" } else { "" })));
        self.screen.show(&lines).map_err(unshown)?;
        let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
        Ok(self.screen.key(REFRESH.min(left)) == Key::Quit)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&heads(&[">CPU", ">fps", ">p99", ">max"]));
        for (number, (name, row)) in self.names.iter().zip(&self.rows).enumerate() {
            let late = Tardiness::of(&row.now.tardiness_ns);
            let shown = row.now.shown.saturating_sub(row.before.shown);
            let fps = shown as f64 * 1e9 / row.between_ns.max(1) as f64;
            let share = self.cpu.get(number).map_or("-".to_owned(), |share| percent(*share));
            let mut cells = vec![Cell::text(name), Cell::number(share)];
            cells.push(Cell::number(format!("{fps:.1}")));
            cells.extend([late.p99_us, late.max_us].map(|us| Cell::number(duration(us * 1e3))));
            cells.extend(row.now.drops(self.kinds[number]));
            table.row(cells);
        }
        table
    }
}

/// Formats a share for people.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn unshown(error: std::io::Error) -> Failure {
    Failure::measured(format!("the terminal: {error}"))
}
