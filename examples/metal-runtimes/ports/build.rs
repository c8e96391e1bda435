//! Takes the files of a crate out of the registry's copy: that of the package's name without its
//! beginning, `ported-`.
//!
//! Each file is compiled as it is, but for attributes and documentation of the whole crate at the
//! top of its root: an included file can't have these. The script compares the lines of code that
//! are compiled with those of the registry, and says how many differ and how many are left out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    let package = env::var("CARGO_PKG_NAME").expect("Cargo sets it");
    let name = package.strip_prefix("ported-").expect("the name of a port");
    let source = registry_copy(name);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join("src");
    let mut files = Vec::new();
    copy(&source, &out, &mut files);
    let root = fs::read_to_string(source.join("lib.rs")).expect("the crate's root");
    fs::write(out.join("lib.rs"), without_attributes(&root)).expect("room for the root");
    let (mut lines, mut changed, mut left_out) = (0, 0, 0);
    for file in &files {
        let (before, after) = (code(&source.join(file)), code(&out.join(file)));
        let differ = not_among(&after, &before);
        lines += before.len();
        changed += differ;
        left_out += before.len() + differ - after.len();
    }
    println!("cargo::rustc-env=PORTED_LINES={lines}");
    println!("cargo::rustc-env=PORTED_CHANGED={changed}");
    println!("cargo::rustc-env=PORTED_LEFT_OUT={left_out}");
}

/// How many of the lines are not among the others, in their order.
fn not_among(lines: &[String], others: &[String]) -> usize {
    let mut rest = others;
    let is_missing = |line: &&String| {
        let at = rest.iter().position(|other| other == *line);
        rest = at.map_or(rest, |at| &rest[at + 1..]);
        at.is_none()
    };
    lines.iter().filter(is_missing).count()
}

/// The folder of the crate's sources.
fn registry_copy(name: &str) -> PathBuf {
    let cargo = env::var_os("CARGO").expect("Cargo sets it");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version", "1", "--manifest-path"]);
    let output = metadata.arg(folder.join("Cargo.toml")).output().expect("Cargo can be called");
    let text = String::from_utf8_lossy(&output.stdout);
    let rests = text.split("\"manifest_path\":\"").skip(1);
    let mut paths = rests.filter_map(|rest| rest.split_once("/Cargo.toml\"")).map(|(path, _)| path);
    let is_copy = |path: &&str| {
        let last = path.rsplit('/').next().and_then(|last| last.strip_prefix(name));
        let version = last.and_then(|last| last.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    let copy = paths.find(is_copy).unwrap_or_else(|| {
        panic!("Cargo does not say where {name} is: {}", String::from_utf8_lossy(&output.stderr))
    });
    Path::new(copy).join("src")
}

/// Copies a folder; adds its files that are not tests, by their paths below `src`.
fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) {
    fs::create_dir_all(to).expect("room for a folder");
    for entry in fs::read_dir(from).expect("a folder of sources") {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().expect("the name of the entry");
        if path.is_dir() {
            copy(&path, &to.join(name), files);
            continue;
        }
        fs::copy(&path, to.join(name)).expect("room for a file");
        let is_test = path.components().any(|part| part.as_os_str() == "compile_fail");
        if name != "test.rs" && !is_test {
            let root = path.ancestors().find(|folder| folder.ends_with("src"));
            let root = root.expect("a folder of sources");
            files.push(path.strip_prefix(root).expect("below it").to_owned());
        }
    }
}

/// The text without attributes and documentation of the whole crate.
fn without_attributes(text: &str) -> String {
    let (mut kept, mut open) = (String::new(), 0);
    for line in text.lines() {
        if open > 0 || line.starts_with("#![") {
            open += line.matches(['[', '(']).count();
            open -= line.matches([']', ')']).count();
        } else if !line.starts_with("//!") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The lines of code of a file, without the module of its tests.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source file");
    let tested = text.find("#[cfg(test)]\nmod ").or_else(|| text.find("#[cfg(all(test"));
    let code = &text[..tested.unwrap_or(text.len())];
    code.lines().filter(|line| is_code(line)).map(str::to_owned).collect()
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}
