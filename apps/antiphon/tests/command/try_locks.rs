//! `try`: its verdict, metrics and failures.

use crate::common::{FRAME, has_keys, json, output, stderr};

#[test]
fn a_verdict_comes_with_its_interval_and_pairs() {
    let report = json(&["try", "--pairs", "6", "--json", "--", "sh", "-c", "exit 0"]);
    has_keys(&report, &FRAME);
    has_keys(&report["ratio"], &["median", "low95", "high95"]);
    let pairs = report["pairs"].as_array().expect("a list");
    assert_eq!(pairs.len(), 6);
    for pair in pairs {
        has_keys(pair, &["glibc_s", "ours_s", "ratio", "first"]);
    }
    let ratio = |key: &str| report["ratio"][key].as_f64().expect("a number");
    assert!(ratio("low95") <= ratio("median") && ratio("median") <= ratio("high95"));
    let verdict = report["verdict"].as_str().expect("a word");
    let expected = match (ratio("low95"), ratio("high95")) {
        (_, high) if high < 1.0 => "faster",
        (low, _) if low > 1.0 => "slower",
        _ => "no difference",
    };
    assert_eq!(verdict, expected);
}

#[test]
fn a_metric_is_read_from_either_stream_and_compared() {
    let script = "echo rate 7; echo rate 12 >&2";
    let arguments = ["try", "--pairs", "6", "--json", "--metric", "rate=rate ([0-9]+)", "--"];
    let report = json(&[&arguments[..], &["sh", "-c", script]].concat());
    let rate = &report["metrics"]["rate"];
    assert_eq!((&rate["glibc"], &rate["ours"]), (&12.0.into(), &12.0.into()));
    assert_eq!(rate["ratio"]["low95"], 1.0);
    assert!(report["cpu_ratio"]["median"].as_f64() > Some(0.0));
}

#[test]
fn output_without_the_metric_is_said() {
    let output = output(&["try", "--metric", "rate=rate ([0-9]+)", "--", "echo", "nothing"]);
    assert_eq!(output.status.code(), Some(1));
    let line = stderr(&output);
    assert!(line.contains("nothing in the output matches \"rate ([0-9]+)\""), "{line}");
}

#[test]
fn a_failing_program_is_1_and_said() {
    let output = output(&["try", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(1));
    let line = stderr(&output);
    assert!(line.contains("exit status: 3") && line.contains("--keep-output"), "{line}");
}

#[test]
fn a_missing_program_is_69() {
    let output = output(&["try", "--", "no-such-program-here"]);
    assert_eq!(output.status.code(), Some(69));
}

#[test]
fn output_is_thrown_away_unless_it_is_asked_for() {
    let run = |more: &[&str]| {
        let arguments = [&["try", "--pairs", "6"], more, &["--", "echo", "marked"]].concat();
        String::from_utf8_lossy(&output(&arguments).stdout).matches("marked").count()
    };
    assert_eq!((run(&[]), run(&["--keep-output"])), (0, 14));
}
