//! `sim tasks`, in settings so small that only their keys are meaningful, and what holds at any
//! size.

use crate::common::{FRAME, Folder, has_keys, json, output, refused, rows, stderr};

const SMALL: [&str; 6] = ["sim", "tasks", "--tasks", "60", "--threads", "2,5"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL, more].concat()
}

#[test]
fn a_row_has_its_figures_and_says_that_it_is_a_model() {
    let report =
        json(&with(&["--case", "general,cache", "--subject", "lifo,domainslib", "--json"]));
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "packets", "costs"]);
    // Two cases, two numbers of workers, three subjects: ours, the published one, and Domainslib.
    assert_eq!(rows(&report).len(), 2 * 2 * 3);
    for row in rows(&report) {
        has_keys(row, &["subject", "form", "case", "threads", "published_ops_per_s", "trace"]);
        has_keys(row, &["p50_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns", "busy", "push_ns"]);
        has_keys(row, &["spawner_retries", "steal_attempts", "steal_hits", "parks", "wakes"]);
        has_keys(row, &["remote_transfers_per_task", "local_transfers_per_task"]);
        assert_eq!(row["model"], true, "{row}");
        assert_eq!(row["tasks"], if row["case"] == "cache" { 660 } else { 60 }, "{row}");
        let figure = |key: &str| row[key].as_f64().expect("a number");
        assert!(figure("ops_per_s") > 0.0 && figure("p50_ns") <= figure("p9999_ns"), "{row}");
        assert!(figure("steal_hits") <= figure("steal_attempts"), "{row}");
        assert!(row["case"] == "cache" || figure("steal_hits") > 0.0, "{row}");
    }
}

#[test]
fn the_same_seed_is_the_same_bytes() {
    let text = |seed: &str| {
        let output = output(&with(&["--subject", "fifo,lifo-blocks", "--seed", seed]));
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let (one, again, other) = (text("1"), text("1"), text("2"));
    assert_eq!(one, again);
    assert_ne!(one.replace("seed 1", ""), other.replace("seed 2", ""));
    assert!(one.starts_with("Simulated (a model, not a measurement): epyc-2x64c, 60 packets"));
    for word in ["general: one spawner", "lifo-blocks", "published", "330"] {
        assert!(one.contains(word), "no {word} in {one}");
    }
}

#[test]
fn the_page_has_a_curve_for_each_subject_and_what_was_measured() {
    let folder = Folder::new("sim-tasks");
    let file = folder.path("tasks.html");
    let output = output(&with(&["--subject", "lifo", "--html", &file]));
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(file).expect("a page");
    assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (3, 7));
    assert_eq!(page.matches("class=\"curve dashed\"").count(), 1);
    assert!(page.contains("a model, not a measurement") && !page.contains("NaN"), "{page}");
}

#[test]
fn what_the_published_form_has_not_is_said() {
    let subjects = ["--subject", "lifo-one,lifo,domainslib", "--form"];
    let output = output(&with(&[&subjects[..], &["published"]].concat()));
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(said.contains("no such policy: lifo-one, domainslib\n"), "{said}");
    let ours = crate::common::output(&with(&[&subjects[..], &["ours"]].concat()));
    assert_eq!(stderr(&ours), "");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    for (wrong, hint) in [
        (&["--machine", "epyc"][..], "epyc-2x64c"),
        (&["--subject", "lifo,pigeon"], "lifo-blocks"),
        (&["--subject", ""], "there are"),
        (&["--subject", "domainslib", "--form", "published"], "leave --form out"),
        (&["--form", "theirs"], "published"),
        (&["--case", "trimodal"], "one-bimodal"),
        (&["--case", ""], "there are"),
        (&["--costs", "go"], "rust"),
        (&["--threads", "1"], "from 2 to 128"),
        (&["--threads", "129"], "from 2 to 128"),
        (&["--tasks", "0"], "1..=10000000"),
    ] {
        let said = refused(&[&["sim", "tasks"], wrong].concat());
        assert!(said.contains(hint), "no {hint} in {said}");
    }
}
