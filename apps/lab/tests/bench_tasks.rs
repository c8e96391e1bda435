//! `bench tasks`, in settings so small that only the keys of its rows are meaningful.

mod common;

use common::{FRAME, has_keys, json};
use serde_json::Value;

const SMALL: [&str; 8] =
    ["bench", "tasks", "--tasks", "5000", "--repetitions", "1", "--seconds", "0.001"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    report["rows"].as_array().expect("a list").clone()
}

#[test]
fn tasks_have_a_price() {
    let rows = rows(&["--case", "spawn_join", "--workers", "1-2", "--against", "rayon,smol,tokio"]);
    assert_eq!(rows.len(), 2 * 2 * 6);
    for row in &rows {
        has_keys(row, &["subject", "peer", "case", "load", "workers", "batch", "p25", "p75"]);
        has_keys(row, &["ns_per_op", "cpu_ns_per_op", "ratio", "ratio_low95", "others_cpus"]);
        assert!(row["ns_per_op"].as_f64().is_some_and(|ns| ns > 0.0), "{row:#}");
        assert_eq!(row["peer"], "rayon");
        assert_eq!(row["subject"] == "rayon", row["ratio"] == 1.0);
    }
}

#[test]
fn each_has_a_part_in_the_cases_that_it_has() {
    let rows = rows(&["--case", "fork_join,idle", "--workers", "2", "--against", "chili,rayon"]);
    let of = |case: &str| {
        let rows = rows.iter().filter(|row| row["case"] == case);
        rows.map(|row| row["subject"].as_str().expect("a name")).collect::<Vec<_>>()
    };
    assert_eq!(of("fork_join"), ["pool", "fibers", "chili", "rayon"]);
    assert_eq!(of("idle"), ["pool", "scope", "fibers", "rayon"]);
    for row in rows.iter().filter(|row| row["case"] == "idle") {
        assert_eq!((&row["peer"], &row["workers"]), (&"rayon".into(), &1.into()));
        assert!(row["bytes_per_task"].as_f64().is_some_and(|bytes| bytes > 8.0), "{row:#}");
    }
}

#[test]
fn tasks_that_yield_and_wait_have_a_price() {
    let peers = ["--workers", "1", "--against", "tokio,may,chili"];
    let rows = rows(&[&["--case", "yield,parked,channel"][..], &peers].concat());
    let of = |case: &str, figure: &str| {
        let rows = rows.iter().filter(|row| row["case"] == case);
        rows.filter(|row| row[figure].as_f64().is_some_and(|it| it > 1.0)).count()
    };
    assert_eq!(rows.len(), 3 + 3 + 4);
    assert_eq!(of("channel", "ns_per_op"), 4, "{rows:#?}");
    assert_eq!((of("yield", "ns_per_op"), of("parked", "bytes_per_task")), (3, 3), "{rows:#?}");
}

#[test]
fn messages_go_from_worker_to_worker_and_through_little_room() {
    let peers = ["--subject", "fibers", "--workers", "1,2", "--against", "tokio,boost,may"];
    let rows = rows(&[&["--case", "channel,across,spawn_join"][..], &peers].concat());
    let of = |case: &str, subject: &str| {
        let of = |row: &&Value| (&row["case"], &row["subject"]) == (&case.into(), &subject.into());
        rows.iter().filter(of).collect::<Vec<_>>()
    };
    // With capacity 128 and 1; `across` with two workers only, because its tasks are on different
    // ones.
    assert_eq!((of("channel", "fibers").len(), of("across", "fibers").len()), (4, 2));
    assert!(of("across", "tokio").iter().all(|row| row["workers"] == 2));
    let measured = |row: &&Value| row["ns_per_op"].as_f64().is_some_and(|ns| ns > 1.0);
    for (case, subject) in [("across", "fibers"), ("across", "tokio"), ("spawn_join", "may")] {
        assert!(of(case, subject).iter().all(measured), "{rows:#?}");
    }
    let missing = |row: &&Value| row["skipped"].as_str().is_some_and(|why| why.contains("boost"));
    let boost = of("channel", "boost");
    assert!(boost.iter().all(measured) || boost.iter().all(missing), "{rows:#?}");
}

#[test]
fn go_is_measured_where_it_is_and_skipped_where_not() {
    let wanted = ["--workers", "1", "--subject", "pool", "--against", "go"];
    let rows = rows(&[&["--case", "fork_join,idle"][..], &wanted].concat());
    for row in rows.iter().filter(|row| row["subject"] == "go") {
        match row.get("skipped") {
            Some(why) => assert!(why.as_str().is_some_and(|why| why.contains("go")), "{row:#}"),
            None if row["case"] == "idle" => has_keys(row, &["bytes_per_task"]),
            None => has_keys(row, &["ns_per_op", "cpu_ns_per_op"]),
        }
    }
    let without = common::antiphon(&[&SMALL[..], &["--case", "idle"], &wanted].concat())
        .env("PATH", "/nowhere")
        .output()
        .expect("the command");
    let text = String::from_utf8_lossy(&without.stdout);
    assert!(without.status.success() && text.contains("skipped: no go on the PATH"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    let refused = |arguments: &[&str], says: &str| {
        let said = common::refused(&[&SMALL[..2], arguments].concat());
        assert!(said.contains(says), "{said}");
    };
    refused(&["--case", "yields"], "fork_join");
    refused(&["--workers", "0"], "a number from 1");
    refused(&["--tasks", "7000000000"], "--tasks takes");
    refused(&["--against", "golang"], "go");
    refused(&["--seconds", "0"], "--seconds");
    refused(&["--case", "across", "--workers", "1"], "two workers");
    refused(&["--case", "fork_join", "--subject", "scope", "--against", ""], "fork_join");
}
