//! Runs a program, the command or the laboratory, and reads its output.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::PROGRAM;

/// The program with these arguments, not started yet.
pub fn antiphon(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command
}

/// The output of the program with these arguments.
pub fn output(arguments: &[&str]) -> Output {
    antiphon(arguments).output().expect("the program starts")
}

/// The JSON object that the program prints. It must succeed.
pub fn json(arguments: &[&str]) -> Value {
    let output = output(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

/// The program's stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The text in one line: paragraphs of a report are broken where they fit a terminal.
pub fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Jain's index: 1 if all values are equal, and 1/n if one of n values has everything.
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<_> = values.collect();
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    sum * sum / (values.len() as f64 * squares)
}

/// The rows of a report.
pub fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().expect("rows")
}

/// Returns the message for bad arguments: checks for one line, and exit code 2.
pub fn refused(arguments: &[&str]) -> String {
    let output = output(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// Prints that a test did not run, and why, past the capture of the test harness.
pub fn skipped(why: &str) {
    let said = writeln!(std::io::stderr(), "skipped: {why}");
    assert!(said.is_ok());
}

/// Asserts that `object` has all of `keys`.
pub fn has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "no key {key} in {object:#}");
    }
}

/// The keys that every report has.
pub const FRAME: [&str; 4] = ["schema", "antiphon", "machine", "command"];

/// A temporary folder for one test, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let name = format!("antiphon-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Compiles a C program of `tests/programs`.
    pub fn compile(&self, name: &str, arguments: &[&str]) -> String {
        let usual = ["-O1", "-rdynamic", "-pthread"];
        self.compile_as("program", "cc", name, &[&usual[..], arguments].concat())
    }

    /// Compiles it with `compiler` to a program called `to`.
    pub fn compile_as(&self, to: &str, compiler: &str, name: &str, arguments: &[&str]) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        let program = self.path(to);
        // Libraries must follow the files that need them.
        let (libraries, flags): (Vec<&str>, Vec<&str>) =
            arguments.iter().partition(|argument| argument.starts_with('/'));
        let status = Command::new(compiler)
            .args(["-o", &program])
            .args(flags)
            .arg(source)
            .args(libraries)
            .status();
        assert!(status.expect("a C compiler").success());
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that can't be removed fails no test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files in a folder other than those that a test has put there.
pub fn files(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).expect("a folder").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Creates a named pipe in a folder.
pub fn fifo(folder: &Folder, name: &str) -> String {
    let path = folder.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}
