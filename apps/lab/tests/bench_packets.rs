//! `bench packets`, in settings so small that only the keys of its rows are meaningful.
//!
//! A repetition that loses a packet, runs one twice, or finds the wrong newlines ends with exit
//! code 1: so each run here that succeeds has shown that it did none of this.

mod common;

use common::{FRAME, Folder, has_keys, json, output, stderr};
use serde_json::Value;

const SMALL: [&str; 4] = ["bench", "packets", "--repetitions", "1"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    report["rows"].as_array().expect("a list").clone()
}

fn has_figures(row: &Value) {
    has_keys(row, &["subject", "policy", "peer", "case", "form", "load", "workers", "p25", "p75"]);
    has_keys(row, &["spawner_retries", "steal_attempts", "steal_hits", "cpu_us_per_task"]);
    has_keys(row, &["ratio", "ratio_p50", "ratio_p99", "ratio_cpu", "ratio_low95"]);
    let seen = &row["latency_ns"];
    has_keys(seen, &["mean", "p20", "p50", "p99", "p999", "p9999", "max"]);
    let of = |name: &str| seen[name].as_f64().expect("a number");
    let ordered = ["p20", "p50", "p99", "p999", "p9999"].map(of);
    assert!(ordered.is_sorted() && ordered[4] <= of("max") * 1.04 && of("mean") > 0.0, "{row:#}");
}

