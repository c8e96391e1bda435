//! Published measurements on a machine that is also simulated, to be compared with our figures.
//! Nothing is calibrated by them, except that the length of a call of `lock2` is from its figure
//! for one thread.
//!
//! The same letter has LevelDB's `readrandom`. It is left out: the spin lock under test is the
//! futex chain's there, below a mutex whose waiters sleep, which no case here has.

use serde_json::{Value, json};

/// Measured operations per second of a lock, by number of threads.
pub struct Published {
    pub machine: &'static str,
    pub case: &'static str,
    /// Our name of the published lock.
    pub subject: &'static str,
    /// Numbers of threads, with millions of operations per second.
    pub points: [(u64, f64); 10],
}

/// Source of all these measurements.
pub const SOURCE: &str = "cover letter of the CNA patches for Linux, version 11: 4 x E7-8895 v3, \
                          25 runs; stock is qspinlock, an MCS queue";

/// All published measurements.
pub const PUBLISHED: [Published; 2] = [
    Published {
        machine: "e7-8895v3-4s",
        case: "lock2",
        subject: "qspinlock",
        points: [
            (1, 1.600),
            (2, 2.792),
            (4, 5.395),
            (8, 4.285),
            (16, 4.168),
            (32, 2.450),
            (36, 2.403),
            (72, 1.842),
            (108, 1.888),
            (142, 1.806),
        ],
    },
    Published {
        machine: "e7-8895v3-4s",
        case: "lock2",
        subject: "cna",
        points: [
            (1, 1.614),
            (2, 2.813),
            (4, 5.210),
            (8, 4.125),
            (16, 3.960),
            (32, 3.999),
            (36, 3.922),
            (72, 3.913),
            (108, 3.937),
            (142, 3.894),
        ],
    },
];

/// Returns the published curves of a machine and a case.
pub fn of(machine: &str, case: &str) -> impl Iterator<Item = &'static Published> {
    PUBLISHED.iter().filter(move |known| known.machine == machine && known.case == case)
}

/// Returns the published rows that are comparable with `rows`, for scripts. They are measurements,
/// so they are not marked as models.
pub fn rows(machine: &str, rows: &[Value]) -> Vec<Value> {
    let mut cases: Vec<_> = rows.iter().filter_map(|row| row["case"].as_str()).collect();
    cases.dedup();
    let known = cases.into_iter().flat_map(|case| of(machine, case));
    known
        .flat_map(|known| {
            known.points.map(|(threads, millions)| {
                json!({
                    "subject": known.subject, "case": known.case, "threads": threads,
                    "ops_per_s": millions * 1e6, "source": SOURCE,
                })
            })
        })
        .collect()
}
