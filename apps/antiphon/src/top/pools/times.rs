//! The tasks of a pool that were too long, and where the time of all tasks went: parsed from the
//! program's answer, and printed.

use antiphon_report::table::{Cell, Table, Tone, count, duration, printable, shortened};
use antiphon_report::words::several;
use serde::{Deserialize, Deserializer};

use super::Frame;
use super::text::{LETTERS, Part, file_and_line, last_words};

/// The number of tasks that get a row each.
const WORST: usize = 5;

/// A task that was too long.
#[derive(Deserialize)]
pub(super) struct Hog {
    thread: String,
    for_ms: u64,
    /// `None`: the thread is still in the task.
    ago_ms: Option<u64>,
    user: Option<Frame>,
}

/// Where the time of the tasks went.
#[derive(Deserialize)]
pub(super) struct Latency {
    window_ms: Option<u64>,
    by_place: Vec<Place>,
    others: Option<Others>,
    worst: Vec<Task>,
    #[serde(flatten)]
    all: Sums,
}

#[derive(Deserialize)]
struct Place {
    place: Option<String>,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Deserialize)]
struct Others {
    places: u64,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Deserialize)]
struct Sums {
    recorded: u64,
    tasks: u64,
    live: u64,
    queued_ns: Times,
    running_ns: Times,
    waiting_ns: Times,
    runnable_ns: Times,
    hogged_ns: Times,
}

#[derive(Deserialize)]
struct Times {
    p50: u64,
    p99: u64,
    max: u64,
}

#[derive(Deserialize)]
struct Task {
    place: Option<String>,
    thread: String,
    is_over: bool,
    age_ns: u64,
    queued_ns: u64,
    running_ns: u64,
    waiting_ns: u64,
    runnable_ns: u64,
    hogged_ns: u64,
}

type Quantile = fn(&Times) -> u64;

/// The parts of a task's time, as names of columns.
const PARTS: [&str; 5] = [">queued", ">running", ">waiting", ">runnable", ">hogged"];

/// Hogs of one function.
struct Group<'a> {
    user: Option<&'a Frame>,
    hogs: Vec<&'a Hog>,
}

/// Parses a field that a program of an earlier version leaves out, and that is `null` where this
/// version has nothing to report.
pub(super) fn said<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}

