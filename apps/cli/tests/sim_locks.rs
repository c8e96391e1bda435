//! `sim locks` and `sim rwlocks`.

mod common;

use common::{FRAME, has_keys, json, output, stderr};
use serde_json::Value;

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().expect("rows")
}

/// What is said of bad input: one line, and 2.
fn refused(arguments: &[&str]) -> String {
    let output = output(&[&["sim", "locks"], arguments].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

const FIGURES: [&str; 16] = [
    "model",
    "machine",
    "arbitration",
    "seed",
    "subject",
    "case",
    "threads",
    "ops_per_s",
    "jain",
    "busier_half",
    "remote_transfers_per_op",
    "parks",
    "wakes",
    "handover_ns",
    "longest_wait_ns",
    "lock_bytes",
];

#[test]
fn every_row_says_that_it_is_a_model_and_where_it_is_from() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--case", "lock2,hash", "--ms", "0.05"];
    let report = json(&[&command[..], &["--threads", "1,4", "--json"]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "ms", "arbitration"]);
    assert!(report["sim"]["ops"].as_u64().is_some_and(|ops| ops > 1_000));
    // Ten locks, two cases, two numbers of threads.
    assert_eq!(rows(&report).len(), 40);
    for row in rows(&report) {
        has_keys(row, &FIGURES);
        assert_eq!((&row["model"], &row["machine"]), (&true.into(), &"xeon-2s".into()));
        assert!(row["ops_per_s"].as_f64().is_some_and(|figure| figure > 0.0), "{row}");
    }
}

/// Two processes, whose memory is elsewhere each time, and as many host threads as there are CPUs.
#[test]
fn the_same_command_prints_the_same() {
    let command = ["sim", "rwlocks", "--machine", "xeon-2s", "--case", "all", "--ms", "0.05"];
    let command = [&command[..], &["--threads", "1,30", "--seed", "3"]].concat();
    let (one, other) = (output(&command), output(&command));
    assert!(one.status.success(), "{}", stderr(&one));
    assert_eq!(one.stdout, other.stdout);
    assert!(!String::from_utf8_lossy(&one.stdout).contains("stuck"));
    assert!(stderr(&one).contains("simulated memory operations in"), "{}", stderr(&one));
    let command = [&command[..], &["--json"]].concat();
    let (one, other) = (json(&command), json(&command));
    assert_eq!((&one["rows"], &one["sim"]), (&other["rows"], &other["sim"]));
    assert!(rows(&one).iter().all(|row| row["trace"].is_string()));
}

#[test]
fn a_table_says_that_it_is_no_measurement() {
    let command = ["sim", "locks", "--machine", "pe-laptop", "--ms", "0.05", "--subject", "mcs"];
    let output = output(&command);
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["a model, not a measurement", "pe-laptop", "0.05 ms", "create:", "mcs", "Jain"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn bad_arguments_are_one_line_that_says_what_would_be_right() {
    assert!(refused(&["--machine", "8s"]).contains("there are 8s-192c"));
    assert!(refused(&["--subject", "fast"]).contains("shfl-mutex"));
    assert!(refused(&["--subject", "shfl-rwlock"]).contains("no lock 'shfl-rwlock'"));
    assert!(refused(&["--case", "enumerate"]).contains("create, lock1"));
    assert!(refused(&["--case", ","]).contains("create, lock1"));
    assert!(refused(&["--threads", "0"]).contains("from 1 to"));
    assert!(refused(&["--ms", "-1"]).contains("such as 5"));
    assert!(refused(&["--arbitration", "near"]).contains("fifo"));
    assert!(refused(&["--arbitration", "lifo"]).contains("there is: fifo"));
}
