//! The text of a program's pools.

use antiphon_report::table::{Cell, Table, Tone, count, duration, printable, shortened, si};
use antiphon_report::words::several;

use super::{Frame, Host, Place, Pool, Pools, Worker, times};

/// The most letters of a function's name that are shown.
pub(super) const LETTERS: usize = 60;

/// A thread that has not answered, and its innermost function, if that is known.
fn silent_thread(host: &Host) -> String {
    let thread = printable(&host.thread);
    let Some(Frame { name, place }) = host.busy.iter().flatten().next() else { return thread };
    let place = place.as_ref().map(|place| format!(", {}", printable(file_and_line(place))));
    format!("{thread} (in {}{})", shortened(&printable(name), LETTERS), place.unwrap_or_default())
}

/// A part of the output.
pub enum Part {
    /// A line.
    Line(String),
    /// A table.
    Table(Table),
}

impl Pools {
    /// The text about all pools, at most `most` rows of each table.
    pub fn parts(&self, most: usize) -> Vec<Part> {
        if self.pools.is_empty() {
            return vec![Part::Line("no pools".to_owned())];
        }
        self.pools.iter().flat_map(|pool| pool.parts(most)).collect()
    }
}

impl Pool {
    fn parts(&self, most: usize) -> Vec<Part> {
        let mut parts = vec![Part::Line(String::new())];
        parts.extend(self.heads().into_iter().map(Part::Line));
        let busy = self.busy();
        if !busy.is_empty() {
            parts.push(Part::Line(String::new()));
            parts.push(Part::Table(workers(&busy, most)));
        }
        if !self.latest_hogs.is_empty() {
            parts.push(Part::Line(String::new()));
            parts.push(Part::Table(times::hogs(&self.latest_hogs, most)));
        }
        if !self.places.is_empty() {
            parts.push(Part::Line(String::new()));
            parts.push(Part::Table(places(&self.places, most)));
        }
        parts.push(Part::Line(String::new()));
        parts.extend(self.times(most));
        parts
    }

    fn times(&self, most: usize) -> Vec<Part> {
        let missing = match &self.latency {
            Some(Some(latency)) => return latency.parts(most),
            Some(None) => "times: none, because the pool's recorder is off",
            None => "times: unknown, because the program uses an earlier version of antiphon",
        };
        vec![Part::Line(missing.to_owned())]
    }

    fn heads(&self) -> Vec<String> {
        let queued: u64 = self.workers.iter().map(|worker| worker.queued).sum();
        let more = if self.policy_has_tasks { ", more in the policy's queues" } else { "" };
        let mut lines = vec![
            format!(
                "pool {} · {} and {} spare · {}",
                printable(&self.name),
                several(self.threads as u64, "thread"),
                self.spares,
                self.states(),
            ),
            format!(
                "tasks: {} wait in workers' queues, {} outside{more} · {} begun{}, {} steals · {}",
                count(queued),
                count(self.shared),
                count(self.tasks),
                self.tasks_per_s.map(|rate| format!(", {}/s", si(rate))).unwrap_or_default(),
                count(self.steals),
                self.hogs(),
            ),
        ];
        if self.fibers {
            lines.push(self.fibers());
        }
        lines
    }

    /// The number of workers in each state.
    fn states(&self) -> String {
        let of = |state: &str, kept: bool| {
            let is = |worker: &&Worker| worker.state == state && worker.for_ms.is_some() == kept;
            self.workers.iter().filter(is).count()
        };
        let all = [
            (of("runs", false), "run"),
            (of("runs", true), "in one task"),
            (of("searches", false), "search"),
            (of("rests", false), "rest"),
            (of("away", false) + of("away", true), "without a seat"),
        ];
        let some = all.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }

    fn hogs(&self) -> String {
        let longest = match self.longest_ns {
            0 => String::new(),
            ns => format!(", the longest task {}", duration(ns as f64)),
        };
        format!("{}{longest}", several(self.hogs, "hog"))
    }

    fn fibers(&self) -> String {
        let sum = |of: fn(&Host) -> Option<u64>| self.hosts.iter().filter_map(of).sum::<u64>();
        let silent = self.hosts.iter().filter(|host| host.waiting.is_none());
        let silent: Vec<_> = silent.map(silent_thread).collect();
        let unheard = match &silent[..] {
            [] => String::new(),
            some => format!(" · in one task, and has not answered: {}", some.join(", ")),
        };
        format!(
            "fibers: {} may go on, {} wait: {} until a time, {} for files{unheard}",
            count(sum(|host| host.ready)),
            count(sum(|host| host.waiting)),
            count(sum(|host| host.with_deadline)),
            count(sum(|host| host.for_files)),
        )
    }

