//! `sim events`, in settings so small that only their keys are meaningful, and what holds at any
//! size.

use crate::common::{FRAME, Folder, has_keys, json, output, refused, rows, stderr};

const SMALL: [&str; 8] =
    ["sim", "events", "--machine", "opteron-64c", "--rounds", "3", "--threads", "4"];

fn with(more: &[&str]) -> Vec<String> {
    SMALL.iter().chain(more).map(|&word| word.to_owned()).collect()
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn a_row_has_its_waiters_and_says_that_it_is_a_model() {
    let report = json(&borrowed(&with(&["--subject", "condvar,ipi,message", "--json"])));
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "rounds", "gap_us"]);
    assert_eq!(rows(&report).len(), 6);
    let keys = ["min_ns", "p25_ns", "p50_ns", "p75_ns", "p99_ns", "mean_ns", "sender_ns", "cdf_ns"];
    for row in rows(&report) {
        has_keys(row, &["subject", "system", "case", "threads", "trace"]);
        has_keys(row, &keys);
        assert_eq!(row["model"], true, "{row}");
        let targets = row["targets"].as_array().expect("targets");
        let cpus: Vec<_> = targets.iter().filter_map(|target| target["cpu"].as_u64()).collect();
        assert_eq!(cpus, [1, 2, 3], "{row}");
        for target in targets {
            has_keys(target, &["node", "min_ns", "p99_ns", "cdf_ns"]);
        }
        let figure = |key: &str| row[key].as_f64().expect("a number");
        assert!(figure("min_ns") > 0.0 && figure("min_ns") <= figure("p50_ns"), "{row}");
        let broadcast = row["case"] == "broadcast-3";
        for key in ["last_ns", "sigma_ns", "sigma_cdf_ns"] {
            assert_eq!(row.get(key).is_some(), broadcast, "{key} in {row}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_bytes() {
    let text = |seed: &str| {
        let output = output(&borrowed(&with(&["--seed", seed])));
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let (one, again, other) = (text("1"), text("1"), text("2"));
    assert_eq!(one, again);
    assert_ne!(one.replace("seed 1", ""), other.replace("seed 2", ""));
    assert!(one.starts_with("Simulated (a model, not a measurement): opteron-64c"), "{one}");
    for word in ["unicast: 3 waiters", "broadcast-3", "kernel-condvar-kick", "ipi-loop", "to ipi"] {
        assert!(one.contains(word), "no {word} in {one}");
    }
}

#[test]
fn the_page_has_a_curve_for_each_mechanism() {
    let folder = Folder::new("sim-events");
    let file = folder.path("events.html");
    let output = output(&borrowed(&with(&["--subject", "event,ipi", "--html", &file])));
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(file).expect("a page");
    // Latencies of both cases, and the deviations of the broadcast.
    assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (3, 6));
    assert_eq!(page.matches("class=\"curve dashed\"").count(), 3);
    assert!(page.contains("a model, not a measurement") && !page.contains("NaN"), "{page}");
}

#[test]
fn a_machine_without_costs_of_a_kernel_has_the_rest() {
    let command = ["sim", "events", "--machine", "xeon-2s", "--rounds", "2", "--threads", "3"];
    let report = json(&[&command[..], &["--json"]].concat());
    let subjects: Vec<_> = rows(&report).iter().map(|row| &row["subject"]).collect();
    assert!(subjects.iter().any(|&subject| subject == "ipi"));
    assert!(!subjects.iter().any(|&subject| subject == "kernel-condvar"));
    let said = refused(&[&command[..], &["--subject", "kernel-condvar"]].concat());
    assert!(said.contains("[kernel]") && said.contains("nemo-64c"), "{said}");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    for (wrong, hint) in [
        (&["--machine", "opteron"][..], "opteron-64c"),
        (&["--subject", "condvar,pigeon"], "kernel-condvar-kick"),
        (&["--subject", ""], "there are"),
        (&["--case", "multicast"], "broadcast-N"),
        (&["--case", "broadcast-64"], "63 CPUs"),
        (&["--threads", "0"], "from 1"),
        (&["--threads", "1"], "from 2 to 64"),
        (&["--threads", "65"], "from 2 to 64"),
        (&["--rounds", "0"], "1..=10000"),
        (&["--gap-us", "0"], "1..=100000"),
    ] {
        let said = refused(&[&["sim", "events"], wrong].concat());
        assert!(said.contains(hint), "no {hint} in {said}");
    }
}
