//! `--timeline`: locks by their year of publication, and the work of each with as many threads as
//! the machine has CPUs.

use antiphon_replay::locks::{LOCKS, SimLock};
use antiphon_report::page;
use antiphon_report::page::bars::{Bar, drawing};
use antiphon_report::page::escape;
use antiphon_report::table::{Cell, Table, si};
use antiphon_report::words::several;
use serde_json::Value;

use super::cases;
use crate::bench::Family;

/// The publication of a lock.
struct Published {
    year: u16,
    lock: &'static str,
    source: &'static str,
}

const fn at(year: u16, lock: &'static str, source: &'static str) -> Published {
    Published { year, lock, source }
}

/// The history of locks, ordered by year. Where a lock's own file names several years, the year is
/// that of the simulated form. A lock without a year is not on the timeline.
const HISTORY: [Published; 26] = [
    at(1964, "tas", "IBM System/360, the instruction Test and Set (recalled)"),
    at(1984, "ttas", "Rudolph, Segall, ISCA 1984; 004 has a backoff lock in 1989"),
    at(1991, "ticket", "Mellor-Crummey, Scott, ACM TOCS 9(1)"),
    at(1991, "mcs", "Mellor-Crummey, Scott, ACM TOCS 9(1)"),
    at(1991, "mcs-stp", "Karlin, Li, Manasse, Owicki, SOSP 1991"),
    at(1993, "clh", "Craig, TR 93-02-02, University of Washington"),
    at(2003, "hbo", "Radovic, Hagersten, HPCA 2003"),
    at(2004, "futex", "Drepper, \"Futexes Are Tricky\" (year recalled)"),
    at(2006, "hclh", "Luchangco, Nussbaum, Shavit, Euro-Par 2006"),
    at(2012, "cohort-bo-mcs", "Dice, Marathe, Shavit, PPoPP 2012"),
    at(2012, "cohort-tkt-mcs", "Dice, Marathe, Shavit, PPoPP 2012"),
    at(2012, "dsm-synch", "Fatourou, Kallimanis, PPoPP 2012: combining, in a queue"),
    at(2012, "rcl", "Lozi, David, Thomas, Lawall, Muller, USENIX ATC 2012; a server each"),
    at(2013, "cohort-rw", "Calciu et al., PPoPP 2013"),
    at(2015, "qspinlock", "Long, Zijlstra, Linux 4.2"),
    at(2015, "hmcs", "Chabbi, Fagan, Mellor-Crummey, PPoPP 2015"),
    at(2016, "ahmcs", "Chabbi, Mellor-Crummey, PPoPP 2016"),
    at(2016, "linux-mutex", "Linux, with hand-off; mutexes since 2006, spinning since 2009"),
    at(2017, "malthusian", "Dice, EuroSys 2017; 004 has 2014"),
    at(2017, "cst-mutex", "Kashyap, Min, Kim, USENIX ATC 2017"),
    at(2017, "cst-rwlock", "Kashyap, Min, Kim, USENIX ATC 2017"),
    at(2019, "cna", "Dice, Kogan, EuroSys 2019"),
    at(2019, "linux-rwsem", "Long, \"rwsem rearchitecture\", Linux"),
    at(2019, "shfl-spin", "Kashyap et al., SOSP 2019; in this project's form"),
    at(2019, "shfl-mutex", "Kashyap et al., SOSP 2019; in this project's form"),
    at(2019, "shfl-rwlock", "Kashyap et al., SOSP 2019; in this project's form"),
];

/// Locks that `004_…`, "Lock's research efforts", also lists, and why they have no figure.
const NOT_HERE: [Published; 4] = [
    at(1962, "Dekker's algorithm", "not simulated: for two threads"),
    at(1965, "semaphore", "not simulated: it leaves open how one waits"),
    at(1974, "bakery", "not simulated: a word for each thread that there may be"),
    at(2011, "flat combining", "not simulated: dsm-synch has a queue for its list"),
];

/// Returns the locks of a family that have a year.
pub fn locks(family: Family) -> Vec<&'static SimLock> {
    let of_family = LOCKS.iter().filter(|lock| cases::family(lock) == family);
    of_family.filter(|lock| published(lock.name).is_some()).collect()
}

