//! `sim calibrate` and `validate`.

mod common;

use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{FRAME, Folder, antiphon, has_keys, json, output, stderr};
use serde_json::Value;

#[test]
fn a_calibration_is_a_machine_file_that_validate_takes() {
    let folder = Folder::new("calibrate");
    let file = folder.path("mine.toml");
    let report = json(&["sim", "calibrate", "--quick", "--json", "--out", &file]);
    has_keys(&report, &FRAME);
    has_keys(&report, &["file", "hash", "figures", "pairs", "noisy", "not_measured"]);
    for figure in report["figures"].as_array().expect("a list") {
        has_keys(figure, &["name", "ns", "p25", "p75", "windows", "dropped", "noisy"]);
        assert!(figure["ns"].as_f64().is_some_and(|ns| ns > 0.0), "{figure}");
    }
    let machines = json(&["sim", "machines", &file, "--json"]);
    let machine = &machines["machines"][0];
    assert_eq!(machine["hash"], report["hash"]);
    // Numbers that a busy machine leaves unmeasured are named; all others are in the file.
    let missing = report["not_measured"].as_array().expect("a list").len();
    let measured = machine["sources"]["measured"].as_u64().expect("a count") as usize;
    assert!(measured + missing >= 8, "{report:#}");
    let numbers = machine["numbers"].as_array().expect("a list");
    let atomic = numbers.iter().find(|number| number["name"] == "core.atomic").expect("it is one");
    let figures = report["figures"].as_array().expect("a list");
    if let Some(figure) = figures.iter().find(|figure| figure["name"] == "core.atomic") {
        assert_eq!(atomic["kind"], "measured");
        let apart = atomic["value_ns"].as_f64().zip(figure["ns"].as_f64());
        assert!(apart.is_some_and(|(file, seen)| (file - seen).abs() < 0.2), "{atomic} {figure}");
    }

    let out = folder.path("reports");
    // Enough time for what is quick; the rest is in the report without figures.
    let short = ["validate", "--quick", "--minutes", "0.4"];
    let report = json(&[&short[..], &["--json", "--machine", &file, "--out", &out]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report, &["host", "model", "noisy", "skipped", "moved", "interrupted", "notes"]);
    has_keys(&report, &["verdict", "rule", "rows", "rankings", "means"]);
    assert_eq!(report["model"], "host");
    let rows = report["rows"].as_array().expect("a list");
    for row in rows {
        has_keys(row, &["case", "threads", "subject", "metric", "measured", "predicted", "error"]);
        let (measured, predicted) = (row["measured"].as_f64(), row["predicted"].as_f64());
        if let (Some(measured), Some(error)) = (measured, row["error"].as_f64()) {
            let ratio = predicted.expect("it is a number") / measured;
            assert!((ratio - 1.0 - error).abs() < 1e-9, "{row}");
        }
    }
    // At least eight locks in three cases with one thread.
    assert!(rows.len() >= 24, "{report:#}");
    assert!(!report["means"].as_array().expect("a list").is_empty());
    goes_beyond_the_cpus(rows);
    is_judged_by_its_rule(&report, rows);

    let text = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).expect("a report");
    assert_eq!(text("machine.toml"), std::fs::read_to_string(&file).expect("it was calibrated"));
    let written: Value = serde_json::from_str(&text("report.json")).expect("one JSON object");
    assert_eq!(written, report);
    let page = text("report.html");
    for part in ["Verdict", "Where they differ", "not a measurement", "shfl-mutex", "Linux "] {
        assert!(page.contains(part), "no {part} in {page}");
    }
}

/// Checks that all CPUs, and two and four times as many threads, are among the thread counts, and
/// no larger count.
fn goes_beyond_the_cpus(rows: &[Value]) {
    let threads: BTreeSet<_> = rows.iter().filter_map(|row| row["threads"].as_u64()).collect();
    let cpus = std::thread::available_parallelism().expect("a number").get() as u64;
    for count in [1, cpus, 2 * cpus, 4 * cpus] {
        assert!(threads.contains(&count), "{count} of {threads:?}");
    }
    assert_eq!(threads.last(), Some(&(4 * cpus)));
}

