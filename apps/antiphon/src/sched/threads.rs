//! The threads under the scheduler: how each is treated and why, its share, and how late it was.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use antiphon_report::table::{Cell, Table, Tone, count, duration, printable};
use serde_json::{Value, json};

/// What was seen before: shares are of the time since then.
#[derive(Default)]
pub struct Before {
    /// CPU time in nanoseconds, by thread.
    cpu_ns: HashMap<u64, u64>,
    then: Option<Instant>,
}

/// A thread.
struct Row {
    thread: u64,
    process: u64,
    name: String,
    standing: String,
    /// CPUs that it has had on average: after the former look, or from its registration on.
    share: f64,
    cpu_ns: u64,
    timely: u64,
    late_ns: [u64; 2],
    demoted: [u64; 3],
}

/// The threads at one look.
pub struct Threads(Vec<Row>);

/// The words for a standing.
fn words(standing: &str) -> &str {
    match standing {
        "plain" => "plain: has not polled",
        "overrun" => "demoted: ran beyond its slice",
        "slept" => "demoted: slept without a poll",
        "share" => "demoted: more than its share",
        other => other,
    }
}

/// The name of a thread, as its process has set it.
fn name_of(process: u64, thread: u64) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
    printable(name.unwrap_or_default().trim_end())
}

impl Threads {
    /// Reads the threads of a status. Shares are of the time since the look at `before`, and
    /// `before` is then this look.
    pub fn of(status: &Value, before: &mut Before) -> Self {
        let now = Instant::now();
        let since_ns = before.then.map(|then| now.duration_since(then).as_nanos() as f64);
        let all = status["threads"].as_array().map_or(&[][..], Vec::as_slice);
        let rows = all.iter().map(|one| Row::of(one, before, since_ns)).collect::<Vec<_>>();
        before.cpu_ns = rows.iter().map(|row: &Row| (row.thread, row.cpu_ns)).collect();
        before.then = Some(now);
        Self(rows)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The table, at most `most` rows: first the threads that have had most.
    pub fn table(&self, most: usize) -> Table {
        let heads = [
            ">thread",
            "name",
            ">process",
            "standing",
            ">share",
            ">CPU",
            ">timely",
            ">late",
            ">at most",
            ">overrun",
            ">slept",
            ">over share",
        ];
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by(|one, other| other.share.total_cmp(&one.share));
        let mut table = Table::new(&heads);
        for row in rows.into_iter().take(most) {
            let tone = if row.standing == "cooperative" { Tone::Plain } else { Tone::Faint };
            let time = |ns: u64| Cell::number(duration(ns as f64));
            let mut cells = vec![
                Cell::number(row.thread.to_string()),
                Cell::text(row.name.clone()),
                Cell::number(row.process.to_string()),
                Cell::text(words(&row.standing)).tone(tone),
                Cell::number(format!("{:.2}", row.share)),
                time(row.cpu_ns),
                Cell::number(count(row.timely)),
            ];
            cells.extend(row.late_ns.map(time));
            cells.extend(row.demoted.map(|one| Cell::number(count(one))));
            table.row(cells);
        }
        table
    }

    /// The threads for scripts.
    pub fn json(&self) -> Value {
        self.0.iter().map(Row::json).collect()
    }
}

impl Row {
    fn of(one: &Value, before: &Before, since_ns: Option<f64>) -> Self {
        let number = |what: &str| one[what].as_u64().unwrap_or(0);
        let late = |what: &str| one["tardiness_ns"][what].as_u64().unwrap_or(0);
        let (thread, cpu_ns) = (number("thread"), number("cpu_ns"));
        let (ran_ns, of_ns) = match (before.cpu_ns.get(&thread), since_ns) {
            (Some(had_ns), Some(since_ns)) => (cpu_ns.saturating_sub(*had_ns), since_ns),
            _ => (cpu_ns, number("age_ns") as f64),
        };
        Self {
            thread,
            process: number("process"),
            name: name_of(number("process"), thread),
            standing: one["standing"].as_str().unwrap_or("?").to_owned(),
            share: if of_ns > 0.0 { ran_ns as f64 / of_ns } else { 0.0 },
            cpu_ns,
            timely: number("timely_turns"),
            late_ns: [late("mean"), late("max")],
            demoted: ["demoted_overrun", "demoted_slept", "demoted_share"].map(number),
        }
    }

    fn json(&self) -> Value {
        let [overrun, slept, share] = self.demoted;
        json!({
            "thread": self.thread,
            "process": self.process,
            "name": self.name,
            "standing": self.standing,
            "share": self.share,
            "cpu_ns": self.cpu_ns,
            "timely_turns": self.timely,
            "tardiness_ns": { "mean": self.late_ns[0], "max": self.late_ns[1] },
            "demoted_overrun": overrun,
            "demoted_slept": slept,
            "demoted_share": share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(cpu_ns: u64) -> Value {
        json!({ "threads": [
            {
                "thread": 41, "process": 40, "standing": "share", "cpu_ns": cpu_ns,
                "age_ns": 4_000_000_000_u64, "timely_turns": 12,
                "tardiness_ns": { "mean": 90_000, "max": 110_000 },
                "demoted_overrun": 1, "demoted_slept": 2, "demoted_share": 3,
            },
            { "thread": 42, "process": 40, "standing": "cooperative", "cpu_ns": 0 },
        ]})
    }

    #[test]
    fn a_table_says_how_each_thread_is_treated_and_why() {
        let threads = Threads::of(&status(2_000_000_000), &mut Before::default());
        let told = threads.table(9).render(false);
        let row = told.lines().find(|line| line.contains("41")).expect("a row");
        for what in ["demoted: more than its share", "0.50", "90.0 µs", "110 µs"] {
            assert!(row.contains(what), "{told}");
        }
        assert!(row.trim_end().ends_with('3') && told.contains("cooperative"), "{told}");
        assert_eq!(threads.table(1).render(false).lines().count(), 2);
        let json = threads.json();
        assert_eq!((&json[0]["share"], &json[0]["demoted_slept"]), (&json!(0.5), &json!(2)));
    }

    #[test]
    fn a_second_look_has_shares_of_the_time_between() {
        let mut before = Before::default();
        Threads::of(&status(2_000_000_000), &mut before);
        // An hour ago, for all that is known.
        before.then = Instant::now().checked_sub(std::time::Duration::from_secs(3_600));
        let Threads(rows) = Threads::of(&status(2_000_000_000 + 36_000_000_000), &mut before);
        assert!((rows[0].share - 0.01).abs() < 0.001, "{}", rows[0].share);
    }
}
