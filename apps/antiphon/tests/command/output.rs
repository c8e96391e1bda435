//! Reports of wrappers: refused before the run, or written completely, or a failure of the wrapper.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::common::{Folder, antiphon, fifo, files, output, stderr};

const RECORD: [&str; 4] = ["record", "--out", "/dev/null", "--report"];

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new("output-refused");
    for wrapper in [&["run", "--html"][..], &["run", "--report"], &RECORD] {
        let file = folder.path("no/report.html");
        let ran = folder.path("ran");
        let output = output(&[wrapper, &[&file, "--", "touch", &ran]].concat());
        assert_eq!(output.status.code(), Some(125), "{wrapper:?}: {}", stderr(&output));
        assert!(!Path::new(&ran).exists(), "{wrapper:?}");
    }
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

/// The report's reader has gone when CMD ends: that is a failure of the wrapper.
#[test]
fn a_wrappers_report_that_cannot_be_written_is_125() {
    let folder = Folder::new("output-wrapper");
    let go = folder.path("go");
    for wrapper in [&["run", "--report"][..], &RECORD] {
        let fifo = fifo(&folder, &format!("{}.txt", wrapper[0]));
        let script = format!("until test -e {go}; do sleep 0.01; done");
        let mut command = antiphon(&[wrapper, &[&fifo, "--", "sh", "-c", &script]].concat());
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let running = command.spawn().expect("the command starts");
        drop(File::open(&fifo).expect("a writer"));
        fs::write(&go, "").expect("a file");
        let output = running.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("--report") && said.contains("· locks: "), "{said}");
        fs::remove_file(&go).expect("it is there");
    }
}

/// The report is printed even if the trace can't be written.
#[test]
fn a_trace_that_cannot_be_written_is_125_behind_the_report() {
    let output = output(&["record", "--out", "/dev/full", "--", "true"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("the trace can't be written to /dev/full: ") && said.contains("· locks: "),
        "{said}"
    );
}
