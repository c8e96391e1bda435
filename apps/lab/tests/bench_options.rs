//! `bench options`, in settings so small that only the keys of its rows are meaningful.
//!
//! A repetition that loses a chain, ends one twice, or finds another answer than a single thread
//! ends with exit code 1: so each run here that succeeds has shown that it did none of this.

mod common;

use common::{FRAME, has_keys, json, output, refused, stderr};
use serde_json::Value;

const SMALL: [&str; 8] =
    ["bench", "options", "--repetitions", "1", "--options", "120", "--long-depth", "200"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    report["rows"].as_array().expect("a list").clone()
}

fn has_figures(row: &Value) {
    has_keys(row, &["subject", "policy", "peer", "case", "kernel", "load", "workers", "spawners"]);
    has_keys(row, &["depth", "long_depth", "long_share", "p25", "p75", "cpu_us_per_task"]);
    has_keys(row, &["ratio", "ratio_p50", "ratio_p99", "ratio_cpu", "steal_attempts"]);
    let of = |name: &str| row["latency_ns"][name].as_f64().expect("a number");
    let ordered = ["p20", "p50", "p99", "p999", "p9999"].map(of);
    assert!(ordered.is_sorted() && ordered[4] <= of("max") * 1.04 && of("mean") > 0.0, "{row:#}");
    assert!(row["tasks_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
}

#[test]
fn every_peer_in_rust_finds_the_answers() {
    let peers = "loop,tokio,smol,rayon,rayon-fifo";
    let kernels = ["--kernel", "binomial,smith-waterman", "--strike", "100"];
    let rows = rows(&[&kernels[..], &["--subject", "lifo/shallow", "--against", peers]].concat());
    assert_eq!(rows.len(), 2 * 6);
    rows.iter().for_each(has_figures);
    assert_eq!(rows.iter().filter(|row| row["kernel"] == "smith-waterman").count(), 6);
    assert!(rows.iter().all(|row| row["peer"] == "loop" && row["case"] == "closed"));
}

#[test]
fn policies_find_the_answers_with_room_and_without() {
    let names = "fifo/steal-half,lifo/steal-one,lifo-slot/steal-half,adaptive/lazy,staged,edf,\
                 levels,lifo/steal-half+stages,edf+stages,staged+stages";
    for room in ["4", "100000"] {
        let few = ["--capacity", room, "--subject", names, "--against", "", "--long-share", "0.1"];
        let rows = rows(&[&few[..], &["--workers", "1,3", "--spawners", "2"]].concat());
        assert_eq!(rows.len(), 2 * 10);
        rows.iter().for_each(has_figures);
    }
}

#[test]
fn chains_of_the_open_case_begin_when_they_are_due() {
    let few = ["--subject", "fifo/steal-half", "--against", "loop", "--case", "open"];
    let rows = rows(&[&few[..], &["--rate", "2000", "--long-share", "0"]].concat());
    for row in &rows {
        has_figures(row);
        // The last of 120 is due 59.5 ms after the first.
        let rate = row["tasks_per_s"].as_f64().expect("a rate");
        assert!(rate <= 120.0 * 21.0 / 0.0595, "{row:#}");
    }
}

#[test]
fn the_program_in_go_is_measured_or_said_to_be_missing() {
    let few = ["--subject", "fifo/steal-half", "--against", "loop,go"];
    let rows = rows(&[&few[..], &["--kernel", "binomial,smith-waterman"]].concat());
    for row in rows.iter().filter(|row| row["subject"] == "go") {
        match row.get("skipped").and_then(Value::as_str) {
            None => has_figures(row),
            Some(why) => assert!(why.contains("Go"), "{row:#}"),
        }
    }
}

#[test]
fn tables_say_what_was_measured() {
    let few = ["--subject", "edf", "--against", "loop", "--load", "idle"];
    let done = output(&[&SMALL[..], &few].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    for said in ["binomial, closed: 20 steps, or 200 of 0.5 %, 2 workers", "edf", "tasks/s"] {
        assert!(text.contains(said), "no {said} in {text}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (wrong, told) in [
        (&["--kernel", "trinomial"][..], "smith-waterman"),
        (&["--case", "ramp"], "closed"),
        (&["--subject", "lifo/lifo"], "no policy of ours 'lifo/lifo'"),
        (&["--subject", "loop+stages"], "no policy of ours 'loop+stages'"),
        (&["--against", "channel"], "no peer 'channel'"),
        (&["--subject", "", "--against", ""], "nothing to measure"),
        (&["--workers", "0"], "'0' is not a number"),
        (&["--options", "0"], "invalid value '0'"),
        (&["--depth", "0"], "invalid value '0'"),
        (&["--long-share", "2"], "takes a probability"),
        (&["--long-share", "nan"], "takes a probability"),
        (&["--strike", "0"], "takes a price"),
        (&["--strike", "nan"], "takes a price"),
        (&["--rate", "0"], "--rate takes chains a second"),
        (&["--repetitions", "0"], "--repetitions takes a number"),
    ] {
        let said = refused(&[&SMALL[..2], wrong].concat());
        assert!(said.contains(told), "no {told} in {said}");
    }
}
