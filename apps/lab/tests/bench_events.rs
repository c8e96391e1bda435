//! `bench events`, in settings so small that only the keys of its rows are meaningful.

mod common;

use common::{FRAME, Folder, has_keys, json, output, stderr};
use serde_json::Value;

const SMALL: [&str; 8] =
    ["bench", "events", "--trials", "10", "--repetitions", "2", "--seconds", "0.05"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    report["rows"].as_array().expect("a list").clone()
}

/// Returns whether a row has figures; one without must give a reason.
fn is_measured(row: &Value) -> bool {
    let skipped = row.get("skipped").map(|why| why.as_str().expect("a reason"));
    assert!(skipped.is_none_or(|why| !why.is_empty()), "{row:#}");
    skipped.is_none()
}

#[test]
fn latencies_have_their_figures() {
    let rows = rows(&[
        "--case",
        "running,parked,parked-idle-1ms,busy-target",
        "--gap-us",
        "3,20",
        "--subject",
        "event,condvar+nospin,message",
        "--against",
        "futex,io_uring",
    ]);
    assert_eq!(rows.len(), 5 * 5);
    for row in rows.iter().filter(|row| is_measured(row)) {
        has_keys(row, &["subject", "peer", "case", "threads", "load", "p25", "p75", "ratio"]);
        has_keys(row, &["p50_ns", "p99_ns", "sender_ns", "cpu_ns_per_event", "sleeps_per_event"]);
        has_keys(row, &["sigma_ns", "trials", "ratio_low95", "ratio_second", "ratio_best", "best"]);
        has_keys(&row["cdf_ns"], &["p10", "p25", "p50", "p75", "p90", "p99", "p999"]);
        // Fewer trials than asked for, if the time was over before.
        assert!((1..=20).contains(&row["trials"].as_u64().expect("a count")), "{row:#}");
        assert!(row["p25"].as_f64() <= row["p75"].as_f64());
        assert_eq!(row["peer"], "futex");
        if row["subject"] == "futex" {
            assert_eq!((&row["ratio"], &row["ratio_second"]), (&1.0.into(), &1.0.into()));
        }
    }
    let gaps: Vec<_> = rows.iter().filter(|row| row["case"] == "parked").collect();
    assert!(gaps.iter().filter(|row| is_measured(row)).all(|row| row["gap_us"].is_u64()));
    assert!(rows.iter().all(|row| row["target"].is_u64()));
}

#[test]
fn who_measures_nothing_has_failed() {
    let tells_all =
        ["--case", "sender-alone", "--subject", "broadcast", "--against", "serial-futex"];
    let output = output(&[&SMALL[..], &tells_all].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("nothing was measured: broadcast skipped: "), "{said}");
}

/// Returns the CPUs that this process may use.
fn usable() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let [from, to] = [from, to].map(|number| number.trim().parse().expect("a number"));
        from..=to
    };
    list.expect("a list of CPUs").split(',').flat_map(range).collect()
}

#[test]
fn each_target_has_a_row_of_its_own() {
    let few = ["--case", "parked,sender-alone", "--gap-us", "3"];
    let names = ["--subject", "message+nospin", "--against", "futex"];
    let cpus = usable();
    let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let rows = rows(&[&few[..], &names, &["--target", &list]].concat());
    let targets = |case: &str| {
        let rows = rows.iter().filter(|row| row["case"] == case && row["subject"] == "futex");
        rows.map(|row| row.get("target").and_then(Value::as_u64)).collect::<Vec<_>>()
    };
    assert_eq!(targets("parked"), cpus.iter().map(|&cpu| Some(cpu as u64)).collect::<Vec<_>>());
    assert_eq!(targets("sender-alone"), [None]);

    let other = (0..).find(|cpu| !cpus.contains(cpu)).expect("not all CPUs there may be");
    let refused = output(&["bench", "events", "--target", &other.to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    let said = common::stderr(&refused);
    assert!(said.contains(&format!("CPU {other}")) && said.contains(&list), "{said}");
}

#[test]
fn a_page_has_a_curve_for_each_mechanism() {
    let folder = Folder::new("bench-events");
    let file = folder.path("events.html");
    let few = ["--case", "sender-alone", "--subject", "event", "--against", "futex,pipe"];
    let output = output(&[&SMALL[..], &few, &["--html", &file]].concat());
    assert!(output.status.success(), "{}", common::stderr(&output));
    let page = std::fs::read_to_string(file).expect("a page");
    assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (1, 3));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no thread waits") && page.contains("no thread waits"));
}

#[test]
fn a_sender_alone_has_a_cost_and_no_latency() {
    for row in rows(&["--case", "sender-alone", "--subject", "condvar", "--against", "pipe,signal"])
    {
        assert!(row["sender_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{row:#}");
        assert!(row.get("p50_ns").is_none());
    }
}

#[test]
fn broadcasts_have_a_last_arrival_and_a_spread() {
    let rows = rows(&[
        "--case",
        "broadcast-1,broadcast-3",
        "--subject",
        "broadcast,message",
        "--against",
        "pthread-cond,serial-futex,eventfd",
        "--load",
        "idle,noisy",
    ]);
    assert_eq!(rows.len(), 2 * 2 * 5);
    for row in &rows {
        assert_eq!(row.get("skipped").is_some(), !is_measured(row));
        if row["subject"] == "eventfd" {
            assert!(!is_measured(row), "it tells one thread at a time: {row:#}");
        } else if is_measured(row) {
            has_keys(row, &["last_ns", "sigma_ns", "sender_ns", "cpu_ns_per_event", "ratio"]);
            let single = row["case"] == "broadcast-1";
            assert_eq!(single, row["sigma_ns"].as_f64() == Some(0.0), "{row:#}");
        }
    }
}

#[test]
fn the_machine_has_rows_of_its_own() {
    for row in rows(&["--case", "noise,clock"]) {
        assert_eq!((&row["subject"], &row["peer"]), (&"machine".into(), &Value::Null));
        if is_measured(&row) {
            has_keys(&row, &["p50_ns", "p99_ns", "sigma_ns"]);
            if row["case"] == "clock" {
                assert!(row["doubt_ns"].as_f64().is_some_and(|ns| ns >= 0.0), "{row:#}");
                has_keys(&row, &["offset_ns"]);
            }
        }
    }
}

#[test]
fn a_table_names_each_mechanism_and_why_one_is_missing() {
    let cases = ["--case", "parked,sender-alone,broadcast-2", "--gap-us", "3"];
    let few = ["--subject", "condvar", "--against", "parking_lot,tokio"];
    let output = output(&[&SMALL[..], &cases, &few].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for word in ["condvar", "parking_lot", "tokio", "slept for 3 µs", "σ", "no thread waits"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(text.contains("skipped: "), "tokio tells one at a time here: {text}");
}