#[test]
fn every_peer_in_rust_handles_each_packet_once() {
    let peers = "loop,tokio,smol,rayon,rayon-fifo,channel";
    let few = ["--tasks", "300", "--form", "corrected,published", "--subject", "lifo/overflow"];
    let rows = rows(&[&few[..], &["--against", peers]].concat());
    assert_eq!(rows.len(), 2 * 7);
    for row in &rows {
        has_figures(row);
        assert!(row["tasks_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
        assert_eq!((&row["peer"], &row["case"]), (&"loop".into(), &"general".into()));
        assert_eq!(row["steal_attempts"].is_null(), row["subject"] != "lifo/overflow");
    }
    assert_eq!(rows.iter().filter(|row| row["form"] == "published").count(), 7);
}

#[test]
fn every_policy_handles_each_packet_once() {
    let orders = ["fifo", "lifo", "stochastic-64", "switch-16", "reverse-8"];
    let spreads = ["steal-one", "neighbours-13", "overflow", "shallow", "lazy", "lazy-shallow"];
    let names: Vec<_> =
        orders.iter().flat_map(|order| spreads.map(|spread| format!("{order}/{spread}"))).collect();
    let few = ["--tasks", "200", "--capacity", "16", "--against", "loop", "--workers", "2"];
    let rows = rows(&[&few[..], &["--subject", &names.join(",")]].concat());
    assert_eq!(rows.len(), names.len() + 1);
    rows.iter().for_each(has_figures);
}

#[test]
fn cases_have_their_chains_spawners_and_steps() {
    let few = ["--tasks", "2000", "--subject", "fifo/steal-half", "--against", "loop"];
    let cases = ["--case", "heavier,spawners-4,cache,bimodal", "--heavy", "sleep,spin"];
    let rows = rows(&[&few[..], &cases, &["--workers", "1,3"]].concat());
    assert_eq!(rows.len(), (3 + 2) * 2 * 2);
    rows.iter().for_each(has_figures);
    let heavy: Vec<_> = rows.iter().map(|row| &row["heavy"]).filter(|it| !it.is_null()).collect();
    assert!(heavy.len() == 8 && heavy.iter().any(|&it| it == "spin"), "{heavy:?}");
}

#[test]
fn packets_of_open_cases_come_when_they_are_due() {
    let few = ["--subject", "lifo/steal-half", "--against", "loop", "--case", "open"];
    let rows = rows(&[&few[..], &["--tasks", "500", "--rate", "10000"]].concat());
    for row in &rows {
        has_figures(row);
        // The last is due 49.9 ms after the first.
        let rate = row["tasks_per_s"].as_f64().expect("a rate");
        assert!(rate <= 500.0 / 0.0499, "{row:#}");
    }
}

#[test]
fn a_ramp_has_a_row_for_each_step() {
    let rows = rows(&["--subject", "lifo/steal-half", "--against", "", "--case", "ramp"]);
    let parts: Vec<_> = rows.iter().map(|row| row["of_capacity"].as_f64()).collect();
    assert_eq!(parts, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0].map(Some));
    for row in &rows {
        has_keys(row, &["offered_per_s", "goodput_per_s", "backlog", "latency_ns"]);
        assert!(row["goodput_per_s"].as_f64() <= row["offered_per_s"].as_f64(), "{row:#}");
    }
}

#[test]
fn the_program_in_go_is_measured_or_said_to_be_missing() {
    let few = ["--tasks", "300", "--subject", "lifo/steal-half", "--against", "loop,go"];
    let rows = rows(&[&few[..], &["--case", "general,ramp"]].concat());
    for row in rows.iter().filter(|row| row["subject"] == "go") {
        match row.get("skipped").and_then(Value::as_str) {
            None => has_figures(row),
            Some(why) => assert!(why.contains("Go"), "{row:#}"),
        }
    }
}

/// A trace of two hundred arrivals, 50 µs apart.
fn trace(folder: &Folder) -> String {
    let file = folder.path("arrivals.txt");
    let lines = (0..200).map(|at| format!("{} {}\n", at * 50_000, 64 + at)).collect::<String>();
    std::fs::write(&file, lines).expect("a file");
    file
}

#[test]
fn a_goal_names_those_that_meet_it() {
    let folder = Folder::new("bench-packets");
    let file = trace(&folder);
    let few = ["--subject", "lifo/steal-half,fifo/steal-one", "--arrivals", &file];
    let met = [&SMALL[..], &few, &["--goal", "p99<100s"]].concat();
    let done = output(&met);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("p99 < 100 s is met by"), "{text}");
    let row = &rows(&[&few[..], &["--goal", "mean<100s"]].concat())[0];
    assert_eq!((&row["meets_goal"], &row["case"]), (&true.into(), &"trace".into()));

    let none = output(&[&SMALL[..], &few, &["--goal", "p50<1ns"]].concat());
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("none meets p50 < 1.00 ns"), "{}", stderr(&none));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new("bench-packets-wrong");
    let good = trace(&folder);
    let file = |name: &str, text: &str| {
        let path = folder.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let (empty, bad) = (file("empty", "# nothing\n"), file("bad", "0\nsoon\n"));
    let missing = folder.path("none");
    for (arguments, told) in [
        (&["--case", "specific"][..], "no case 'specific'"),
        (&["--subject", "lifo/lifo"], "no policy of ours 'lifo/lifo'"),
        (&["--against", "threads"], "no peer 'threads'"),
        (&["--subject", "", "--against", ""], "nothing to measure"),
        (&["--workers", "0"], "'0' is not a number"),
        (&["--tasks", "0"], "invalid value '0'"),
        (&["--rate", "0"], "--rate takes packets a second"),
        (&["--rate", "nan"], "--rate takes packets a second"),
        (&["--goal", "p99<1ms"], "--arrivals"),
        (&["--goal", "p99", "--arrivals", &good], "no '<' in 'p99'"),
        (&["--goal", "p98<1ms", "--arrivals", &good], "no figure 'p98'"),
        (&["--goal", "p99<1ms", "--arrivals", &empty], "it has no arrival"),
        (&["--goal", "p99<1ms", "--arrivals", &bad], "line 2: 'soon' is not a time"),
        (&["--goal", "p99<1ms", "--arrivals", &missing], "No such file"),
    ] {
        let refused = output(&[&SMALL[..], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(told), "{arguments:?}: {}", stderr(&refused));
    }
}

#[test]
fn a_trace_of_a_run_is_a_timeline() {
    let folder = Folder::new("packets-trace");
    let file = folder.path("trace.json");
    let one = ["--subject", "lifo/steal-half", "--against", "loop", "--tasks", "3000"];
    let rows = rows(&[&one[..], &["--trace", &file]].concat());
    rows.iter().for_each(has_figures);
    let text = std::fs::read_to_string(&file).expect("a timeline");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert!(slices.iter().all(|slice| slice["dur"].is_number() && slice["ts"].is_number()));
    for name in ["task", "tasks", "search"] {
        assert!(slices.iter().any(|slice| slice["name"] == name), "no {name}");
    }
    let names: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").collect();
    assert_eq!(names.len(), 2 * 2);
    let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count();
    assert!(of("s") > 0 && of("s") == of("f"));
    let two = output(&[&SMALL, &["--trace", &file, "--subject", "all"][..]].concat());
    assert_eq!(two.status.code(), Some(2), "{}", stderr(&two));
}