    /// The workers that are worth a row: those that are in a task or have tasks queued, the longest
    /// in one task first.
    fn busy(&self) -> Vec<&Worker> {
        let is_busy = |worker: &&Worker| worker.for_ms.is_some() || worker.queued > 0;
        let mut busy: Vec<_> = self.workers.iter().filter(is_busy).collect();
        busy.sort_by_key(|worker| std::cmp::Reverse((worker.for_ms, worker.queued)));
        busy
    }
}

fn workers(busy: &[&Worker], most: usize) -> Table {
    let mut table = Table::new(&[">worker", ">seat", "state", ">in one task for", ">queued"]);
    for worker in busy.iter().take(most) {
        let time = worker.for_ms.map(|ms| duration(ms as f64 * 1e6));
        let tone = if time.is_some() { Tone::Plain } else { Tone::Faint };
        table.row(vec![
            Cell::number(worker.worker.to_string()),
            Cell::number(worker.seat.to_string()).tone(Tone::Faint),
            Cell::text(&worker.state).tone(tone),
            Cell::number(time.unwrap_or_else(|| "-".to_owned())),
            Cell::number(count(worker.queued)),
        ]);
    }
    table
}

fn places(places: &[Place], most: usize) -> Table {
    let mut table = Table::new(&[">waiting", "until", "by", "in", "at"]);
    for place in places.iter().take(most) {
        let of = |frame: &Option<Frame>, words: usize| {
            let name = frame.as_ref().map(|frame| last_words(&frame.name, words));
            Cell::text(shortened(&name.unwrap_or_else(|| "-".to_owned()), LETTERS))
        };
        let at = place.user.as_ref().and_then(|frame| frame.place.as_deref());
        let until = if place.has_deadline { "a time" } else { "" };
        table.row(vec![
            Cell::number(count(place.count)),
            Cell::text(until).tone(Tone::Faint),
            of(&place.by, 2),
            of(&place.user, usize::MAX),
            Cell::text(at.map_or("-", file_and_line)).tone(Tone::Faint),
        ]);
    }
    table
}

/// The last `words` words of a path, without the text in angle brackets.
pub(super) fn last_words(name: &str, words: usize) -> String {
    let (mut plain, mut depth) = (String::new(), 0_usize);
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    let all: Vec<_> = plain.split("::").filter(|word| !word.is_empty()).collect();
    all[all.len().saturating_sub(words)..].join("::")
}

/// The file with its last folder, and the line without the column.
pub(super) fn file_and_line(place: &str) -> &str {
    let place = place.strip_prefix("at ").unwrap_or(place);
    let mut slashes = place.rmatch_indices('/').map(|(at, _)| at + 1);
    let begin = slashes.nth(1).unwrap_or(0);
    let end = place.rfind(':').filter(|&end| place[..end].contains(':')).unwrap_or(place.len());
    &place[begin..end.max(begin)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_does_not_answer_is_said_with_where_it_is() {
        let said = |busy: &str| {
            let host = format!(
                r#"{{"thread":"w-1","ready":null,"waiting":null,{busy}
                "with_deadline":null,"for_files":null}}"#
            );
            silent_thread(&serde_json::from_str(&host).expect("a host"))
        };
        let frames = r#""busy":[{"name":"bank::sum","place":"at ./src/sum.rs:7:9"},
            {"name":"main","place":null}],"#;
        assert_eq!(said(frames), "w-1 (in bank::sum, src/sum.rs:7)");
        assert_eq!(said(r#""busy":[{"name":"sum","place":null}],"#), "w-1 (in sum)");
        assert_eq!((said(r#""busy":null,"#), said("")), ("w-1".into(), "w-1".into()));
    }

    #[test]
    fn names_are_short() {
        assert_eq!(last_words("lock_api::mutex::Mutex<R,T>::lock", 2), "Mutex::lock");
        assert_eq!(last_words("bank::main::{{closure}}", usize::MAX), "bank::main::{{closure}}");
        assert_eq!(last_words("", 2), "");
        assert_eq!(file_and_line("at ./src/main.rs:7:9"), "src/main.rs:7");
        assert_eq!(file_and_line("at /srv/a/b/src/main.rs:7:9"), "src/main.rs:7");
        assert_eq!(file_and_line("main.rs:7"), "main.rs:7");
        assert_eq!(file_and_line(""), "");
    }
}