/// Tasks that were too long, by the functions that they were in; at most `most` rows. Those that
/// still run come first, then the longest.
pub(super) fn hogs(hogs: &[Hog], most: usize) -> Table {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for hog in hogs {
        let user = hog.user.as_ref();
        // Grouped by the function: the line in it is a matter of chance.
        let name = |user: Option<&Frame>| user.map(|frame| frame.name.clone());
        match groups.iter_mut().find(|group| name(group.user) == name(user)) {
            Some(group) => group.hogs.push(hog),
            None => groups.push(Group { user, hogs: vec![hog] }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse((group.lasts(), group.longest_ms())));
    let mut table = Table::new(&["hog", "at", ">times", ">longest", "last on", "last seen"]);
    for group in groups.iter().take(most) {
        let at = group.user.and_then(|frame| frame.place.as_deref());
        let name = group.user.map(|frame| last_words(&frame.name, usize::MAX));
        // The latest hog comes first.
        let latest = group.hogs[0];
        let seen = match group.hogs.iter().filter_map(|hog| hog.ago_ms).min() {
            Some(ms) if !group.lasts() => format!("{} ago", duration(ms as f64 * 1e6)),
            _ => "now".to_owned(),
        };
        table.row(vec![
            Cell::text(name.map_or_else(|| "-".to_owned(), |name| shortened(&name, LETTERS))),
            Cell::text(at.map_or("-", file_and_line)).tone(Tone::Faint),
            Cell::number(count(group.hogs.len() as u64)),
            Cell::number(duration(group.longest_ms() as f64 * 1e6)),
            Cell::text(&latest.thread),
            Cell::text(seen),
        ]);
    }
    table
}

impl Group<'_> {
    fn lasts(&self) -> bool {
        self.hogs.iter().any(|hog| hog.ago_ms.is_none())
    }

    fn longest_ms(&self) -> u64 {
        self.hogs.iter().map(|hog| hog.for_ms).max().unwrap_or(0)
    }
}

impl Latency {
    /// The parts of the text, at most `most` rows of each table.
    pub(super) fn parts(&self, most: usize) -> Vec<Part> {
        let Sums { recorded, tasks, live, .. } = self.all;
        if recorded == 0 {
            return vec![Part::Line("times: no task has been timed yet".to_owned())];
        }
        let window = self.window_ms.map(|ms| {
            let since = duration(ms as f64 * 1e6);
            format!(", the others have ended in the last {since}")
        });
        let line = format!(
            "times: of {}, for {} in all · {} not over{}",
            several(recorded, "task"),
            count(tasks),
            count(live),
            window.unwrap_or_default(),
        );
        let mut parts = vec![Part::Line(line), Part::Table(self.places(most))];
        if self.worst.iter().any(|task| task.delayed_ns() > 0) {
            parts.push(Part::Line(String::new()));
            parts.push(Part::Table(self.worst(most.min(WORST))));
        }
        parts
    }

    fn places(&self, most: usize) -> Table {
        let heads = [&["spawned at", ">tasks", ">live", ""][..], &PARTS].concat();
        let mut table = Table::new(&heads);
        let shown: [(&str, Quantile); 3] =
            [("p50", |it| it.p50), ("p99", |it| it.p99), ("max", |it| it.max)];
        for (number, (name, of)) in shown.into_iter().enumerate() {
            let mut row = self.all.row(if number == 0 { "all" } else { "" }, name, of);
            if number > 0 {
                row[1..3].fill(Cell::number(""));
            }
            table.row(row);
        }
        for Place { place, sums } in self.by_place.iter().take(most) {
            table.row(sums.row(&named(place.as_deref()), "p99", |it| it.p99));
        }
        let hidden = self.by_place.len().saturating_sub(most) as u64;
        match &self.others {
            Some(others) if hidden == 0 => {
                let name = format!("{} more", several(others.places, "place"));
                table.row(others.sums.row(&name, "p99", |it| it.p99));
            }
            others => {
                let more = hidden + others.as_ref().map_or(0, |others| others.places);
                if more > 0 {
                    table.row(vec![Cell::text(format!("{} more", several(more, "place")))]);
                }
            }
        }
        table
    }

    fn worst(&self, most: usize) -> Table {
        let heads = [&["most delayed", "on", "", ">age"][..], &PARTS].concat();
        let mut table = Table::new(&heads);
        for task in self.worst.iter().filter(|task| task.delayed_ns() > 0).take(most) {
            let head = [
                Cell::text(named(task.place.as_deref())),
                Cell::text(&task.thread),
                Cell::text(if task.is_over { "over" } else { "lives" }).tone(Tone::Faint),
                time(task.age_ns),
            ];
            table.row(head.into_iter().chain(task.times().map(time)).collect());
        }
        table
    }
}

impl Sums {
    fn row(&self, name: &str, of: &str, get: Quantile) -> Vec<Cell> {
        let head = [
            Cell::text(name),
            Cell::number(count(self.tasks)),
            Cell::number(count(self.live)),
            Cell::text(of).tone(Tone::Faint),
        ];
        let all = [
            &self.queued_ns,
            &self.running_ns,
            &self.waiting_ns,
            &self.runnable_ns,
            &self.hogged_ns,
        ];
        head.into_iter().chain(all.map(|times| time(get(times)))).collect()
    }
}

impl Task {
    fn times(&self) -> [u64; 5] {
        [self.queued_ns, self.running_ns, self.waiting_ns, self.runnable_ns, self.hogged_ns]
    }

    fn delayed_ns(&self) -> u64 {
        self.queued_ns.saturating_add(self.runnable_ns)
    }
}

/// The place where tasks were spawned, or `closures` if it is not known.
fn named(place: Option<&str>) -> String {
    place.map_or_else(|| "closures".to_owned(), |place| printable(file_and_line(place)))
}

fn time(ns: u64) -> Cell {
    Cell::number(if ns == 0 { "-".to_owned() } else { duration(ns as f64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: &str = r#""recorded":3,"tasks":40,"live":2,"delayed_ns":9,
        "queued_ns":{"p50":1000,"p99":2000,"max":3000},
        "running_ns":{"p50":0,"p99":0,"max":0},"waiting_ns":{"p50":5,"p99":6,"max":7},
        "runnable_ns":{"p50":5,"p99":6,"max":7},"hogged_ns":{"p50":5,"p99":6,"max":7000000}"#;

    fn latency(others: &str) -> Latency {
        let places = ["\"at/src/a.rs:1:2\"", "null"];
        let places = places.map(|place| format!("{{\"place\":{place},{SUMS}}}")).join(",");
        let task = |queued_ns: u64| {
            format!(
                r#"{{"number":7,"place":"b.rs:9:1","thread":"w-0","is_fiber":true,"is_over":false,
                "age_ns":99,"queued_ns":{queued_ns},"running_ns":0,"waiting_ns":0,"runnable_ns":0,
                "hogged_ns":0}}"#
            )
        };
        let text = format!(
            "{{{SUMS},\"window_ms\":1500,\"by_place\":[{places}],\"others\":{others},
            \"worst\":[{},{}]}}",
            task(8_000_000),
            task(0)
        );
        serde_json::from_str(&text).expect("as it is told")
    }

    fn text(parts: &[Part]) -> String {
        let text = parts.iter().map(|part| match part {
            Part::Line(line) => format!("{line}\n"),
            Part::Table(table) => table.render(false),
        });
        text.collect()
    }

    #[test]
    fn places_are_shown_with_all_and_with_the_rest() {
        let shown = text(&latency("null").parts(9));
        let rows: Vec<_> = shown.lines().collect();
        assert!(rows[0].contains("3 tasks") && rows[0].contains("last 1.50 s"), "{shown}");
        assert!(rows[1].starts_with("spawned at") && rows[1].ends_with("hogged"), "{shown}");
        assert!(rows[2].starts_with("all") && rows[2].contains("40") && rows[2].contains("p50"));
        assert!(rows[4].contains("max") && rows[4].ends_with("7.00 ms"), "{shown}");
        assert!(rows[5].starts_with("src/a.rs:1 ") && rows[5].contains("2.00 µs"), "{shown}");
        assert!(rows[6].starts_with("closures") && rows[6].contains("p99"), "{shown}");
        // A task that was not delayed is not shown.
        assert_eq!(rows.iter().filter(|row| row.contains("w-0")).count(), 1, "{shown}");
        assert!(rows.last().is_some_and(|row| row.contains("lives") && row.contains("8.00 ms")));
        let others = format!("{{\"places\":7,{SUMS}}}");
        let shown = text(&latency(&others).parts(9));
        assert!(shown.lines().any(|row| row.starts_with("7 places more") && row.contains("p99")));
        let shown = text(&latency(&others).parts(1));
        assert!(shown.lines().any(|row| row == "8 places more"), "{shown}");
    }

    #[test]
    fn hogs_are_gathered_by_their_functions() {
        let hog = |at: &str, for_ms: u64, ago: &str, thread: &str| {
            format!(r#"{{"thread":"{thread}","for_ms":{for_ms},"ago_ms":{ago},"user":{at}}}"#)
        };
        let sums =
            |line| format!("{{\"name\":\"bank::sum\",\"place\":\"at ./src/sum.rs:{line}:9\"}}");
        let hogs = [
            hog(&sums(7), 20, "100", "w-1"),
            hog("null", 30, "null", "w-0"),
            hog(&sums(8), 50, "4000", "w-2"),
        ];
        let hogs: Vec<Hog> =
            serde_json::from_str(&format!("[{}]", hogs.join(","))).expect("as they are told");
        let shown = super::hogs(&hogs, 9).render(false);
        let rows: Vec<Vec<_>> = shown.lines().map(|row| row.split("  ").collect()).collect();
        assert_eq!(rows.len(), 3, "{shown}");
        let rows: Vec<Vec<_>> = rows
            .into_iter()
            .map(|row| row.into_iter().map(str::trim).filter(|it| !it.is_empty()).collect())
            .collect();
        assert_eq!(rows[1], ["-", "-", "1", "30.0 ms", "w-0", "now"], "{shown}");
        let sums = ["bank::sum", "src/sum.rs:7", "2", "50.0 ms", "w-1", "100 ms ago"];
        assert_eq!(rows[2], sums, "{shown}");
        assert_eq!(super::hogs(&hogs, 1).render(false).lines().count(), 2);
    }
}
