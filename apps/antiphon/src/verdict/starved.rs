//! A writer that waits while readers take a readers-writer lock again and again.
//!
//! **Threshold**: a wait to write of a tenth of a second and a fifth of the run, while readers held
//! the lock for nine tenths of the run and took it a hundred times or more. Only a profile knows.
//!
//! **Reason**: POSIX's default lock lets readers pass a waiting writer, so that a reader may read
//! again. If their sections overlap, the lock is never free, and the writer waits for ever.

use antiphon_report::table::{count, duration};

use super::evidence::{Class, ratio};
use super::{Evidence, Finding};
use crate::run::summary::{LockRow, READ, Stuck};

/// The least wait to write, in nanoseconds and as a share of the run.
const LEAST_NS: u64 = 100_000_000;
const LEAST_PART: f64 = 0.2;
/// The least number of acquisitions to read, and the least share of the run in which some reader
/// held the lock, if their holds did not overlap.
const LEAST_READS: u64 = 100;
const LEAST_HELD: f64 = 0.9;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let starved = |class: &&Class<'_>| is_starved(evidence, &class.rows);
    let Some(class) = evidence.classes.iter().find(starved) else { return Vec::new() };
    let (wait_ns, writer) = longest(&class.rows);
    let says = format!(
        "A writer waited for {} at {} for {}, while readers took it {} times: they pass a writer \
         that waits.",
        class.name(),
        writer.map_or_else(String::new, |row| row.site.label()),
        duration(wait_ns as f64),
        count(reads(&class.rows)),
    );
    let advice = "Let writers go first: PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, if no thread \
                  reads it twice at a time; std::shared_mutex has no such choice. Or read it for \
                  shorter.";
    let weight = ratio(wait_ns as f64 / 1e9, evidence.wall_s);
    vec![Finding { rule: "starvation", says, advice: advice.to_owned(), weight }]
}

/// Returns whether a thread that waits to the end waits because of readers: it is not stuck.
pub fn waits_for_readers(evidence: &Evidence<'_>, stuck: &Stuck) -> bool {
    let of_lock = |row: &&LockRow| (row.pid, row.address) == (stuck.pid, stuck.address);
    let rows: Vec<_> = evidence.report.locks.iter().filter(of_lock).collect();
    is_starved(evidence, &rows)
}

/// Returns whether a writer waits for long because readers pass it.
pub fn is_starved(evidence: &Evidence<'_>, rows: &[&LockRow]) -> bool {
    let (wait_ns, _) = longest(rows);
    let held_ns: u64 = readers(rows).map(|row| row.hold.sum_ns).sum();
    let part = |ns: u64| ratio(ns as f64 / 1e9, evidence.wall_s);
    wait_ns >= LEAST_NS
        && part(wait_ns) >= LEAST_PART
        && part(held_ns) >= LEAST_HELD
        && reads(rows) >= LEAST_READS
}

fn readers<'a>(rows: &[&'a LockRow]) -> impl Iterator<Item = &'a LockRow> {
    rows.iter().copied().filter(|row| row.kind == READ)
}

fn reads(rows: &[&LockRow]) -> u64 {
    readers(rows).map(|row| row.acquisitions).sum()
}

/// The longest wait to write, and its row.
fn longest<'a>(rows: &[&'a LockRow]) -> (u64, Option<&'a LockRow>) {
    let writers = rows.iter().copied().filter(|row| row.kind == "wrlock");
    let row = writers.max_by_key(|row| row.wait.max_ns);
    (row.map_or(0, |row| row.wait.max_ns), row)
}
