//! `lab check`: runs the model checker on the locks.
//!
//! A model is `complete` when every execution within its bound was explored: every interleaving,
//! and every value that weak memory lets a load return. Models that are too large for that are run
//! by lot, and the report gives the number of executions. The models are `antiphon-models`'s.

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Duration;

use antiphon_check::{Failure as Wrong, Mode};
use antiphon_models::{Entry, Limits, Outcome, Verdict, all, asked_for, beginning_with};
use antiphon_report::failure::Failure;
use antiphon_report::list::near;
use antiphon_report::progress::Progress;
use antiphon_report::table::{Cell, Table, Tone, colour_stdout, count, duration};
use antiphon_report::{report, say};
use clap::Args;
use serde_json::{Value, json};

use super::mutants::Mutants;

/// Run the model checker on the locks
#[derive(Args)]
#[command(after_help = "\
`complete`: every order of events within the bound was tried, including weak memory; the table shows
the bound: the events that a thread may meet (spurious wakes, timeouts, …). `by lot`: the orders are
too many, so some thousands were chosen at random. `refuted`: a form that is kept because it is
known to be wrong, and was found to be wrong. `CUT`: not complete after --seconds, without an error
so far.

Of models that take minutes to their end, orders are chosen at random, as in the tests, unless NAME
is the full name of one. --whole runs each to its end, or for --seconds: all of them take hours.
With --json, `mutants` are the broken invariants that a model must notice, and `killed` those that
it had noticed when `cargo xtask mutants` was last recorded, or null if it never was.

Example:
  antiphon lab check shfl-mutex/
  antiphon lab check --whole --seconds 3600 shfl-rw")]
pub struct Arguments {
    /// Models whose names begin with NAME
    name: Option<String>,
    /// Run one execution of the model NAME again, from the replay text of a failure
    #[arg(long, value_name = "S", requires = "name")]
    replay: Option<String>,
    /// Also run the models that take minutes to their end
    #[arg(long, conflicts_with = "replay")]
    whole: bool,
    /// Longest time for one model, in seconds
    #[arg(long, value_name = "S", default_value_t = 600)]
    seconds: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the models, and prints the results.
///
/// # Errors
///
/// Bad arguments, or a model that fails.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let chosen = choose(arguments.name.as_deref(), arguments.whole)?;
    if let Some(word) = &arguments.replay {
        return match &chosen[..] {
            [entry] => replay(entry, word),
            _ => Err(Failure::arguments(format!("--replay needs one of: {}", listed(&chosen)))),
        };
    }
    let limits = Limits { time: Duration::from_secs(arguments.seconds), ..Limits::NONE };
    let mut progress = Progress::new(chosen.len());
    let mut checked = Vec::new();
    for entry in chosen {
        let outcome = entry.check(limits);
        progress.step(entry.name());
        checked.push((entry, outcome));
    }
    drop(progress);
    if arguments.json {
        let mutants = Mutants::embedded().map_err(Failure::measured)?;
        let models: Vec<_> = checked.iter().map(|checked| object(checked, &mutants)).collect();
        report::print(json!({ "models": models }))?;
    } else {
        say(&text(&checked))?;
    }
    match checked.iter().find(|(_, outcome)| outcome.verdict().is_bad()) {
        None => Ok(ExitCode::SUCCESS),
        Some((entry, outcome)) => {
            if let Some(wrong) = outcome.failure() {
                eprintln!("{wrong}");
            }
            Err(Failure::measured(format!("{}: {}", entry.name(), outcome.verdict())))
        }
    }
}

fn choose(name: Option<&str>, whole: bool) -> Result<Vec<Entry>, Failure> {
    let named = if whole { beginning_with } else { asked_for };
    let chosen = named(name.unwrap_or(""));
    match name {
        Some(prefix) if chosen.is_empty() => {
            let all = all();
            let mut locks: Vec<_> = all.iter().map(Entry::subject).collect();
            locks.sort_unstable();
            locks.dedup();
            let subject = prefix.split('/').next().unwrap_or(prefix);
            let (near, locks) = (near(subject, &locks), locks.join("/, "));
            let none = format!("no model's name begins with '{prefix}'{near}");
            Err(Failure::arguments(format!("{none}; they begin with: {locks}/")))
        }
        _ => Ok(chosen),
    }
}

fn listed(entries: &[Entry]) -> String {
    entries.iter().map(Entry::name).collect::<Vec<_>>().join(", ")
}

/// Runs the one execution that `word` encodes, and prints its steps.
fn replay(entry: &Entry, word: &str) -> Result<ExitCode, Failure> {
    // The checker panics on an invalid word, which is a bad argument here.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mode = Mode::Replay(word.to_owned());
    // Unwind safe: the model is not run again.
    let done = panic::catch_unwind(AssertUnwindSafe(|| entry.run(mode, Limits::NONE)));
    panic::set_hook(hook);
    match done {
        Ok(report) => match report.failure {
            None => {
                say(&format!("{}: nothing goes wrong in that execution\n", entry.name()))?;
                Ok(ExitCode::SUCCESS)
            }
            Some(wrong) => {
                say(&format!("{wrong}\n"))?;
                Err(Failure::measured(format!("{}: {}", entry.name(), wrong.what)))
            }
        },
        Err(payload) => {
            let why = payload.downcast_ref::<String>().map_or("no execution of it", String::as_str);
            let right = "--replay takes the text after 'replay:' in a failure";
            Err(Failure::arguments(format!("{right}: {why}")))
        }
    }
}

fn object((entry, outcome): &(Entry, Outcome), mutants: &Mutants) -> Value {
    let named = mutants.of(entry.name());
    json!({
        "name": entry.name(), "threads": entry.threads(), "operations": entry.operations(),
        "bound": entry.bounds().to_string(), "executions": outcome.executions(),
        "complete": *outcome.verdict() == Verdict::Complete,
        "verdict": outcome.verdict().to_string(), "mutants": named,
        "killed": mutants.killed(&named),
        "seconds": outcome.seconds(), "failure": outcome.failure().map(wrong),
    })
}

fn wrong(failure: &Wrong) -> Value {
    let Wrong { kind, what, replay, .. } = failure;
    json!({ "kind": format!("{kind:?}"), "what": what, "replay": replay })
}

fn text(checked: &[(Entry, Outcome)]) -> String {
    let tone = |verdict: &Verdict| match verdict {
        Verdict::Complete | Verdict::Refuted => Tone::Good,
        verdict if verdict.is_bad() => Tone::Bad,
        _ => Tone::Plain,
    };
    let table = Table::of(
        checked,
        &[
            ("model", &|(entry, _)| Cell::text(entry.name())),
            (">threads", &|(entry, _)| Cell::number(entry.threads().to_string())),
            (">operations", &|(entry, _)| Cell::number(entry.operations().to_string())),
            ("a thread may meet", &|(entry, _)| {
                Cell::text(entry.bounds().to_string()).tone(Tone::Faint)
            }),
            (">executions", &|(_, outcome)| Cell::number(count(outcome.executions()))),
            ("verdict", &|(_, outcome)| {
                Cell::text(outcome.verdict().to_string()).tone(tone(outcome.verdict()))
            }),
            (">time", &|(_, outcome)| Cell::number(duration(outcome.seconds() * 1e9))),
        ],
    );
    let mut text = table.render(colour_stdout());
    let sampled = checked.iter().filter(|(entry, _)| entry.is_long() && !entry.is_exhaustive());
    let sampled = sampled.count();
    if sampled > 0 {
        text += &format!("{sampled} models that take minutes were drawn by lot: see --whole.\n");
    }
    text
}