/// Checks that the verdict of each row follows from its two ratios, by the bounds in the report.
fn is_judged_by_its_rule(report: &Value, rows: &[Value]) {
    let bound = |name: &str| report["rule"][name].as_f64().expect("a number");
    let (apart, level) = (bound("apart"), bound("level"));
    let side = |ratio: f64| i8::from(ratio > level) - i8::from(ratio < 1.0 / level);
    let mut decided = 0;
    for row in rows.iter().filter(|row| row["metric"] == "ops_per_s" && row["subject"] != "futex") {
        let of = &row["to_futex"];
        let figure = |key: &str| of[key].as_f64();
        let expected = match (figure("measured"), figure("predicted")) {
            (None, _) => "not-measured",
            (_, None) => "not-simulated",
            (Some(measured), Some(predicted)) => {
                let spread = figure("most").expect("a ratio") / figure("least").expect("a ratio");
                let off = (measured / predicted).max(predicted / measured);
                decided += u32::from(spread <= apart);
                match side(measured) * side(predicted) {
                    _ if spread > apart => "not-decided",
                    -1 => "differ-in-order",
                    _ if off > apart => "differ-in-ratio",
                    _ => "agree",
                }
            }
        };
        assert_eq!(of["says"], expected, "{row:#}");
        assert!(row["subject"] != "glibc" || row["predicted"].is_null(), "{row:#}");
    }
    let says = report["verdict"][0]["says"].as_str().expect("a sentence");
    let expected = if decided == 0 { "Nothing".to_owned() } else { format!("of {decided}") };
    assert!(says.contains(&expected), "{says}, {decided} decided");
}

#[test]
fn what_there_was_no_time_for_is_said_and_no_file_is_written_unasked() {
    let folder = Folder::new("validate-short");
    let arguments = ["validate", "--json", "--machine", "host", "--minutes", "0.02"];
    let output = antiphon(&arguments).current_dir(folder.path("")).output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let notes = report["notes"].as_array().expect("a list");
    let says =
        |word: &str| notes.iter().any(|note| note.as_str().is_some_and(|it| it.contains(word)));
    assert!(says("not simulated") && says("--minutes"), "{notes:?}");
    assert_eq!(report["interrupted"], false);
    let files = std::fs::read_dir(folder.path("")).expect("our folder");
    assert_eq!(files.count(), 0);
}

#[test]
fn an_interrupted_validation_keeps_what_it_has_and_ends_by_the_signal() {
    let folder = Folder::new("validate-interrupted");
    let out = folder.path("reports");
    let arguments = ["validate", "--machine", "host", "--out", &out];
    let mut command = antiphon(&arguments);
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // A test in the background of a shell inherits an ignored SIGINT, and so would its
            // child.
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let end = Instant::now() + Duration::from_secs(60);
    while !std::path::Path::new(&out).join("machine.toml").exists() {
        assert!(Instant::now() < end, "no machine file");
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: takes numbers; the process is our child, which was not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let status = child.wait().expect("our child");
    assert_eq!(status.signal(), Some(libc::SIGINT), "{status}");
    let text = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).expect("a report");
    let report: Value = serde_json::from_str(&text("report.json")).expect("one JSON object");
    assert_eq!(report["interrupted"], true);
    assert!(!report["rows"].as_array().expect("a list").is_empty());
    assert!(text("report.html").contains("interrupted"));
}

#[test]
fn the_host_is_the_calibrated_one_once_there_is_one() {
    let folder = Folder::new("calibrated-host");
    let host = |arguments: &[&str]| {
        let output = antiphon(arguments).env("XDG_CACHE_HOME", folder.path("")).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let before = host(&["sim", "machines", "host", "--toml"]);
    assert!(!before.contains("antiphon sim calibrate"), "{before}");
    host(&["sim", "calibrate", "--quick"]);
    let after = host(&["sim", "machines", "host", "--toml"]);
    assert!(after.starts_with("# Measured on: "), "{after}");
    assert!(after.contains("antiphon sim calibrate"), "{after}");
    // The file of another machine that shares the home directory.
    let kept = folder.path("antiphon/host.toml");
    let other = after.replacen("# Measured on: ", "# Measured on: another than ", 1);
    std::fs::write(&kept, other).expect("it is ours");
    assert_eq!(host(&["sim", "machines", "host", "--toml"]), before);
}

#[test]
fn what_is_not_there_is_refused_in_a_line() {
    let folder = Folder::new("validate-refused");
    let file = folder.path("file");
    std::fs::write(&file, "").expect("a file");
    for (arguments, hint) in [
        (["--minutes", "0"], "--minutes takes"),
        (["--minutes", "nan"], "--minutes takes"),
        (["--out", &format!("{file}/folder")], "--out"),
        (["--machine", &file], "file"),
    ] {
        let said = common::refused(&[&["validate", "--quick"], &arguments[..]].concat());
        assert!(said.contains(hint), "{said}");
    }
    let output = output(&["validate", "--quick", "--machine", "no-such-machine"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    let output = common::output(&["sim", "calibrate", "--quick", "--out", "/no/such/folder/x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/no/such/folder/x"), "{}", stderr(&output));
}
