//! `bench thesis`, in settings so small that only the keys of its rows are meaningful.

mod common;

use common::{FRAME, has_keys, json, output, refused, stderr};
use serde_json::Value;

const SMALL: [&str; 8] =
    ["bench", "thesis", "--repetitions", "1", "--frames", "5", "--part", "0.01"];
const POLICIES: [&str; 2] = ["--policy", "lifo/shallow,fifo/steal-half,pools,pools-nice,two-pools"];

#[test]
fn policies_have_figures_of_all_workloads_and_compositions_of_one() {
    let report = json(&[&SMALL[..], &POLICIES, &["--json"]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report, &["best_everywhere", "best_single", "seed"]);
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 5);
    for row in rows {
        has_keys(row, &["subject", "single", "workers", "to_best_single"]);
        let figures = row["figures"].as_array().expect("a list");
        let single = row["single"] == true;
        assert_eq!(figures.len(), if single { 16 } else { 6 }, "{row:#}");
        for figure in figures {
            has_keys(figure, &["workload", "figure", "unit", "p25", "p75", "near"]);
            assert!(figure["median"].as_f64().is_some_and(|it| it > 0.0), "{figure:#}");
            assert!(figure["best"] == false || figure["near"] == true, "{figure:#}");
        }
    }
    // Each column has a best subject, or two that are equal.
    let all = || rows.iter().flat_map(|row| row["figures"].as_array().into_iter().flatten());
    let best = |name: &Value| all().any(|it| it["best"] == true && it["figure"] == *name);
    assert!(all().all(|figure| best(&figure["figure"])));
    let single = rows.iter().filter(|row| row["subject"] == report["best_single"]);
    let one = single.map(|row| row["to_best_single"].as_f64()).collect::<Vec<_>>();
    assert!(matches!(one[..], [Some(one)] if (one - 1.0).abs() < 1e-9), "{one:?}");
}

#[test]
fn tables_say_who_is_best_and_what_follows() {
    let few = ["--policy", "lifo-slot/steal-half,staged,two-pools", "--workers", "1"];
    let done = output(&[&SMALL[..], &few].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    for said in ["frames p99.9", " *", "every column", "best single policy", "two-pools: "] {
        assert!(text.contains(said), "no {said} in {text}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (wrong, told) in [
        (&["--policy", "pool"][..], "no policy of ours 'pool'"),
        (&["--policy", ""], "nothing to measure"),
        (&["--workers", "0"], "invalid value '0'"),
        (&["--frames", "1"], "invalid value '1'"),
        (&["--part", "0"], "--part takes a number"),
        (&["--part", "nan"], "--part takes a number"),
        (&["--repetitions", "0"], "--repetitions takes a number"),
    ] {
        let said = refused(&[&SMALL[..2], wrong].concat());
        assert!(said.contains(told), "no {told} in {said}");
    }
}