fn published(lock: &str) -> Option<&'static Published> {
    HISTORY.iter().find(|published| published.lock == lock)
}

/// Adds the year and its source to each row.
pub fn date(rows: &mut [Value]) {
    for row in rows {
        if let Some(published) = row["subject"].as_str().and_then(published) {
            row["year"] = published.year.into();
            row["year_source"] = published.source.into();
        }
    }
}

/// Returns the rows of a case by year; for exclusive locks, with those that are not simulated.
fn lines(rows: &[Value]) -> Vec<Bar> {
    let row = |lock: &str| rows.iter().find(|row| row["subject"] == lock);
    let simulated = HISTORY.iter().filter_map(|published| Some((published, row(published.lock)?)));
    let mut lines: Vec<_> = simulated.map(|(published, row)| line(published, row)).collect();
    if row("tas").is_some() {
        lines.extend(NOT_HERE.iter().map(|it| (it.year, it.lock, None, it.source)));
    }
    // Stable: those of the same year keep their order.
    lines.sort_by_key(|line| line.0);
    let bar = |(year, name, value, about): (u16, &str, _, &str)| Bar {
        group: year.to_string(),
        name: name.to_owned(),
        value,
        about: about.to_owned(),
    };
    lines.into_iter().map(bar).collect()
}

/// Returns a lock's year, name, work, and source, or why there is no figure.
fn line<'a>(published: &Published, row: &'a Value) -> (u16, &'a str, Option<f64>, &'a str) {
    let about = match row["not_here"].as_str() {
        Some(why) => why,
        None if row["failed"].is_string() => "does not end",
        None => published.source,
    };
    (published.year, published.lock, row["ops_per_s"].as_f64(), about)
}

/// Returns the text for people: a table for each case.
pub fn text(rows: &[Value], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one["case"] == next["case"]) {
        let mut table = Table::new(&[">year", "lock", ">operations/s", "from"]);
        for Bar { group, name, value, about } in lines(of_case) {
            table.row(vec![
                Cell::number(group),
                Cell::text(name),
                Cell::known(value, si),
                Cell::text(about),
            ]);
        }
        text += &format!("{}\n{}\n", heading(of_case), table.render(colour));
    }
    text
}

/// Returns the page: bars for each case.
pub fn page(about: &str, rows: &[Value]) -> String {
    let mut body = format!("<p>{}</p>\n", escape(about));
    for of_case in rows.chunk_by(|one, next| one["case"] == next["case"]) {
        body += &format!("<h2>{}</h2>\n", escape(&heading(of_case)));
        body += "<p class=faint>Operations a second, by the year of publication</p>\n";
        body += &drawing(&lines(of_case), si);
    }
    page::with_tables("antiphon sim: locks by year", &body, &text(rows, false))
}

fn heading(rows: &[Value]) -> String {
    let name = rows[0]["case"].as_str().unwrap_or_default();
    let about = cases::named(name).map_or("", |case| case.about);
    let threads = rows[0]["threads"].as_u64().unwrap_or_default();
    format!("{name}: {about}; {}", several(threads, "thread"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_year_is_of_a_lock_and_each_lock_has_one_year() {
        assert!(HISTORY.iter().all(|published| SimLock::named(published.lock).is_some()));
        assert!(HISTORY.is_sorted_by_key(|published| published.year));
        assert_eq!(locks(Family::Exclusive).len() + locks(Family::Shared).len(), HISTORY.len());
    }

    #[test]
    fn lines_are_by_year_with_what_is_not_simulated() {
        let row = |lock: &str| json!({ "subject": lock, "ops_per_s": 5.0, "case": "create" });
        let mut rows = [row("shfl-mutex"), row("tas"), row("mcs")];
        date(&mut rows);
        assert_eq!((&rows[1]["year"], &rows[0]["year"]), (&json!(1964), &json!(2019)));
        let names: Vec<_> = lines(&rows).into_iter().map(|bar| bar.name).collect();
        assert_eq!(names[..3], ["Dekker's algorithm", "tas", "semaphore"]);
        assert_eq!(names.last().map(String::as_str), Some("shfl-mutex"));
        assert_eq!(lines(&rows).iter().filter(|bar| bar.value.is_some()).count(), 3);
    }
}
