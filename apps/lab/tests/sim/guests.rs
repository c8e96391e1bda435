//! `sim guests`, in settings so small that only its keys are meaningful, and what it refuses.

use crate::common::{FRAME, has_keys, json, refused};

const SMALL: [&str; 6] = ["sim", "guests", "--machine", "xeon-2s", "--ms", "1"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn a_row_has_each_hint() {
    let report = json(&with(&["--subject", "mcs,futex", "--json"]));
    has_keys(&report, &FRAME);
    has_keys(
        &report["simulated"],
        &["machine", "hash", "seed", "ms", "guests", "case", "host_slice_ns"],
    );
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let head = ["model", "machine", "subject", "threads", "case", "guests", "alone"];
        has_keys(row, &[&head[..], &["none", "sections", "preempted", "both"]].concat());
        assert_eq!((&row["model"], &row["guests"]), (&true.into(), &2.into()));
        assert_eq!(row["none"]["times_none"], 1.0);
        has_keys(
            &row["both"],
            &[
                "ops_per_s",
                "of_alone",
                "times_none",
                "won_back",
                "preemptions",
                "owners_preempted",
                "next_preempted",
                "woken_without_cpu",
                "woken_wait_ns",
                "put_off",
                "overrun",
                "yields",
                "trace",
            ],
        );
    }
}

#[test]
fn only_the_wanted_hints_are_simulated() {
    let report = json(&with(&["--subject", "mcs", "--hints", "both", "--json"]));
    let row = &report["rows"][0];
    assert!(row["both"].is_object() && row.get("none").is_none());
    assert!(row["both"]["times_none"].is_null(), "there is nothing to compare with");
}

#[test]
fn the_same_command_is_the_same_run() {
    let both = ["--subject", "shfl-mutex", "--hints", "both", "--json"];
    let [one, again] = [(); 2].map(|()| json(&with(&both)));
    assert_eq!(one["rows"], again["rows"]);
}

#[test]
fn a_host_is_told_releases_or_not() {
    let report = json(&["sim", "guests", "--releases", "--machine", "xeon-2s", "--json"]);
    let row = &report["rows"][0];
    for hints in ["none", "releases"] {
        let keys = ["late_ns", "latest_ns", "frames", "pieces", "released"];
        has_keys(&row[hints], &keys);
    }
    assert_eq!(row["none"]["released"], 0);
    assert!(row["releases"]["released"].as_u64().is_some_and(|times| times > 0));
}

#[test]
fn what_is_not_there_is_refused() {
    for (more, named) in [
        (["--subject", "rcl"], "subject"),
        (["--case", "nothing"], "--case"),
        (["--case", "mixed"], "not for"),
        (["--hints", "some"], "hints"),
        (["--guests", "1"], "--guests"),
    ] {
        let said = refused(&with(&more));
        assert!(said.contains(named), "{said}");
    }
}
