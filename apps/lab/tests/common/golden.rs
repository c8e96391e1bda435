//! Path lengths of bare metal, in instructions, as they were recorded with a toolchain: a compiler
//! and an emulator. With the same two they must be the same; with others they need not be.
//!
//! A file is `tests/golden/metal-RUSTC-QEMU.json`: the toolchain, and figures by number of CPUs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use super::skipped;
use serde_json::{Value, json};

/// Figures by number of CPUs, and by name.
pub type Lengths = BTreeMap<String, BTreeMap<String, u64>>;

/// Set to record instead of to compare.
const RECORD: &str = "ANTIPHON_RECORD_GOLDEN";
const COMMAND: &str = "ANTIPHON_RECORD_GOLDEN=1 cargo test -p antiphon-lab --test metal -- paths";

/// Compares path lengths with the recorded ones of this toolchain, or records them.
pub fn check(lengths: &Lengths) {
    let toolchain = ["rustc", "qemu-system-x86_64"].map(version);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let [rustc, qemu] = toolchain.each_ref().map(|version| number(version));
    let file = folder.join(format!("metal-{rustc}-{qemu}.json"));
    let present = json!({"toolchain": toolchain, "command": COMMAND, "instructions": lengths});
    if env::var_os(RECORD).is_some() {
        fs::create_dir_all(&folder).expect("the folder");
        fs::write(&file, format!("{present:#}\n")).expect("the file");
        return;
    }
    let recorded = fs::read_to_string(&file).ok().map(|text| {
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"))
    });
    match recorded {
        Some(recorded) if recorded["toolchain"] == present["toolchain"] => {
            let changes = changes(&recorded["instructions"], &present["instructions"]);
            assert!(
                changes.is_empty(),
                "paths are longer or shorter than recorded; if that is meant to be, record them by \
                 `{COMMAND}`:\n{changes}"
            );
        }
        _ => skipped(&format!(
            "no path lengths were recorded with {} and {}: `{COMMAND}` does it",
            toolchain[0], toolchain[1]
        )),
    }
}

/// A line for each figure that is not the same in both.
fn changes(before: &Value, now: &Value) -> String {
    let mut out = String::new();
    let empty = serde_json::Map::new();
    let figures = |of: &Value, cpus: &str| of[cpus].as_object().unwrap_or(&empty).clone();
    for cpus in now.as_object().unwrap_or(&empty).keys() {
        let (before, now) = (figures(before, cpus), figures(now, cpus));
        let names: std::collections::BTreeSet<_> = before.keys().chain(now.keys()).collect();
        for name in names.into_iter().filter(|&name| before.get(name) != now.get(name)) {
            let value = |of: &serde_json::Map<_, Value>| of.get(name).cloned().unwrap_or_default();
            out += &format!("{name} on {cpus} CPUs: {} is now {}\n", value(&before), value(&now));
        }
    }
    out
}

/// What a program says of its version, in one line.
fn version(program: &str) -> String {
    let program = if program == "rustc" {
        env::var_os("RUSTC").unwrap_or_else(|| program.into())
    } else {
        program.into()
    };
    let output = Command::new(&program).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The number in it.
fn number(version: &str) -> &str {
    let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    version.split_whitespace().find(is_number).unwrap_or("unknown")
}
