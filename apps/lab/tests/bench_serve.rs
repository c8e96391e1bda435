//! `bench serve`, in settings so small that only the keys of its rows are meaningful.

mod common;

use common::{FRAME, has_keys, json};
use serde_json::Value;

const SMALL: [&str; 6] = ["bench", "serve", "--repetitions", "1", "--seconds", "0.2"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report, &["bytes", "clients", "seconds", "seed"]);
    report["rows"].as_array().expect("a list").clone()
}

fn is_positive(row: &Value, key: &str) -> bool {
    row[key].as_f64().is_some_and(|value| value > 0.0)
}

#[test]
fn servers_answer() {
    let rows = rows(&["--case", "echo,http", "--connections", "20", "--workers", "1-2"]);
    let here = |row: &&Value| row["subject"] != "go";
    assert_eq!(rows.iter().filter(here).count(), 2 * 2 * 4);
    for row in rows.iter().filter(here) {
        has_keys(row, &["subject", "peer", "case", "load", "connections", "rate", "workers"]);
        has_keys(row, &["ratio", "ratio_low95", "p99_ratio", "cpu_ratio", "p25", "others_cpus"]);
        for key in ["ops_per_s", "p50_ns", "p99_ns", "server_cpu_ns_per_op"] {
            assert!(is_positive(row, key), "{row:#}");
        }
        assert_eq!((&row["peer"], &row["rate"]), (&"tokio".into(), &Value::Null));
        assert_eq!(row["subject"] == "tokio", row["ratio"] == 1.0);
    }
}

/// Messages longer than a socket's buffers come back while they are still being sent.
#[test]
fn long_messages_are_echoed() {
    let rows = rows(&["--bytes", "1000000", "--connections", "3", "--clients", "2"]);
    for row in rows.iter().filter(|row| row["subject"] != "go") {
        assert!(is_positive(row, "ops_per_s"), "{row:#}");
    }
}

#[test]
fn a_rate_is_kept() {
    let arguments = ["--rate", "2000", "--connections", "8", "--clients", "2"];
    let row = &rows(&[&arguments[..], &["--against", "", "--workers", "1"]].concat())[0];
    assert_eq!((&row["rate"], &row["peer"]), (&2000.into(), &Value::Null));
    // No more than were due, whatever the load of the machine.
    assert!(row["ops_per_s"].as_f64().is_some_and(|rate| rate > 0.0 && rate <= 2010.0), "{row:#}");
}

/// Fibers are served by io_uring, if the command was built with it and the kernel permits it.
#[test]
fn fibers_are_served_by_rings_or_skipped() {
    let wanted = ["--subject", "fibers,fibers-uring", "--against", "", "--connections", "4"];
    let rows = rows(&wanted);
    assert!(is_positive(&rows[0], "ops_per_s"), "{:#}", rows[0]);
    let by_ring = &rows[1];
    assert_eq!(by_ring["subject"], "fibers-uring");
    match by_ring.get("skipped") {
        Some(why) => assert!(why.as_str().is_some_and(|why| why.contains("no rings")), "{why}"),
        None => assert!(is_positive(by_ring, "ops_per_s"), "{by_ring:#}"),
    }
}

#[test]
fn go_serves_where_it_is_and_is_skipped_where_not() {
    let wanted = ["--against", "go", "--connections", "4", "--case", "echo,http"];
    let rows = rows(&wanted);
    for row in rows.iter().filter(|row| row["subject"] == "go") {
        match row.get("skipped") {
            Some(why) => assert!(why.as_str().is_some_and(|why| why.contains("go")), "{row:#}"),
            None => assert!(is_positive(row, "ops_per_s"), "{row:#}"),
        }
    }
    let without = common::antiphon(&[&SMALL[..], &wanted].concat())
        .env("PATH", "/nowhere")
        .output()
        .expect("the command");
    let text = String::from_utf8_lossy(&without.stdout);
    assert!(without.status.success() && text.contains("skipped: no go on the PATH"), "{text}");
    assert!(text.contains("Echo of 64 bytes: 4 connections; 2 workers, load idle"), "{text}");
}

#[test]
fn pages_are_asked_for_by_wrk_where_it_is() {
    let wanted = ["--case", "http", "--loader", "wrk", "--connections", "4"];
    let wanted = [&wanted[..], &["--against", "tokio", "--seconds", "1"]].concat();
    if std::process::Command::new("wrk").arg("--version").output().is_err() {
        println!("skipped: no wrk (apt install wrk)");
    } else {
        let report = json(&[&SMALL[..4], &wanted, &["--json"]].concat());
        assert_eq!(report["loader"], "wrk");
        for row in report["rows"].as_array().expect("a list") {
            for key in ["ops_per_s", "p50_ns", "p99_ns", "server_cpu_ns_per_op", "ratio"] {
                assert!(is_positive(row, key), "{row:#}");
            }
        }
    }
    let without = common::antiphon(&[&SMALL[..4], &wanted].concat())
        .env("PATH", "/nowhere")
        .output()
        .expect("the command");
    let said = String::from_utf8_lossy(&without.stderr);
    assert_eq!(without.status.code(), Some(69), "{said}");
    assert!(said.contains("apt install wrk"), "{said}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    let refused = |arguments: &[&str], says: &str| {
        let said = common::refused(&[&SMALL[..2], arguments].concat());
        assert!(said.contains(says), "{said}");
    };
    refused(&["--case", "ftp"], "echo, http");
    refused(&["--rate", "fast"], "requests a second");
    refused(&["--connections", "0"], "a number from 1");
    refused(&["--bytes", "0"], "--bytes takes");
    refused(&["--clients", "65"], "--clients takes");
    refused(&["--against", "golang"], "go");
    refused(&["--seconds", "0"], "--seconds");
    refused(&["--loader", "ab"], "own, wrk");
    let by_wrk = |more: &[&str], says: &str| refused(&[&["--loader", "wrk"], more].concat(), says);
    by_wrk(&[], "--case http");
    by_wrk(&["--case", "http", "--rate", "100"], "no rate");
    by_wrk(&["--case", "http", "--seconds", "0.5"], "whole seconds");
    by_wrk(&["--case", "http", "--seconds", "1", "--clients", "200"], "--clients takes");
    by_wrk(
        &["--case", "http", "--seconds", "1", "--connections", "1", "--clients", "2"],
        "for each of its threads",
    );
}
