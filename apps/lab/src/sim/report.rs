//! The skeleton of the reports of `sim`: the machine, the heading, the keys of all rows, and the
//! selection of names.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::names;
use antiphon_report::report::print_or_say;
use antiphon_sim::{Description, Machine};
use serde_json::{Value, json};

/// Returns the heading for people: the machine and the conditions.
pub fn heading(machine: &Machine, conditions: &str) -> String {
    format!("Simulated (a model, not a measurement): {}, {conditions}", machine.name)
}

/// Returns the report for scripts: the machine, the conditions and the rows.
pub fn body(described: &Description, conditions: Value, rows: Vec<Value>) -> Value {
    let machine = json!({
        "machine": described.machine.name, "hash": format!("{:016x}", described.hash),
    });
    json!({ "simulated": joined(machine, conditions), "rows": rows })
}

/// Prints a report for scripts or for people, and writes its page if one is asked for.
///
/// # Errors
///
/// If stdout or the page can't be written.
pub fn print(
    as_json: bool,
    (html, page): (Option<OutputFile>, impl FnOnce() -> String),
    body: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Failure> {
    let drawn = html.map_or(Ok(()), |file| file.write(&page()));
    print_or_say(as_json, body, text)?;
    drawn.map(|()| ExitCode::SUCCESS)
}

/// Returns a row for scripts: a subject with a number of threads, and further keys.
pub fn row(machine: &Machine, subject: &str, threads: usize, keys: Value) -> Value {
    let head = json!({
        "model": true, "machine": machine.name, "subject": subject, "threads": threads,
    });
    joined(head, keys)
}

/// Joins the keys of two objects.
pub fn joined(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

/// Formats the hash of a run in sixteen digits.
pub fn trace(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Returns the elements of `all` that an option names, in the order of `all`; with `or_all`, the
/// name `all` selects every element.
///
/// # Errors
///
/// A message that names the unknown name, or says that there is none.
pub fn chosen<T: Copy>(
    option: &str,
    text: &str,
    all: &[T],
    (name, or_all): (fn(T) -> &'static str, bool),
) -> Result<Vec<T>, Failure> {
    if or_all && text == "all" {
        return Ok(all.to_vec());
    }
    let known: Vec<_> = all.iter().copied().map(name).collect();
    let names = names(option, text, &known).map_err(Failure::arguments)?;
    if names.is_empty() {
        let (known, also) = (known.join(", "), if or_all { ", or all" } else { "" });
        let wanted = format!("--{option} takes names{also}; there are: {known}");
        return Err(Failure::arguments(wanted));
    }
    Ok(all.iter().copied().filter(|one| names.contains(&name(*one))).collect())
}
