//! The bare-metal image in QEMU: its stress passes, its failures are reported, and its paths are as
//! short as is promised, on 1, 2, 4 and 8 CPUs.

mod common;

use std::process::Command;

use common::{PROGRAM, skipped};
use serde_json::Value;

/// Runs the laboratory; returns whether it has passed, and its report. `None`: there is no
/// emulator, or no disassembler.
fn metal(arguments: &[&str]) -> Option<(bool, Value)> {
    for program in ["qemu-system-x86_64", "objdump"] {
        if Command::new(program).arg("--version").output().is_err() {
            skipped(&format!("no {program}: apt-get install qemu-system-x86 binutils"));
            return None;
        }
    }
    let output = Command::new(PROGRAM).args(["metal", "--json"]).args(arguments).output();
    let output = output.expect("the laboratory runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    Some((output.status.success(), report))
}

fn figure(report: &Value, name: &str) -> u64 {
    report["figures"][name].as_u64().unwrap_or_else(|| panic!("no figure {name} in {report:#}"))
}

#[test]
fn paths_are_as_short_as_is_promised_on_any_number_of_cpus() {
    let mut broadcasts = Vec::new();
    for cpus in ["1", "2", "4", "8"] {
        let arguments = ["--cpus", cpus, "--exact", "--program", "paths"];
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        if cpus == "1" {
            continue;
        }
        let raw = figure(&report, "raw_ipi");
        for (name, above) in
            [("message_entry", 30), ("message_body", 100), ("condvar_running", 200)]
        {
            let path = figure(&report, &format!("{name}.max"));
            assert!(path <= raw + above, "{name} on {cpus} CPUs: {path}, and raw_ipi is {raw}");
        }
        broadcasts.push(figure(&report, "broadcast_send"));
        broadcasts.push(figure(&report, "broadcast_send.max"));
    }
    assert!(broadcasts.iter().all(|sent| *sent == broadcasts[0]), "{broadcasts:?}");
}

#[test]
fn two_exact_runs_print_the_same() {
    let run = || metal(&["--cpus", "2", "--exact", "--program", "paths"]);
    let (Some((_, one)), Some((_, other))) = (run(), run()) else { return };
    assert_eq!(one["figures"], other["figures"]);
}

#[test]
fn locks_waits_and_messages_lose_nothing() {
    for arguments in [
        &["--cpus", "1", "--exact", "--option", "preempt_us=50"][..],
        &["--cpus", "2", "--exact", "--option", "idle=watch"],
        &["--cpus", "4", "--exact", "--option", "preempt_us=20"],
        &["--cpus", "8", "--exact", "--nodes", "2"],
        &["--cpus", "2", "--option", "preempt_us=500"],
    ] {
        let mut all = arguments.to_vec();
        all.extend(["--program", "stress", "--option", "rounds=100"]);
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{all:?}: {report:#}");
        for part in
            ["mutex", "condvar", "event", "barrier", "sleep", "mailbox", "prompt", "broadcast"]
        {
            let expected = figure(&report, &format!("{part}.expected"));
            assert_eq!(figure(&report, part), expected, "{part}: {report:#}");
        }
    }
}

#[test]
fn many_cpus_lose_nothing() {
    for size in [["--cpus", "64", "--nodes", "8"], ["--cpus", "255", "--nodes", "1"]] {
        let mut all = size.to_vec();
        all.extend(["--memory", if size[1] == "64" { "64" } else { "2048" }]);
        all.extend(["--program", "stress", "--seconds", "300"]);
        all.extend(["--option", "rounds=10", "--option", "threads=1"]);
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{report:#}");
    }
}

#[test]
fn each_way_to_fail_ends_in_a_report() {
    for (program, outcome, function) in [
        ("fault", "faulted", "fault"),
        ("overflow", "faulted", "deeper"),
        ("panic", "panicked", "panic::{{closure}}"),
    ] {
        let Some((passed, report)) = metal(&["--cpus", "2", "--program", program]) else { return };
        assert!(!passed);
        assert_eq!(report["outcome"], outcome, "{report:#}");
        let frames = report["backtrace"].as_array().expect("a backtrace").iter();
        let functions = frames.filter_map(|frame| frame["functions"].as_array()).flatten();
        let is_it = |found: &Value| {
            let text = |key| found[key].as_str().unwrap_or_default();
            text("name").contains(function) && text("place").contains("kernel/src/faults.rs")
        };
        assert!(functions.into_iter().any(is_it), "{program}: {report:#}");
    }
}

#[test]
fn nodes_have_their_own_memory() {
    let arguments = ["--cpus", "4", "--nodes", "2", "--memory", "2560", "--program", "hello"];
    let Some((passed, report)) = metal(&arguments) else { return };
    assert!(passed, "{report:#}");
    assert_eq!(figure(&report, "nodes"), 2);
    // Memory above 4 GiB is used, too.
    assert!(figure(&report, "node1.memory_kib") > 2_500_000, "{report:#}");
}
