//! A program's files that were replaced before the report: functions of the new files are not
//! named.

mod common;

use common::{Folder, antiphon, stderr};
use serde_json::Value;

/// A host with a plug-in, and another library.
struct Plug {
    folder: Folder,
    host: String,
}

impl Plug {
    /// Links each file with these flags.
    fn new(test: &str, flags: &[&str]) -> Self {
        let folder = Folder::new(test);
        let host = folder.compile_as("host", "cc", "plug_host.c", &["-pthread", "-ldl"]);
        let library = |to: &str, name: &str| {
            folder.compile_as(to, "cc", name, &[&["-shared", "-fPIC", "-O1"], flags].concat())
        };
        library("plug.so", "plug.c");
        library("other.so", "plug_other.c");
        library("original.so", "plug.c");
        Self { folder, host }
    }

    /// Runs the host, which runs `command` in a shell; returns the report.
    fn run(&self, command: &str, when: &str) -> Value {
        let (plugin, report) = (self.folder.path("plug.so"), self.folder.path("report.json"));
        std::fs::copy(self.folder.path("original.so"), &plugin).expect("a copy");
        let arguments = ["run", "--report", &report, "--", &self.host, &plugin, command, when];
        let done = antiphon(&arguments).output().expect("the command starts");
        assert!(done.status.success(), "{}", stderr(&done));
        let text = std::fs::read(&report).expect("a report");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Checks that the sites of the plug-in are named by function, and that no note reports missing
    /// names.
    fn is_named(&self, command: &str, when: &str) {
        let report = self.run(command, when);
        let sites = sites(&report);
        assert!(sites.iter().any(|site| named(site)), "{command}: {sites:?}");
        assert_eq!(note(&report), None, "{command}");
    }

    /// Checks that the sites of the plug-in are named by file and offset, and that the report says
    /// why.
    fn is_unnamed(&self, command: &str, when: &str, why: &str) {
        let report = self.run(command, when);
        let sites = sites(&report);
        assert!(sites.iter().any(|site| site.starts_with("plug.so+0x")), "{command}: {sites:?}");
        assert!(!sites.iter().any(|site| site.contains("other_function")), "{command}: {sites:?}");
        let note = note(&report).unwrap_or_else(|| panic!("no note in {report:#}"));
        assert!(note.contains("/plug.so (") && note.contains(why), "{command}: {note}");
    }
}

fn sites(report: &Value) -> Vec<String> {
    let locks = report["locks"].as_array().expect("rows");
    locks.iter().filter_map(|row| row["site"].as_str()).map(str::to_owned).collect()
}

fn named(site: &str) -> bool {
    site.starts_with("plug_work+0x") && site.ends_with(" (plug.so)")
}

/// The note on files without names.
fn note(report: &Value) -> Option<&str> {
    let notes = report["notes"].as_array().expect("notes");
    notes.iter().filter_map(Value::as_str).find(|note| note.contains("have no function names"))
}

/// Shell commands for the plug-in `$0`, which change to its folder.
const NOTHING: &str = "true";
const OTHER: &str = r#"cd "${0%/*}" && cp other.so new && mv new plug.so"#;
const DELETED: &str = r#"rm "$0""#;
const AGAIN: &str = r#"cd "${0%/*}" && cp original.so new && mv new plug.so"#;
/// The new file may get the inode of the old one.
const SAME_NAME: &str = r#"cd "${0%/*}" && rm plug.so && cp other.so plug.so"#;
const IN_PLACE: &str = r#"cd "${0%/*}" && cat other.so > plug.so"#;

#[test]
fn a_file_that_was_replaced_is_known_by_its_build() {
    let plug = Plug::new("replaced-build", &["-Wl,--build-id"]);
    plug.is_named(NOTHING, "");
    plug.is_unnamed(OTHER, "", "replaced since");
    plug.is_unnamed(SAME_NAME, "", "replaced since");
    plug.is_unnamed(IN_PLACE, "", "replaced since");
    plug.is_unnamed(DELETED, "", "be read: no such file");
    // The same package, installed again.
    plug.is_named(AGAIN, "");
}

#[test]
fn a_file_that_was_replaced_before_its_first_lock_is_known_too() {
    let plug = Plug::new("replaced-before", &["-Wl,--build-id"]);
    plug.is_unnamed(OTHER, "before", "replaced since");
    plug.is_unnamed(DELETED, "before", "deleted since");
    plug.is_named(AGAIN, "before");
}

#[test]
fn a_file_without_a_build_id_is_known_by_inode_and_time() {
    let plug = Plug::new("replaced-bare", &["-Wl,--build-id=none"]);
    plug.is_named(NOTHING, "");
    for when in ["", "before"] {
        plug.is_unnamed(OTHER, when, "replaced since");
        plug.is_unnamed(SAME_NAME, when, "replaced since");
    }
    plug.is_unnamed(IN_PLACE, "", "replaced since");
    plug.is_unnamed(DELETED, "before", "deleted since");
}

#[test]
fn a_program_that_was_replaced_is_known_too() {
    let folder = Folder::new("replaced-program");
    let program = folder.compile("replaced.c", &["-Wl,--build-id"]);
    let report = folder.path("report.json");
    let done = antiphon(&["run", "--report", &report, "--", &program]).output();
    let done = done.expect("the command starts");
    assert!(done.status.success(), "{}", stderr(&done));
    let text = std::fs::read(&report).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    assert!(sites(&report).iter().all(|site| site.starts_with("program+0x")), "{report:#}");
    assert!(note(&report).is_some_and(|note| note.contains("replaced since")), "{report:#}");
}
