//! `bench locks`, in settings so small that only the keys of its rows are meaningful.

mod common;

use std::collections::BTreeSet;

use common::{FRAME, has_keys, json, output, rows};
use serde_json::Value;

const SMALL: [&str; 6] = ["bench", "locks", "--seconds", "0.02", "--repetitions", "2"];

fn bench(arguments: &[&str]) -> Value {
    json(&[&SMALL, arguments, &["--json"]].concat())
}

#[test]
fn contended_rows_have_their_figures() {
    let report = bench(&[
        "--case",
        "short,5us",
        "--threads",
        "2,3",
        "--subject",
        "shfl-mutex,shfl-spin",
        "--against",
        "glibc,std",
        "--load",
        "idle,noisy",
    ]);
    has_keys(&report, &FRAME);
    assert_eq!(rows(&report).len(), 2 * 2 * 2 * 4);
    for row in rows(&report) {
        has_keys(row, &["subject", "peer", "case", "threads", "load", "p25", "p75", "ratio"]);
        has_keys(row, &["ops_per_s", "jain", "jain_10ms", "switches_per_kop", "cpu_ns_per_op"]);
        has_keys(row, &["longest_wait_ns"]);
        has_keys(&row["acquire_ns"], &["p50", "p99", "p999", "max"]);
        has_keys(&row["wait_ns_at_random_instant"], &["p50", "p99"]);
        // On a busy machine, no thread may get a turn in so short a time.
        assert!(row["ops_per_s"].as_f64().is_some_and(|ops| ops >= 0.0), "{row:#}");
        let (p25, p75) = (row["p25"].as_f64(), row["p75"].as_f64());
        assert!(p25 <= p75 && p25.is_some());
        assert_eq!(row["peer"], "glibc");
        if row["subject"] == "glibc" && !row["ratio"].is_null() {
            assert_eq!(row["ratio"], 1.0);
        }
    }
    let summary = report["summary"].as_array().expect("a list");
    for one in summary {
        has_keys(one, &["subject", "peer", "load", "cells", "geometric_mean", "least"]);
        assert!(one["cells"].as_u64() <= Some(4));
    }
}

#[test]
fn uncontended_rows_have_nanoseconds() {
    let report = bench(&["--case", "uncontended", "--subject", "shfl-mutex,ticket"]);
    let mut cases = BTreeSet::new();
    for row in rows(&report) {
        cases.insert(row["case"].as_str().expect("a name"));
        if row.get("skipped").is_none() {
            assert!(row["ns_per_op"].as_f64().is_some_and(|ns| ns > 0.0), "{row:#}");
            assert!(row.get("ops_per_s").is_none());
        } else {
            // Peers from libraries that may not be installed say how to get them.
            assert!(row["skipped"].as_str().is_some_and(|how| how.contains("apt install")));
        }
    }
    assert_eq!(cases, BTreeSet::from(["uncontended", "uncontended-alone"]));
}

#[test]
fn a_given_number_of_increments_has_wall_user_and_system_time() {
    let report = bench(&["--case", "justine", "--subject", "", "--against", "glibc,std,nsync"]);
    assert_eq!(rows(&report).len(), 3);
    let cpus = std::thread::available_parallelism().expect("a number").get() as f64;
    for row in rows(&report) {
        has_keys(row, &["subject", "peer", "case", "threads", "load"]);
        assert_eq!((&row["case"], &row["threads"]), (&"justine".into(), &30.into()));
        if row["subject"] == "nsync" && row.get("skipped").is_some() {
            assert!(row["skipped"].as_str().is_some_and(|how| how.contains("apt install")));
            continue;
        }
        has_keys(row, &["p25", "p75", "ratio", "ratio_best", "ratio_cpu"]);
        let figure = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row:#}"));
        assert!(figure("wall_ns") > 0.0 && figure("p25") <= figure("p75"), "{row:#}");
        // Three million pairs take some CPU time, and no more than is available, within a tick.
        let cpu_ns = figure("user_ns") + figure("system_ns");
        assert!(cpu_ns > 0.0 && cpu_ns < 1.1 * cpus * figure("p75") + 1e7, "{row:#}");
        if row["subject"] == "glibc" {
            assert_eq!((figure("ratio"), figure("ratio_cpu")), (1.0, 1.0));
        }
    }
    assert!(report["summary"].as_array().is_some_and(Vec::is_empty), "no mean of one cell");
}

#[test]
fn a_table_names_each_lock_and_its_units() {
    let output = output(&[&SMALL[..], &["--case", "short", "--threads", "2"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in ["shfl-mutex", "glibc-adaptive", "parking_lot", "ops/s", "longest", "Geometric"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}
