//! `sim mix`, in settings so small that only their keys are meaningful, and what holds at any size.

use crate::common::{FRAME, has_keys, json, output, refused, rows, stderr};

const SMALL: [&str; 8] =
    ["sim", "mix", "--conferences", "12", "--threads", "3,10", "--frames", "4"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

#[test]
fn a_row_has_its_figures_and_says_that_it_is_a_model() {
    let codecs = ["--codec", "published,opus", "--legs", "3", "--phase", "spread"];
    let report = json(&with(&[&codecs[..], &["--subject", "all", "--json"]].concat()));
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "legs", "frames", "phase", "case"]);
    // Nine policies, in three ways.
    assert_eq!(rows(&report).len(), 2 * 2 * 27);
    for row in rows(&report) {
        has_keys(row, &["subject", "codec", "threads", "conferences", "published_breaches"]);
        has_keys(row, &["p50_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns", "busy", "trace"]);
        has_keys(row, &["remote_transfers_per_frame", "parks", "wakes"]);
        assert_eq!(row["case"], "fixed");
        assert_eq!((&row["model"], &row["conferences"]), (&true.into(), &12.into()), "{row}");
        assert_eq!(row["frames"], 12 * 3 * 4, "{row}");
        let figure = |key: &str| row[key].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&figure("breaches")), "{row}");
        assert_eq!(figure("breaches") > 0.0, figure("max_ns") > 1e7, "{row}");
        assert!(figure("p50_ns") > 0.0 && figure("p50_ns") <= figure("p9999_ns"), "{row}");
        // At most 144 frames, the last of which are due 60 ms after the first.
        assert!(figure("ops_per_s") > 0.0 && figure("ops_per_s") < 144.0 / 0.06, "{row}");
        assert!(figure("busy") > 0.0 && figure("busy") <= 1.0, "{row}");
    }
}

#[test]
fn the_same_seed_is_the_same_bytes() {
    let text = |seed: &str| {
        let output = output(&with(&["--phase", "spread", "--seed", seed]));
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let (one, again, other) = (text("1"), text("1"), text("2"));
    assert_eq!(one, again);
    assert_ne!(one.replace("seed 1", ""), other.replace("seed 2", ""));
    assert!(
        one.starts_with("Simulated (a model, not a measurement): epyc-2x64c, conferences of 2")
    );
    for word in ["a guess", "fifo+stages", "breaches"] {
        assert!(one.contains(word), "no {word} in {one}");
    }
}

#[test]
fn as_many_as_are_sustained_are_looked_for() {
    let report = json(&with(&["--most", "--subject", "lifo,staged+silos", "--json"]));
    assert_eq!(report["simulated"]["case"], "most");
    for row in rows(&report) {
        assert!(row["breaches"].as_f64() < Some(0.01), "{row}");
        assert!(row["case"] == "most" && row["ops_per_s"].as_f64() > Some(0.0), "{row}");
    }
    let most = |threads: u64| {
        let here = |row: &&serde_json::Value| row["threads"] == threads && row["subject"] == "lifo";
        let row = rows(&report).iter().find(here);
        row.and_then(|row| row["conferences"].as_u64()).expect("a number")
    };
    // More than three times as many workers sustain at least twice as many conferences.
    assert!(most(3) > 0 && most(10) >= 2 * most(3), "{} {}", most(3), most(10));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    for (wrong, hint) in [
        (&["--machine", "epyc"][..], "epyc-2x64c"),
        (&["--subject", "lifo,pigeon"], "lifo-blocks+silos"),
        (&["--subject", ""], "there are"),
        (&["--codec", "mp3"], "g711"),
        (&["--codec", ""], "there are"),
        (&["--threads", "2"], "to 128"),
        (&["--threads", "129"], "to 128"),
        (&["--phase", "late"], "spread"),
        (&["--conferences", "0"], "'0' is not a number"),
        (&["--most", "--legs", "40"], "legs and mixers"),
        (&["--frames", "0"], "1..=100000"),
        (&["--legs", "0"], "invalid value '0'"),
    ] {
        let said = refused(&[&["sim", "mix"], wrong].concat());
        assert!(said.contains(hint), "no {hint} in {said}");
    }
}
