//! Takes chili's files out of the registry's copy.
//!
//! Cargo says where that is. Each file is compiled as it is, but for attributes and documentation
//! of the whole crate at the top of its root: an included file can't have these. The script counts
//! the lines that it leaves out, and the lines that it would change, of which there are none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const NAME: &str = "chili";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let source = registry_copy();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let root = fs::read_to_string(source.join("lib.rs")).expect("chili's root");
    let job = fs::read_to_string(source.join("job.rs")).expect("chili's module");
    let (left_out, kept): (Vec<_>, Vec<_>) = root.lines().partition(|line| is_of_the_crate(line));
    let kept = kept.join("\n") + "\n";
    fs::write(out.join("chili.rs"), &kept).expect("room for the file");
    fs::write(out.join("job.rs"), &job).expect("room for the file");
    let (before, after) = (numbered(&root) + numbered(&job), numbered(&kept) + numbered(&job));
    let left_out_code = left_out.iter().filter(|line| is_code(line)).count();
    println!("cargo::rustc-env=PORTED_LINES={before}");
    println!("cargo::rustc-env=LEFT_OUT_LINES={left_out_code}");
    println!("cargo::rustc-env=CHANGED_LINES={}", before - after - left_out_code);
}

/// The folder of chili's sources.
fn registry_copy() -> PathBuf {
    let cargo = env::var_os("CARGO").expect("Cargo sets it");
    let manifest =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it")).join("Cargo.toml");
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let output = metadata.output().expect("Cargo can be called");
    let text = String::from_utf8_lossy(&output.stdout);
    let (folder, end) = (format!("/{NAME}-"), "/Cargo.toml\"");
    let paths = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split_once(end));
    let mut copies = paths.map(|(path, _)| path).filter(|path| path.contains(&folder));
    let copy = copies.next().unwrap_or_else(|| {
        panic!("Cargo does not say where {NAME} is: {}", String::from_utf8_lossy(&output.stderr))
    });
    Path::new(copy).join("src")
}

/// Whether a line is an attribute or documentation of the whole crate.
fn is_of_the_crate(line: &str) -> bool {
    line.starts_with("#![") || line.starts_with("//!")
}

/// The lines of code of a file, without the module of its tests.
fn numbered(text: &str) -> usize {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| is_code(line)).count()
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}
