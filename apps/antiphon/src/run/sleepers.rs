//! Threads that sleep for a time, as the sampler sees them: how much, and how often.
//!
//! The kernel counts how often a thread leaves its CPU of its own accord, in the file `status`. In
//! a thread that mostly sleeps, that is about the number of its sleeps; so a sleep is at least as
//! long as the time divided by that number.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A thread that was seen sleeping for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sleeper {
    /// Its process.
    pub pid: u32,
    /// The kernel's id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Seconds for which the thread was sampled.
    pub seen_s: f64,
    /// Seconds of these in sleeps.
    pub slept_s: f64,
    /// Number of times that it left its CPU of its own accord, from the first sample in a sleep to
    /// the last.
    pub times: u64,
}

impl Sleeper {
    /// The mean length of a sleep, in seconds; at least that, because a thread may leave its CPU
    /// for other reasons.
    pub fn mean_s(&self) -> f64 {
        self.slept_s / self.times.max(1) as f64
    }

    /// The sleeper in a JSON report.
    pub fn json(&self) -> Value {
        json!({
            "pid": self.pid, "tid": self.tid, "name": self.name, "seen_s": self.seen_s,
            "slept_s": self.slept_s, "times": self.times,
        })
    }
}

/// The sleeps of a thread so far.
#[derive(Clone, Debug)]
pub struct Sleeps {
    name: String,
    slept: Duration,
    /// The kernel's count at the first sample in a sleep, and at the last.
    first: u64,
    last: u64,
}

impl Sleeps {
    /// Adds a sample: the thread whose files are at `path` is in a sleep, for `since` as far as is
    /// known. Begins the record if there is none.
    pub fn add(sleeps: &mut Option<Self>, path: &str, since: Duration) {
        let status = fs::read_to_string(format!("{path}/status")).unwrap_or_default();
        // A thread that has ended has no status.
        let Some((name, times)) = parsed(&status) else { return };
        match sleeps {
            Some(sleeps) => {
                sleeps.slept += since;
                sleeps.last = times;
            }
            None => {
                let name = name.to_owned();
                *sleeps = Some(Self { name, slept: Duration::ZERO, first: times, last: times });
            }
        }
    }

    /// The sleeper, which was sampled from `first` to `last`.
    pub fn ended(self, (pid, tid): (u32, u32), first: Instant, last: Instant) -> Sleeper {
        Sleeper {
            pid,
            tid,
            name: self.name,
            seen_s: (last - first).as_secs_f64(),
            slept_s: self.slept.as_secs_f64(),
            times: self.last.saturating_sub(self.first),
        }
    }
}

/// The name and the count of voluntary switches in the text of `status`.
fn parsed(status: &str) -> Option<(&str, u64)> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some((value("Name:")?, value("voluntary_ctxt_switches:")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_a_name_and_a_count() {
        let status = "Name:\ta b\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\n\
                      nonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parsed(status), Some(("a b", 12)));
        assert_eq!(parsed("Name:\tx\n"), None);
    }

    #[test]
    fn the_first_sample_begins_and_later_ones_add() {
        let mut sleeps = None;
        for _ in 0..3 {
            Sleeps::add(&mut sleeps, "/proc/thread-self", Duration::from_millis(10));
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        let end = begun + Duration::from_millis(40);
        let sleeper = sleeps.expect("a record").ended((1, 2), begun, end);
        assert!((sleeper.slept_s - 0.02).abs() < 1e-9 && sleeper.times >= 2, "{sleeper:?}");
        assert!(sleeper.mean_s() <= 0.01 && (sleeper.seen_s - 0.04).abs() < 1e-9, "{sleeper:?}");

        let mut none = None;
        Sleeps::add(&mut none, "/proc/nothing", Duration::ZERO);
        assert!(none.is_none());
    }
}
