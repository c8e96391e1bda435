//! Computes the marks of the table from figures, by rules that the table prints.
//!
//! A mark depends only on its rows: a user that measures again gets the marks of that machine.

use serde_json::Value;

use antiphon_report::stats::geometric_mean;

/// The work of a lock under some conditions, as a share of that of the best common lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark(pub f64);

const GOOD: f64 = 0.9;
const FAIR: f64 = 0.5;
/// A lock that serves in order of arrival, and whose waiters spin on their own lines: the savings
/// of NUMA awareness are measured against its transfers.
const IN_ORDER: &str = "mcs";
/// The greatest share of that lock's transfers between sockets that a NUMA-aware lock may have.
const NUMA: f64 = 0.5;

/// The columns, named after the conditions under which their rows were measured.
pub const ROLES: [&str; 4] = ["low", "medium", "high", "oversubscribed"];

/// The rule that the table prints at its end.
pub const RULE: &str = "\
A number is the work that a lock does as a share of what the best of glibc, std and parking_lot
does in the same run (glibc-adaptive too, among mutexes); of several cells, their geometric mean.
  low             one thread at the lock, another one alive
  medium          as many threads as CPUs, short critical sections
  high            the same, critical sections of 5 µs: there is always a waiter
  oversubscribed  eight times as many threads as CPUs, both kinds of sections
Readers-writer locks: 90 % of the sections only read; low is reads and writes.
Marks: ✓ from 0.9, ○ from 0.5, ✗ below, or if the run did not end.
";

/// The rule of the simulated columns.
pub const RULE_SIMULATED: &str = "\
Simulated (a model, not a measurement): 8s-192c, eight sockets of 24 cores; 192 threads.
  NUMA            ✓ if an operation moves at most half as many lines from socket to socket as
                  with mcs, which serves in order of arrival
  on socket       acquisitions whose owner is on the last owner's socket; by chance, 1 of 8
  atomics         read-modify-writes for an operation: of the owner, and of all others; the one
                  that acquires is among the others. The node of mcs, mcs-stp and clh is taken
                  and given back by some. As many threads as cores spin: so shfl-spin takes the
                  machine for crowded, and barges
  shuffled        waiters that shufflers look at for an operation; the share of those looks while
                  a thread had the lock
";

impl Mark {
    /// The sign of the mark in the table.
    pub fn sign(self) -> &'static str {
        match self.0 {
            share if share >= GOOD => "✓",
            share if share >= FAIR => "○",
            _ => "✗",
        }
    }

    /// The word for the mark in JSON.
    pub fn word(self) -> &'static str {
        match self.0 {
            share if share >= GOOD => "good",
            share if share >= FAIR => "fair",
            _ => "poor",
        }
    }
}

/// The mark of a lock of `family` in a role. `None` if it was not measured.
pub fn of(measured: &[Value], family: &str, name: &str, role: &str) -> Option<Mark> {
    let mine =
        |row: &&Value| row["family"] == family && row["subject"] == name && row["role"] == role;
    let shares: Vec<f64> = measured.iter().filter(mine).filter_map(share).collect();
    let failed = shares.contains(&0.0);
    if failed { Some(Mark(0.0)) } else { geometric_mean(&shares).map(Mark) }
}

/// The share of one row: above 1 is better. 0 for a lock whose run did not end; `None` for a lock
/// that this machine does not support.
fn share(row: &Value) -> Option<f64> {
    if row.get("failed").is_some() {
        return Some(0.0);
    }
    let ratio = row["ratio_best"].as_f64()?;
    Some(if row.get("ns_per_op").is_some() { 1.0 / ratio } else { ratio })
}

/// Returns whether the simulated lock saves transfers between sockets. `None` if it was not
/// simulated.
pub fn is_numa_aware(simulated: &[Value], name: &str) -> Option<bool> {
    let transfers = |name| simulated_row(simulated, name)?["remote_transfers_per_op"].as_f64();
    Some(transfers(name)? <= NUMA * transfers(IN_ORDER)?)
}

/// The row of a lock on the whole simulated machine.
pub fn simulated_row<'a>(simulated: &'a [Value], name: &str) -> Option<&'a Value> {
    let whole = super::simulated::THREADS.iter().max();
    simulated.iter().find(|row| {
        let threads = row["threads"].as_u64().map(|threads| threads as usize);
        row["subject"] == name && threads.as_ref() == whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(role: &str, more: Value) -> Value {
        let mut row = json!({ "family": "mutex", "subject": "x", "role": role });
        for (key, value) in more.as_object().into_iter().flatten() {
            row[key] = value.clone();
        }
        row
    }

    #[test]
    fn a_mark_is_what_its_rows_say() {
        let rows = [
            row("low", json!({ "ns_per_op": 8.0, "ratio_best": 0.8 })),
            row("high", json!({ "ops_per_s": 1.0, "ratio_best": 0.4 })),
            row("oversubscribed", json!({ "ops_per_s": 1.0, "ratio_best": 0.25 })),
            row("oversubscribed", json!({ "ops_per_s": 1.0, "ratio_best": 1.0 })),
        ];
        let mark = |role| of(&rows, "mutex", "x", role);
        // Fewer nanoseconds mean more work.
        assert_eq!(mark("low"), Some(Mark(1.25)));
        assert_eq!(mark("high").map(Mark::sign), Some("✗"));
        assert_eq!(mark("oversubscribed").map(|mark| (mark.0, mark.word())), Some((0.5, "fair")));
        assert_eq!(mark("medium"), None);
        assert_eq!(of(&rows, "rwlock", "x", "low"), None);
    }

    #[test]
    fn no_end_is_the_worst_and_not_there_is_nothing() {
        let rows = [
            row("low", json!({ "failed": "no end" })),
            row("low", json!({ "ops_per_s": 1.0, "ratio_best": 2.0 })),
            row("high", json!({ "skipped": "not there" })),
        ];
        assert_eq!(of(&rows, "mutex", "x", "low"), Some(Mark(0.0)));
        assert_eq!(of(&rows, "mutex", "x", "high"), None);
    }

    #[test]
    fn who_spares_half_of_the_transfers_is_numa_aware() {
        let row = |subject: &str, threads: u32, transfers: f64| {
            let key = "remote_transfers_per_op";
            json!({ "subject": subject, "threads": threads, key: transfers })
        };
        let mut rows = vec![row("a", 24, 9.0), row("a", 192, 2.0), row("b", 192, 2.1)];
        assert_eq!(is_numa_aware(&rows, "a"), None, "nothing to compare with");
        rows.push(row("mcs", 192, 4.0));
        assert_eq!(is_numa_aware(&rows, "a"), Some(true));
        assert_eq!(is_numa_aware(&rows, "b"), Some(false));
        assert_eq!(is_numa_aware(&rows, "c"), None);
    }
}
