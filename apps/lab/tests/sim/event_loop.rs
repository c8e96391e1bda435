//! `sim loop`, in settings so small that only their keys are meaningful, and what holds at any
//! size.

use crate::common::{FRAME, Folder, has_keys, json, output, refused, rows, stderr};

const SMALL: [&str; 6] = ["sim", "loop", "--ms", "40", "--threads", "1,3"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

#[test]
fn a_row_has_its_figures_and_says_that_it_is_a_model() {
    let report = json(&with(&["--case", "each,misbehave", "--hogs", "0,1", "--json"]));
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "ms", "players"]);
    // Two cases, without and with a hog, five subjects, on one core and three.
    assert_eq!(rows(&report).len(), 2 * 2 * 5 * 2);
    for row in rows(&report) {
        has_keys(row, &["subject", "case", "threads", "placement", "jain_fps", "switches_per_s"]);
        has_keys(row, &["ops_per_s", "frames_per_s", "remote_transfers_per_handover", "trace"]);
        has_keys(&row["tardiness_us"], &["p50", "p99", "p999", "max", "within_1ms", "timers"]);
        assert_eq!(row["model"], true, "{row}");
        let cores = row["threads"].as_u64().expect("a number");
        assert_eq!(row["players"], 8 * cores, "{row}");
        let figure = |of: &serde_json::Value| of.as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&figure(&row["jain_cpu"])), "{row}");
        assert_eq!(figure(&row["players_share"]) < 1.0, row["hogs"] == cores, "{row}");
        assert_eq!(row["others"].is_object(), row["case"] == "misbehave", "{row}");
        assert_eq!(row["handovers_per_s"].is_null(), row["subject"] == "alone", "{row}");
    }
}

#[test]
fn options_have_an_effect_and_are_said() {
    let how = ["--subject", "alone,t3,t1,periodic", "--hogs", "1"];
    let traces = |more: &[&str]| -> Vec<String> {
        let report = json(&with(&[&how[..], more, &["--json"]].concat()));
        has_keys(&report["simulated"]["options"], &["period_ns", "min_slice_ns", "slack_ns"]);
        rows(&report).iter().map(|row| row["trace"].to_string()).collect()
    };
    let (usual, short) = (traces(&[]), traces(&["--options", "period=4,slack=0.05"]));
    let changed: Vec<_> = usual.iter().zip(&short).map(|(one, other)| one != other).collect();
    // On one core and on three.
    assert_eq!(changed, [false, false, true, true, true, true, false, false]);
    let report = json(&with(&["--subject", "alone", "--hogs", "0", "--json"]));
    assert!(report["simulated"]["options"].is_null());
    let text = output(&with(&[&how[..], &["--options", "slack=2"]].concat())).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("Options of t1: slack 2 ms, threshold 20 ms."), "{text}");
    assert!(text.contains("Options of t3: period 20 ms") && !text.contains("of alone"), "{text}");
}

#[test]
fn the_same_seed_is_the_same_bytes() {
    let text = |seed: &str| {
        let more = ["--placement", "lot,join", "--hogs", "1", "--seed", seed];
        let output = output(&with(&more));
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let (one, again, other) = (text("1"), text("1"), text("2"));
    assert_eq!(one, again);
    assert_ne!(one.replace("seed 1", ""), other.replace("seed 2", ""));
    assert!(one.starts_with("Simulated (a model, not a measurement): 8s-192c, 8 players a core"));
    for word in ["each: each player", "join", "coop", "jain"] {
        assert!(one.contains(word), "no {word} in {one}");
    }
}

#[test]
fn the_page_has_curves_of_tardiness_and_of_fairness_for_each_subject() {
    let folder = Folder::new("sim-loop");
    let file = folder.path("loop.html");
    let cases = ["--case", "each,colours", "--colours", "2,4", "--hogs", "0,1", "--html", &file];
    let output = output(&with(&cases));
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(file).expect("a page");
    // For each number of hogs, two drawings with five subjects each; and one drawing for the two
    // numbers of colours.
    let drawn = (page.matches("<svg").count(), page.matches("<polyline").count());
    assert_eq!(drawn, (2 * 2 + 1, 2 * 2 * 5 + 2));
    assert!(page.contains("a model, not a measurement") && !page.contains("NaN"), "{page}");
    assert!(page.contains("each, 1 hog a core") && page.contains("4 colours"), "{page}");
}

#[test]
fn parts_are_the_whole() {
    let of = |more: &[&str]| {
        let cases = ["--case", "each,colours", "--colours", "2", "--hogs", "0", "--json"];
        let report = json(&with(&[&cases[..], more].concat()));
        rows(&report).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (parts, mut whole) = ([of(&["--shard", "1/2"]), of(&["--shard", "2/2"])], of(&[]));
    assert_eq!(parts.each_ref().map(Vec::len), [whole.len() / 2; 2]);
    let mut all = parts.concat();
    all.sort();
    whole.sort();
    assert_eq!(all, whole);
}

#[test]
fn colours_have_rows_of_their_own() {
    let report = json(&with(&["--case", "colours", "--colours", "1,6", "--json"]));
    assert_eq!(rows(&report).len(), 2 * 2);
    for row in rows(&report) {
        has_keys(row, &["colours", "ops_per_s", "tardiness_us", "jain_colours", "trace"]);
        assert_eq!((&row["model"], &row["case"]), (&true.into(), &"colours".into()), "{row}");
    }
    let text = |_| output(&with(&["--case", "colours", "--colours", "6"])).stdout;
    assert_eq!(text(1), text(2));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    for (wrong, hint) in [
        (&["--machine", "8s"][..], "8s-192c"),
        (&["--subject", "alone,t4"], "t3"),
        (&["--subject", ""], "there are"),
        (&["--case", "most"], "misbehave"),
        (&["--case", ""], "there are"),
        (&["--threads", "193"], "1 to 192"),
        (&["--threads", "0"], "'0' is not a number"),
        (&["--placement", "here"], "join"),
        (&["--placement", "move"], "--subject t3"),
        (&["--players", "0"], "1..=32"),
        (&["--hogs", "x"], "write 0,4"),
        (&["--colours", "0"], "'0' is not a number"),
        (&["--ms", "0"], "1..=600000"),
        (&["--shard", "3/2"], "write 1/4 to 4/4"),
    ] {
        let said = refused(&[&["sim", "loop"], wrong].concat());
        assert!(said.contains(hint), "no {hint} in {said}");
    }
}
