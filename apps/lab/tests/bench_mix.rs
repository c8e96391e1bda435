//! `bench mix`, in settings so small that only the keys of its rows are meaningful.
//!
//! A repetition that loses a frame, or mixes frames of different times, ends with exit code 1: so
//! each run here that succeeds has shown that it did neither.

mod common;

use common::{FRAME, has_keys, json, output, refused, stderr};
use serde_json::Value;

const SMALL: [&str; 8] =
    ["bench", "mix", "--repetitions", "1", "--frames", "5", "--conferences", "3"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    report["rows"].as_array().expect("a list").clone()
}

fn has_figures(row: &Value) {
    has_keys(row, &["subject", "policy", "peer", "ours", "case", "codec", "wait", "phase", "legs"]);
    has_keys(row, &["frame_bytes", "frames", "load", "workers", "breaches_p25", "breaches_p75"]);
    has_keys(row, &["tasks_per_s", "cpus", "ratio", "ratio_low95", "others_cpus", "silos"]);
    let of = |name: &str| row["latency_ns"][name].as_f64().expect("a number");
    let ordered = ["p50", "p99", "p999", "p9999"].map(of);
    assert!(ordered.is_sorted() && ordered[3] <= of("max") * 1.04 && of("mean") > 0.0, "{row:#}");
    let breaches = row["breaches"].as_f64().expect("a share");
    assert!((0.0..=1.0).contains(&breaches), "{row:#}");
    // No frame is late unless the slowest one is.
    assert_eq!(breaches > 0.0, of("max") > 1e7, "{row:#}");
}

#[test]
fn each_policy_and_composition_sends_each_frame() {
    let names = ["fifo/steal-half", "lifo/steal-one", "lifo-slot/steal-half", "staged", "edf"];
    let all = ["", "+silos", "+stages"].map(|how| names.map(|name| format!("{name}{how}")));
    let all = all.concat().join(",");
    let rows = rows(&["--subject", &all, "--codec", "md5,g711", "--legs", "3"]);
    assert_eq!(rows.len(), 2 * (15 + 1));
    rows.iter().for_each(has_figures);
    for row in &rows {
        assert_eq!((&row["conferences"], &row["legs"]), (&3.0.into(), &3.into()), "{row:#}");
        assert_eq!((&row["peer"], &row["case"]), (&"threads".into(), &"fixed".into()));
        let subject = row["subject"].as_str().expect("a name");
        let threads = match subject.split_once('+') {
            None if subject == "threads" => 3 * (3 + 1),
            None => 2,
            Some((_, "silos")) => 10,
            Some(_) => 3,
        };
        assert_eq!((&row["workers"], &row["threads"]), (&2.into(), &threads.into()), "{row:#}");
    }
}

#[test]
fn silos_can_have_as_many_threads_as_there_are_workers() {
    let size = ["--silos", "2", "--workers", "2,3", "--against", ""];
    let rows = rows(&[&size[..], &["--subject", "edf,edf+silos"]].concat());
    let threads: Vec<_> = rows.iter().map(|row| row["threads"].as_u64().expect("some")).collect();
    assert_eq!(threads, [2, 2, 3, 3]);
    rows.iter().for_each(has_figures);
}

/// A frame that is not as loud as the tone also ends it with exit code 1.
#[test]
fn opus_is_decoded_and_encoded_where_its_library_is() {
    let subjects = ["--subject", "lifo/steal-half,staged,fifo/steal-half+stages"];
    let arguments = [&subjects[..], &["--codec", "opus,md5+g711+opus", "--legs", "3"]].concat();
    let done = output(&[&SMALL, &arguments[..]].concat());
    if done.status.code() == Some(69) {
        let said = stderr(&done);
        assert!(said.contains("apt install libopus0"), "{said}");
        return eprintln!("NOT TESTED: {said}");
    }
    let rows = rows(&arguments);
    assert_eq!(rows.len(), 2 * (3 + 1));
    rows.iter().for_each(has_figures);
    let codecs: Vec<_> = rows.iter().map(|row| row["codec"].as_str().expect("a name")).collect();
    assert_eq!(codecs, [["opus"; 4], ["md5+g711+opus"; 4]].concat());
}

#[test]
fn who_waits_by_yielding_and_who_begins_together_send_them_too() {
    let how = ["--wait", "yield,sleep", "--phase", "together,spread", "--workers", "1,3"];
    let rows = rows(&[&how[..], &["--subject", "lifo/steal-half,levels+stages"]].concat());
    assert_eq!(rows.len(), 2 * 2 * 2 * 3);
    rows.iter().for_each(has_figures);
}

#[test]
fn as_many_as_can_be_had_are_looked_for() {
    for row in rows(&["--most", "--against", "", "--subject", "staged,fifo/steal-half"]) {
        assert_eq!(row["case"], "most");
        let most = row["conferences"].as_f64().expect("a number");
        assert!((0.0..=8192.0).contains(&most), "{row:#}");
        // On a machine that is busy for long, it may find none.
        if most > 0.0 {
            has_figures(&row);
            assert!(row["breaches"].as_f64() < Some(0.01), "{row:#}");
        }
    }
}

#[test]
fn tables_say_what_was_measured() {
    let done = output(&[&SMALL[..], &["--subject", "staged+silos"]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    for said in [
        "3 conferences of 2 legs, 5 frames of 1600 bytes, md5",
        "staged+silos",
        "breaches",
        "threads",
    ] {
        assert!(text.contains(said), "no {said} in {text}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (wrong, told) in [
        (&["--codec", "mp3"][..], "there are: md5, g711, opus"),
        (&["--codec", "g711+"], "no codec ''"),
        (&["--subject", "lifo"], "no policy of ours 'lifo'"),
        (&["--subject", "lifo/steal-half+pools"], "no policy of ours"),
        (&["--against", "go"], "no peer 'go'"),
        (&["--subject", "", "--against", ""], "nothing to measure"),
        (&["--wait", "spin"], "sleep"),
        (&["--phase", "late"], "spread"),
        (&["--conferences", "0"], "'0' is not a number"),
        (&["--conferences", "4096", "--legs", "100"], "more than 100000"),
        (&["--legs", "0"], "invalid value '0'"),
        (&["--frame", "161"], "write a multiple"),
        (&["--frames", "0"], "invalid value '0'"),
        (&["--workers", "0"], "'0' is not a number"),
        (&["--silos", "0"], "invalid value '0'"),
        (&["--repetitions", "0"], "--repetitions takes a number"),
    ] {
        let said = refused(&[&SMALL[..2], wrong].concat());
        assert!(said.contains(told), "no {told} in {said}");
    }
}
