//! Runs of bare-metal images.

use std::process::Command;

use serde_json::Value;

use super::{PROGRAM, skipped};

/// The exit code that says that a package is missing.
pub const MISSING: i32 = 69;

/// Runs the laboratory; returns whether it has passed, and its report. `None`: there is no
/// emulator, no disassembler, or no loader.
pub fn metal(arguments: &[&str]) -> Option<(bool, Value)> {
    for program in ["qemu-system-x86_64", "objdump"] {
        if Command::new(program).arg("--version").output().is_err() {
            skipped(&format!("no {program}: apt-get install qemu-system-x86 binutils"));
            return None;
        }
    }
    let mut command = Command::new(PROGRAM);
    command.args(["metal", "--json"]).args(arguments);
    if !arguments.contains(&"--seconds") {
        // These tests run in the time that others leave.
        command.args(["--seconds", "600"]);
    }
    let output = command.output();
    let output = output.expect("the laboratory runs");
    if output.status.code() == Some(MISSING) {
        skipped(String::from_utf8_lossy(&output.stderr).trim_end());
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    Some((output.status.success(), report))
}

/// A figure of a report.
pub fn figure(report: &Value, name: &str) -> u64 {
    report["figures"][name].as_u64().unwrap_or_else(|| panic!("no figure {name} in {report:#}"))
}

/// Checks each figure that has an expected one, `NAME.expected`: the two must be equal.
pub fn is_exact(report: &Value) {
    let figures = report["figures"].as_object().expect("figures");
    let names = figures.keys().filter_map(|name| name.strip_suffix(".expected"));
    let wrong = |name: &&str| figure(report, name) != figure(report, &format!("{name}.expected"));
    let wrong: Vec<_> = names.filter(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}: {report:#}");
}
