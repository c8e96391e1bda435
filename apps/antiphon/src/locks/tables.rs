//! The tables of `locks`.

use antiphon_report::table::{Cell, Table, Tone, colour_stdout};
use serde_json::Value;

use super::catalogue::{Family, LOCKS, Lock};
use super::evidence::Evidence;
use super::marks;

/// The tables and their rules: memory and behaviour of locks, behaviour of ours on a simulated
/// machine, and how a waiter waits.
pub fn text(evidence: &Evidence) -> String {
    let colour = colour_stdout();
    let part = |heading: &str, table: Table, rule: &str| {
        format!("{heading}\n{}{rule}\n", table.render(colour))
    };
    let measured = format!(
        "{}API change: what programs must write otherwise than lock() and unlock().\n\
         Measured on: {}.\n",
        marks::RULE,
        machine(evidence),
    );
    [
        part("Mutexes", work(Family::Exclusive, evidence), ""),
        part("Readers-writer locks", work(Family::Shared, evidence), &measured),
        part("On many sockets, simulated", sockets(evidence), marks::RULE_SIMULATED),
        part("Waiting", waiting(), WAITING),
    ]
    .concat()
}

const WAITING: &str = "\
Every lock of ours is free when all its bytes are zero. A waiter's bytes are taken while it waits
only, from memory that all locks share, and a thread keeps those of two for its next waits; mcs,
mcs-stp and clh take them for their owner too. -: not ours to measure.
";

fn machine(evidence: &Evidence) -> String {
    let text = |key: &str| match &evidence.machine[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (cpus, cpu, date) = (text("cpus"), text("cpu"), text("date"));
    format!("{cpus} CPUs of {cpu}, {date}, by: {}", evidence.command)
}

/// The table that the documents show.
fn work(family: Family, evidence: &Evidence) -> Table {
    let mut table = Table::new(&[
        "lock",
        ">bytes",
        ">waiter bytes",
        ">thread bytes",
        "API change",
        ">low",
        ">medium",
        ">high",
        ">oversubscribed",
        ">NUMA (simulated)",
    ]);
    for lock in LOCKS.iter().filter(|lock| lock.family == family) {
        let bytes =
            |of: Option<usize>| Cell::number(of.map_or("-".to_owned(), |bytes| bytes.to_string()));
        let mut row = vec![
            name(lock),
            Cell::number(lock.bytes.to_string()),
            bytes(lock.context.map(|context| context.waiter)),
            bytes(lock.context.map(|context| context.thread)),
            Cell::text("none").tone(Tone::Faint),
        ];
        for role in marks::ROLES {
            let mark = marks::of(&evidence.measured, family.name(), lock.name, role);
            let text = mark.map(|mark| format!("{:.2} {}", mark.0, mark.sign()));
            row.push(Cell::number(text.unwrap_or("-".to_owned())));
        }
        let aware = marks::is_numa_aware(&evidence.simulated, lock.name).filter(|_| lock.ours);
        row.push(Cell::number(aware.map_or("-", |aware| if aware { "✓" } else { "✗" })));
        table.row(row);
    }
    table
}

fn sockets(evidence: &Evidence) -> Table {
    let mut table = Table::new(&[
        "lock",
        ">on socket",
        ">remote transfers/op",
        ">atomics, owner",
        ">others",
        ">shuffled/op",
        ">while held",
    ]);
    for lock in LOCKS.iter().filter(|lock| lock.ours) {
        let Some(row) = marks::simulated_row(&evidence.simulated, lock.name) else { continue };
        let figure = |value: &Value, unit: f64, what: &str| {
            let text =
                value.as_f64().map(|value| format!("{:.*}{what}", digits(unit), value * unit));
            Cell::number(text.unwrap_or("-".to_owned()))
        };
        let atomics = &row["atomics_per_op"];
        table.row(vec![
            name(lock),
            figure(&row["stays_on_socket"], 100.0, " %"),
            figure(&row["remote_transfers_per_op"], 1.0, ""),
            figure(&atomics["owner"], 1.0, ""),
            figure(&atomics["others"], 1.0, ""),
            figure(&row["shuffle_steps_per_op"], 1.0, ""),
            figure(&row["shuffled_while_held"], 100.0, " %"),
        ]);
    }
    table
}

/// Decimals: a share is known to a hundredth, a figure to two decimals.
fn digits(unit: f64) -> usize {
    if unit > 1.0 { 0 } else { 2 }
}

fn waiting() -> Table {
    let mut table = Table::new(&["lock", "a waiter", "order", "deadline"]);
    for lock in LOCKS {
        let tone = tone(lock);
        table.row(vec![
            name(lock),
            Cell::text(lock.waits).tone(tone),
            Cell::text(lock.order).tone(tone),
            Cell::text(if lock.timed { "yes" } else { "no" }).tone(tone),
        ]);
    }
    table
}

fn name(lock: &Lock) -> Cell {
    Cell::text(lock.name).tone(tone(lock))
}

fn tone(lock: &Lock) -> Tone {
    if lock.ours { Tone::Plain } else { Tone::Faint }
}
