//! `top`: what a program under `run` waits for now, call site by call site, and what the pools of a
//! program that shows them do.
//!
//! | module | does |
//! |---|---|
//! | [`find`] | finds the recording and the pools |
//! | [`look`] | reads a recording, and what has changed in it |
//! | [`pools`] | asks a program for its pools, and prints the answer |
//! | [`scheduled`] | asks the scheduler in the kernel, if it runs |
//! | [`view`] | one look at all |
//!
//! A recording is read without touching the program; of its pools the program itself reports.

mod find;
mod look;
mod pools;
mod scheduled;
mod view;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use antiphon_report::failure::Failure;
use antiphon_report::screen::{self, Key, Screen};
use antiphon_report::table::{Cell, Table, Tone, colour_stdout, count, duration, shortened, si};
use antiphon_report::{report, say};
use clap::Args;

use look::{Look, SiteRow};
use pools::Part;
use scheduled::Asks;
use view::{View, Watched};

/// Show live what a program under `antiphon run` waits for, and what its pools do
#[derive(Args)]
#[command(after_help = "\
Keys: s sorts by the next column, q ends. If stdout is not a terminal, the state is printed once.
Blocked is the average number of threads that waited there: since the last refresh, or over the
whole run if the state is printed once.

A program with pools of Antiphon shows them if ANTIPHON_LOOK=1 is in its environment, or if it has
called antiphon::look::open. The view has its workers, first those in one task for long; the waiting
tasks; its fibers by state; the latest tasks that took too long; the places where fibers wait; and
the time of tasks by the line that has spawned them: for each part (queued, ran, waited, runnable,
hogged) the 99th percentile. Only some tasks are timed: docs/recorder.md says which.

While antiphon sched runs, its threads are shown, of all programs: how each is treated and why, its
share since the last refresh, and how late its turns began. No program is needed then.

JSON: scheduler{scope, tasks[] as of sched --status}, or null; program, runs;
for a program under antiphon run its pid (null for a recording that has ended),
profile, wall_s, processes, threads, waiting[], locks[]; for others the program's own pid. pools_pid
is the process whose pools are shown, and pools[] have the keys that antiphon::look documents:
name, threads, spares, workers[]{worker, seat, state, for_ms, queued}, shared, tasks, hogs,
longest_ns, hosts[]{thread, ready, waiting, with_deadline, for_files}, places[]{count, has_deadline,
by, user, frames[]{name, place}}, latest_hogs[]{thread, for_ms, ago_ms, user, frames[]},
latency{recorded, tasks, live, window_ms, delayed_ns, queued_ns{p50, p99, max}, running_ns{},
waiting_ns{}, runnable_ns{}, hogged_ns{}, by_place[]{place, …}, others{places, …}, worst[]{number,
place, thread, is_over, age_ns, queued_ns, …}}, …

Exit code: 0 at the end; 1 if the recording, the pools or the terminal can't be used; 2 if there is
no such program or recording, or several; 69 if no program runs, or if it belongs to another user or
speaks another version of the protocol.

Examples:
  antiphon run -- CMD & antiphon top
  ANTIPHON_LOOK=1 CMD & antiphon top --once $!")]
pub struct Arguments {
    /// Process id of the program or of its `antiphon run`, or the file of a recording. Without it,
    /// the program must be the only one that runs under `antiphon run`, or that shows its pools
    #[arg(value_name = "PID|F")]
    what: Option<OsString>,
    /// Print the present state once, and end
    #[arg(long)]
    once: bool,
    /// Print the present state once as a JSON object, and end
    #[arg(long)]
    json: bool,
}

const REFRESH: Duration = Duration::from_secs(1);
/// The rows of a single output: of call sites, of a pool's workers and of its places.
const ROWS: usize = 20;
/// Columns that the kind and the numbers of a row take.
const NUMBERS: usize = 76;
/// The least number of letters of a call site, on the smallest terminal.
const LEAST_NAME: usize = 20;

/// The key by which the rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Blocked,
    Waits,
    Longest,
    All,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Blocked => Self::Waits,
            Self::Waits => Self::Longest,
            Self::Longest => Self::All,
            Self::All => Self::Blocked,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Blocked => "threads blocked",
            Self::Waits => "waits",
            Self::Longest => "longest wait",
            Self::All => "time in all",
        }
    }

    fn key(self, site: &SiteRow) -> f64 {
        match self {
            Self::Blocked => site.blocked,
            Self::Waits => site.waits_per_s,
            Self::Longest => site.row.wait.max_ns as f64,
            Self::All => site.row.wait.sum_ns as f64,
        }
    }
}

