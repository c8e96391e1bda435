//! The example `x_server`, in a short form: it leaves nothing behind, however it ends.

#[path = "../../../../crates/antiphon/tests/support/example.rs"]
mod example;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use example::{refuses, text};
use serde_json::Value;

/// Longer than any step takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Returns whether a scheme can run here; prints the reason if not.
fn is_here(scheme: &str) -> bool {
    let Some(program) = example::program("x_server") else { return false };
    let has = |name: &str| Command::new(name).arg("-version").output().is_ok();
    if !has("Xvfb") || !has("taskset") {
        println!("skipped: no Xvfb, or no taskset, on this machine");
        return false;
    }
    if antiphon_linux::allowed().len() < 2 {
        println!("skipped: one CPU");
        return false;
    }
    let command = program.parent().and_then(Path::parent).expect("two folders").join("antiphon");
    if scheme.contains("--coop") && !command.is_file() {
        println!("skipped: no command here; cargo build -p antiphon-cli builds it");
        return false;
    }
    true
}

#[test]
fn frames_are_shown_by_each_scheme() {
    for (scheme, rows) in [("plain", 2), ("--coop", 3)] {
        if !is_here(scheme) {
            continue;
        }
        let mut command = example::example("x_server").expect("it was here");
        let arguments = ["--seconds", "1", "--rounds", "1", "--hogs", "1", "--json", "--scheme"];
        let done = command.args(arguments).arg(scheme).output().expect("timeout runs it");
        assert!(done.status.success(), "{}", text(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout).expect("one object");
        let shown = report["rows"].as_array().expect("rows");
        assert_eq!(shown.len(), rows, "{report}");
        for row in shown {
            assert_eq!(row["frames"], 60, "{row}");
            let late = ["p50", "p90", "p99", "max"]
                .map(|key| row["tardiness_ms"][key].as_f64().expect("a number"));
            assert!(late.is_sorted() && row["copies_per_s"].as_u64() > Some(0), "{row}");
        }
    }
}

#[test]
fn what_it_does_not_know_is_refused_before_anything_runs() {
    refuses("x_server", &["--scheme", "nope"], 2, "none has that in its name: plain, XSyncAwait; ");
    refuses("x_server", &["--seconds", "0"], 2, "--seconds 0: x_server [--seconds S]");
}

/// A copy of the example in a folder without the command.
#[test]
fn a_command_that_is_missing_is_named_before_the_first_scheme() {
    if !is_here("plain") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("antiphon-x-server-{}", std::process::id()));
    let examples = folder.join("examples");
    fs::create_dir_all(&examples).expect("a folder");
    let copy = examples.join("x_server");
    fs::copy(example::program("x_server").expect("it is here"), &copy).expect("a copy");
    let done = Command::new(&copy).args(["--seconds", "1"]).output();
    let _ = fs::remove_dir_all(&folder);
    let done = done.expect("it starts");
    assert_eq!(done.status.code(), Some(69));
    let said = text(&done.stderr);
    assert!(said.contains("cargo build -p antiphon-cli") && !said.contains("round 1"), "{said}");
}

/// The parent of each process; processes that have ended are left out.
fn parents() -> HashMap<u32, u32> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").expect("procfs").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name, which may contain anything: the state, and the parent.
        let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        if let (Some(state), Some(parent)) = (words.next(), words.next())
            && state != "Z"
        {
            parents.extend(parent.parse().map(|parent: u32| (id, parent)));
        }
    }
    parents
}

/// A process and all its descendants.
fn family(of: u32) -> Vec<u32> {
    let parents = parents();
    let mut found = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(id, _)| *id));
        at += 1;
    }
    found.split_off(1)
}

fn is_hog(id: u32) -> bool {
    let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command.ends_with(b"\0hog\0")
}

/// Waits until `is_so` returns true.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_kills_it_kills_all_that_it_has_started() {
    for scheme in ["plain, XSyncAwait", "--coop t3"] {
        if !is_here(scheme) {
            continue;
        }
        let mut command = Command::new(example::program("x_server").expect("it is here"));
        command.args(["--seconds", "100", "--hogs", "2", "--scheme", scheme]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("it is piped");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        assert!(line.starts_with("round 1"), "{line}");
        let id = child.id();
        // The hogs are started last.
        let hogs = || family(id).into_iter().filter(|&id| is_hog(id)).count();
        until("it starts hogs", || hogs() == 2);
        let started = family(id);
        child.kill().expect("a child");
        child.wait().expect("a child");
        let is_gone = || {
            let parents = parents();
            started.iter().all(|id| !parents.contains_key(id))
        };
        until(&format!("{scheme}: {started:?} end with it"), is_gone);
    }
}
