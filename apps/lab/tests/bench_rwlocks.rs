//! `bench rwlocks`, in settings so small that only the keys of its rows are meaningful.

mod common;

use std::collections::BTreeMap;

use common::{FRAME, has_keys, json, output, rows};
use serde_json::Value;

const SMALL: [&str; 6] = ["bench", "rwlocks", "--seconds", "0.02", "--repetitions", "2"];

fn bench(arguments: &[&str]) -> Value {
    json(&[&SMALL, arguments, &["--json"]].concat())
}

fn has_waits(side: &Value) {
    has_keys(side, &["ops_per_s", "longest_wait_ns"]);
    has_keys(&side["acquire_ns"], &["p50", "p99", "p999", "max"]);
    has_keys(&side["wait_ns_at_random_instant"], &["p50", "p99"]);
}

#[test]
fn mixed_rows_tell_readers_from_writers() {
    let report = bench(&[
        "--case",
        "short,5us",
        "--reads",
        "100,50,0",
        "--threads",
        "1,3",
        "--subject",
        "shfl-rwlock",
        "--against",
        "glibc,parking_lot",
    ]);
    has_keys(&report, &FRAME);
    assert_eq!(rows(&report).len(), 2 * 3 * 2 * 3);
    for row in rows(&report) {
        has_keys(row, &["subject", "peer", "case", "threads", "load", "p25", "p75", "ratio"]);
        has_keys(row, &["jain", "jain_10ms", "switches_per_kop", "cpu_ns_per_op"]);
        has_waits(row);
        let reads = row["reads"].as_u64().expect("a share");
        for (side, there) in [("readers", reads > 0), ("writers", reads < 100)] {
            assert_eq!(row.get(side).is_some(), there, "{row:#}");
            row.get(side).into_iter().for_each(has_waits);
        }
        let work = |side: &Value| side["ops_per_s"].as_f64().unwrap_or(0.0);
        // Each is a separate median; with one side only, there is nothing to add.
        if reads == 100 {
            assert_eq!(work(&row["readers"]), work(row), "{row:#}");
        }
    }
    let summary = report["summary"].as_array().expect("a list");
    assert_eq!(summary.len(), 1);
    has_keys(&summary[0], &["geometric_mean", "geometric_mean_best", "least", "least_at"]);
    assert_eq!(summary[0]["best_of"], serde_json::json!(["glibc", "std", "parking_lot"]));
    assert!(summary[0]["cells"].as_u64() <= Some(12));
    let waits = report["waits"].as_array().expect("a list");
    assert!(waits.iter().any(|rule| rule["rule"] == "longest_wait_ns"), "{waits:?}");
    for rule in waits {
        has_keys(rule, &["subject", "peer", "load", "rule", "cells", "kept", "missed"]);
        assert!(rule["cells"].as_u64() <= Some(12));
    }
}

#[test]
fn uncontended_rows_are_of_reads_and_of_writes() {
    let report = bench(&["--case", "uncontended"]);
    let mut cases = BTreeMap::new();
    for row in rows(&report) {
        assert!(row["ns_per_op"].as_f64().is_some_and(|ns| ns > 0.0), "{row:#}");
        *cases.entry(row["case"].as_str().expect("a name")).or_insert(0) += 1;
    }
    assert_eq!(cases, BTreeMap::from([("uncontended-read", 6), ("uncontended-write", 6)]));
}

#[test]
fn a_writer_beside_readers_who_never_leave_has_figures_of_its_own_and_no_part_in_the_mean() {
    let report = bench(&["--case", "continuous", "--threads", "1,2"]);
    assert_eq!(rows(&report).len(), 6, "one thread can't be both");
    for row in rows(&report) {
        has_keys(row, &["readers", "worst_write_wait_ns"]);
        assert!(row.get("reads").is_none());
    }
    assert_eq!(report["summary"], serde_json::json!([]));
}

#[test]
fn tables_name_each_lock_and_whose_waits_they_are() {
    let wanted = ["--case", "short,continuous", "--reads", "90", "--threads", "2"];
    let output = output(&[&SMALL[..], &wanted].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in ["shfl-rwlock+recursive", "glibc-writer", "90 % of them reads", "Geometric"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    for word in ["read p50*", "write p50*", "writes/s", "longest of all"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}