/// Shows the program once, or repeatedly until the user or the program ends it.
///
/// # Errors
///
/// If there is nothing to look at, or the terminal can't show it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let found = find::find(arguments.what.as_deref()).or_else(|failure| {
        // Without a program, the threads under the scheduler are worth a look.
        let is_there = arguments.what.is_none() && Asks::default().look().is_some();
        if is_there { Ok(find::Found { source: None, program: None }) } else { Err(failure) }
    });
    let mut watched = Watched::new(found?);
    if arguments.json || arguments.once || !std::io::stdout().is_terminal() {
        let mut view = watched.look()?;
        if arguments.json {
            report::print(view.json())?;
        } else {
            print(&mut view)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(mut last) = live(&mut watched)? {
        // Leaving the alternate screen has removed the last look: it is printed again.
        print(&mut last)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one look.
fn print(view: &mut View) -> Result<(), Failure> {
    let mut text = view.heads(None).join("\n") + "\n";
    if let Some(look) = &mut view.locks {
        sort(look, Order::Blocked);
        text += &table(look, ROWS, usize::MAX).render(colour_stdout());
    }
    for part in view.parts(ROWS) {
        match part {
            Part::Line(line) => text += &(line + "\n"),
            Part::Table(table) => text += &table.render(colour_stdout()),
        }
    }
    say(&text)
}

/// Shows one look after the other; returns the last one if the program has ended.
fn live(watched: &mut Watched) -> Result<Option<View>, Failure> {
    let unshown = |error| Failure::measured(format!("the terminal: {error}"));
    let screen = Screen::enter().map_err(unshown)?;
    let mut order = Order::Blocked;
    let mut view = watched.look()?;
    loop {
        let mut lines = view.heads(Some(order));
        if let Some(look) = &mut view.locks {
            sort(look, order);
            let letters = screen::size().0.saturating_sub(NUMBERS).max(LEAST_NAME);
            // Beside pools there is no room for more rows.
            let most = if view.pools.is_some() { ROWS } else { usize::MAX };
            lines.extend(highlighted(&table(look, most, letters)));
        }
        for part in view.parts(usize::MAX) {
            match part {
                Part::Line(line) => lines.push(line),
                Part::Table(table) => lines.extend(highlighted(&table)),
            }
        }
        screen.show(&lines).map_err(unshown)?;
        if !view.runs {
            return Ok(Some(view));
        }
        match screen.key(REFRESH) {
            Key::Quit => return Ok(None),
            Key::Sort => order = order.next(),
            Key::None => view = watched.look()?.or_last(view),
        }
    }
}

/// The lines of a table, with the first one highlighted.
fn highlighted(table: &Table) -> Vec<String> {
    let rendered = table.render(false);
    let rows = rendered.lines().enumerate();
    rows.map(|(at, row)| format!("{}{row}", if at == 0 { ">" } else { "" })).collect()
}

fn sort(look: &mut Look, order: Order) {
    look.sites.sort_by(|one, other| {
        let keys = |site: &SiteRow| (order.key(site), Order::All.key(site));
        let ((one, one_all), (other, other_all)) = (keys(one), keys(other));
        other.total_cmp(&one).then(other_all.total_cmp(&one_all))
    });
}

/// A table of at most `most` call sites, with at most `letters` letters of each.
fn table(look: &Look, most: usize, letters: usize) -> Table {
    let heads = [
        "call site",
        "kind",
        ">waiting",
        ">blocked",
        ">waits/s",
        ">p50",
        ">p99",
        ">longest",
        ">in all",
    ];
    let mut table = Table::new(&heads);
    for site in look.sites.iter().take(most) {
        let wait = &site.row.wait;
        let time = |ns: Option<u64>| {
            Cell::number(ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64)))
        };
        let some = !wait.is_empty();
        table.row(vec![
            Cell::text(shortened(&site.row.site.label(), letters)),
            Cell::text(site.row.kind).tone(Tone::Faint),
            Cell::number(count(site.row.still_waiting)),
            Cell::number(format!("{:.2}", site.blocked)),
            Cell::number(si(site.waits_per_s)),
            time(wait.p50()),
            time(wait.p99()),
            time(some.then_some(wait.max_ns)),
            time(some.then_some(wait.sum_ns)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_round() {
        let mut order = Order::Blocked;
        let orders = std::array::from_fn::<_, 4, _>(|_| {
            order = order.next();
            order.name()
        });
        assert_eq!(order, Order::Blocked);
        assert!((0..4).all(|at| !orders[at + 1..].contains(&orders[at])));
    }
}
