//! Takes the files of a crate out of the registry's copy: that of the package's name without its
//! beginning, `ported-`.
//!
//! Each file is compiled as it is, but for attributes and documentation of the whole crate at the
//! top of its root: an included file can't have these. The script counts the lines of code that it
//! leaves out, and compares all others with those that are compiled.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    let package = env::var("CARGO_PKG_NAME").expect("Cargo sets it");
    let name = package.strip_prefix("ported-").expect("the name of a port");
    let source = registry_copy(name);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join("src");
    let mut counts = Counts::default();
    copy(&source, &out, &mut counts);
    let root = fs::read_to_string(source.join("lib.rs")).expect("the crate's root");
    let (kept, left_out) = without_attributes(&root);
    counts.left_out = left_out.iter().filter(|line| is_code(line)).count();
    fs::write(out.join("lib.rs"), &kept).expect("room for the root");
    for file in &counts.files {
        counts.lines += code(&source.join(file)).len();
        counts.kept += code(&out.join(file)).len();
    }
    let changed = counts.lines - counts.kept - counts.left_out;
    println!("cargo::rustc-env=PORTED_LINES={}", counts.lines);
    println!("cargo::rustc-env=PORTED_CHANGED={changed}");
    println!("cargo::rustc-env=PORTED_LEFT_OUT={}", counts.left_out);
}

/// Counts of lines of code, in files that are not tests.
#[derive(Default)]
struct Counts {
    files: Vec<PathBuf>,
    lines: usize,
    kept: usize,
    left_out: usize,
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

/// Copies a folder.
fn copy(from: &Path, to: &Path, counts: &mut Counts) {
    fs::create_dir_all(to).expect("room for a folder");
    for entry in fs::read_dir(from).expect("a folder of sources") {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().expect("the name of the entry");
        if path.is_dir() {
            copy(&path, &to.join(name), counts);
            continue;
        }
        fs::copy(&path, to.join(name)).expect("room for a file");
        let is_test = path.components().any(|part| part.as_os_str() == "compile_fail");
        if name != "test.rs" && !is_test {
            let root = path.ancestors().find(|folder| folder.ends_with("src"));
            let root = root.expect("a folder of sources");
            counts.files.push(path.strip_prefix(root).expect("below it").to_owned());
        }
    }
}

/// The text without attributes and documentation of the whole crate; and these.
fn without_attributes(text: &str) -> (String, Vec<&str>) {
    let (mut kept, mut left_out) = (String::new(), Vec::new());
    let mut open = 0;
    for line in text.lines() {
        if open > 0 || line.starts_with("#![") {
            open += line.matches(['[', '(']).count();
            open -= line.matches([']', ')']).count();
            left_out.push(line);
        } else if line.starts_with("//!") {
            left_out.push(line);
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    (kept, left_out)
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
