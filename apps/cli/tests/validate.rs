//! `sim calibrate` and `validate`.

mod common;

use common::{FRAME, Folder, antiphon, has_keys, json, output, stderr};

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
    // What a busy machine leaves unmeasured is named; everything else is in the file.
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

    let report = json(&["validate", "--quick", "--json", "--machine", &file]);
    has_keys(&report, &FRAME);
    has_keys(&report, &["model", "noisy", "skipped", "moved", "rows", "means"]);
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
    // Eight locks: three cases of one thread, at least.
    assert!(rows.len() >= 24, "{report:#}");
    assert!(!report["means"].as_array().expect("a list").is_empty());
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
    // Of another machine with the same home.
    let kept = folder.path("antiphon/host.toml");
    let other = after.replacen("# Measured on: ", "# Measured on: another than ", 1);
    std::fs::write(&kept, other).expect("it is ours");
    assert_eq!(host(&["sim", "machines", "host", "--toml"]), before);
}

#[test]
fn what_is_not_there_is_refused_in_a_line() {
    let output = output(&["validate", "--quick", "--machine", "no-such-machine"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    let output = common::output(&["sim", "calibrate", "--quick", "--out", "/no/such/folder/x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/no/such/folder/x"), "{}", stderr(&output));
}
