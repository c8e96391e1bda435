//! `top`: what a program under `run` waits for now, call site by call site.
//!
//! | module | does |
//! |---|---|
//! | [`find`] | finds the recording |
//! | [`look`] | reads it, and what has changed |
//! | [`screen`] | the terminal |
//!
//! The program is not touched: everything is read from the recording that `run` made for it.

mod find;
mod look;
mod screen;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::output::table::{Cell, Table, Tone, colour_stdout, count, duration, shortened, si};
use crate::output::{report, say};
use look::{Look, Lookout, SiteRow};
use screen::{Key, Screen};

/// What a program under `run` waits for now: a live view, most waiting first
#[derive(Args)]
#[command(after_help = "\
Keys: s sorts by the next column, q ends. Where stdout is no terminal, one look is printed. Blocked
is how many threads waited there on average: since the last look, or in all if there is one look.

Exits with 0 when it ends, 1 if the recording or the terminal can't be used, 2 if there is no such
program or recording, or several, and 69 if none runs, or it is another user's.

Example:
  antiphon run -- CMD & antiphon top")]
pub struct Arguments {
    /// A process of the program, or of antiphon run; or the file of a recording. Without it, the
    /// only program that runs under antiphon run
    #[arg(value_name = "PID|F")]
    what: Option<OsString>,
    /// Print one look and end
    #[arg(long)]
    once: bool,
    /// Print one look as a JSON object and end
    #[arg(long)]
    json: bool,
}

const REFRESH: Duration = Duration::from_secs(1);
/// So many call sites are printed once.
const SITES: usize = 20;
/// Columns that the kind and the numbers take.
const NUMBERS: usize = 76;
/// Letters of a call site that are shown on the smallest terminal.
const LEAST_NAME: usize = 20;

/// By what the rows are sorted.
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

/// Looks, once or until the user or the program ends it.
///
/// # Errors
///
/// If there is nothing to look at, or it can't be shown.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut lookout = Lookout::new(find::find(arguments.what.as_deref())?);
    if arguments.json || arguments.once || !std::io::stdout().is_terminal() {
        let mut look = lookout.look().map_err(unread)?;
        if arguments.json {
            report::print(look.json())?;
        } else {
            print(&mut look)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(mut last) = live(&mut lookout)? {
        // The other screen is gone, and what was seen last with it.
        print(&mut last)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one look.
fn print(look: &mut Look) -> Result<(), Failure> {
    sort(look, Order::Blocked);
    let table = table(look, SITES, usize::MAX).render(colour_stdout());
    say(&format!("{}\n{table}", heads(look, None).join("\n")))
}

fn unread(error: std::io::Error) -> Failure {
    Failure::measured(format!("reading the recording: {error}"))
}

/// Shows look after look; returns the last one if the program has ended.
fn live(lookout: &mut Lookout) -> Result<Option<Look>, Failure> {
    let unshown = |error| Failure::measured(format!("the terminal: {error}"));
    let screen = Screen::enter().map_err(unshown)?;
    let mut order = Order::Blocked;
    let mut look = lookout.look().map_err(unread)?;
    loop {
        sort(&mut look, order);
        let mut lines = heads(&look, Some(order));
        let letters = screen::size().0.saturating_sub(NUMBERS).max(LEAST_NAME);
        let rendered = table(&look, usize::MAX, letters).render(false);
        let rows = rendered.lines().enumerate();
        lines.extend(rows.map(|(at, row)| format!("{}{row}", if at == 0 { ">" } else { "" })));
        screen.show(&lines).map_err(unshown)?;
        if !look.runs {
            return Ok(Some(look));
        }
        match screen.key(REFRESH) {
            Key::Quit => return Ok(None),
            Key::Sort => order = order.next(),
            Key::None => look = lookout.look().map_err(unread)?,
        }
    }
}

fn sort(look: &mut Look, order: Order) {
    look.sites.sort_by(|one, other| {
        let keys = |site: &SiteRow| (order.key(site), Order::All.key(site));
        let ((one, one_all), (other, other_all)) = (keys(one), keys(other));
        other.total_cmp(&one).then(other_all.total_cmp(&one_all))
    });
}

/// The lines above the table.
fn heads(look: &Look, order: Option<Order>) -> Vec<String> {
    let runner = match look.runner {
        Some(pid) if look.runs => format!(" · antiphon run is process {pid}"),
        Some(_) => " · has ended".to_owned(),
        None => String::new(),
    };
    let seen = if look.profile { "all acquisitions" } else { "waits" };
    let mut lines = vec![
        format!("antiphon top: {}{runner}", look.name),
        format!(
            "{} · {} processes · {} threads, {} waiting · {seen} recorded",
            duration(look.age_ns as f64),
            look.processes,
            look.threads,
            look.waiting.len(),
        ),
    ];
    lines.push(order.map_or_else(String::new, |order| {
        format!("sorted by {} (s: another order, q: end)", order.name())
    }));
    lines
}

/// So many call sites at most, with so many letters of each.
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
            Cell::text(shortened(&site.row.site, letters)),
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
