//! `locks`: names, sizes, marks and tables.

use crate::common::{FRAME, has_keys, json, output};
use serde_json::Value;

fn lock<'a>(report: &'a Value, kind: &str, name: &str) -> &'a Value {
    let locks = report["locks"].as_array().expect("a list");
    let mine = |lock: &&Value| lock["kind"] == kind && lock["name"] == name;
    locks.iter().find(mine).unwrap_or_else(|| panic!("no {kind} {name}"))
}

const ROLES: [&str; 4] = ["low", "medium", "high", "oversubscribed"];

#[test]
fn each_lock_has_its_name_and_size() {
    let report = json(&["locks", "--json"]);
    has_keys(&report, &FRAME);
    has_keys(&report, &["rules", "measured_on", "measured_by", "measured", "simulated"]);
    for lock in report["locks"].as_array().expect("a list") {
        has_keys(lock, &["name", "kind", "bytes", "context_bytes", "thread_context_bytes"]);
        has_keys(lock, &["api_change", "waits", "order", "timed"]);
        has_keys(lock, &ROLES);
        assert_eq!(lock.get("numa").is_some(), lock["ours"] == true, "{lock:#}");
    }
    let bytes = |kind, name| lock(&report, kind, name)["bytes"].as_u64();
    assert_eq!((bytes("mutex", "shfl-mutex"), bytes("mutex", "glibc")), (Some(8), Some(40)));
    assert_eq!((bytes("rwlock", "shfl-rwlock"), bytes("rwlock", "glibc")), (Some(16), Some(56)));
}

#[test]
fn marks_are_of_the_rows_that_are_printed_beside_them() {
    let report = json(&["locks", "--json"]);
    let measured = report["measured"].as_array().expect("a list");
    let mutex = lock(&report, "mutex", "shfl-mutex");
    let row = measured.iter().find(|row| {
        row["family"] == "mutex" && row["subject"] == "shfl-mutex" && row["role"] == "medium"
    });
    let ratio = row.expect("a row")["ratio_best"].as_f64().expect("a ratio");
    let share = mutex["medium"]["share"].as_f64().expect("a share");
    assert!((share - ratio).abs() < 1e-9, "{share} {ratio}");
    assert_eq!(mutex["numa"], serde_json::json!({ "model": true, "aware": true }));
    for row in report["simulated"].as_array().expect("a list") {
        assert_eq!(row["model"], true);
        has_keys(row, &["subject", "threads", "remote_transfers_per_op", "stays_on_socket"]);
        has_keys(row, &["shuffle_steps_per_op", "shuffled_while_held"]);
        has_keys(&row["atomics_per_op"], &["owner", "others"]);
    }
}

#[test]
fn the_table_has_its_rules_and_no_colour_in_a_pipe() {
    let output = output(&["locks"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("shfl-mutex") && !text.contains('\x1b'));
    for word in ["oversubscribed", "NUMA (simulated)", "Marks: ✓ from 0.9", "Measured on: "] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    for word in ["shfl-rwlock+group-writers", "mcs-stp", "API change", "atomics, owner"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}
