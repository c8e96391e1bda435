//! Tests of the examples, built as their users would build them.

use std::path::Path;
use std::process::Command;

use crate::support::{Linked, compile, here, pkg_config, prefix, run, scratch, succeeds};

/// The expected output of each example.
const EXAMPLES: [(&str, &str); 12] = [
    ("counter.c", "400000\n"),
    ("queue.c", "500500, then nothing\n"),
    ("processes.c", "1000000 in all, repaired 1 time, 0 failed\n"),
    ("table.c", "63 computed, 0 wrong\n"),
    ("work_notification.c", "100 tasks by 8 workers, each by one\n"),
    ("pipeline.c", "1000 items through 3 threads, sum 1457083\n"),
    ("echo.c", "200 clients, 4000 answers, 2 threads\n"),
    ("select.c", "1000 numbers, sum 499500\n"),
    ("event_loop.c", "1000 posted, 500 bytes, one thread\n"),
    ("on_time.c", "2 programs, 100 beats each, none early; 0 failed\n"),
    ("guards.cpp", "300 lines, all in time\n"),
    ("any.cpp", "21\n"),
];

/// The examples in Python.
const PYTHON: [(&str, &str); 2] = [
    ("asyncio_loop.py", "50 beats, none early, beside 10 of asyncio's; then a sleep\n"),
    ("asyncio_coop.py", "2 programs, 50 beats each; 0 failed\n"),
];

fn check(linked: Linked, wanted: &[&str]) {
    let directory = scratch(&format!("examples-{linked:?}"));
    for (file, expected) in EXAMPLES {
        if !wanted.is_empty() && !wanted.contains(&file) {
            continue;
        }
        let program = directory.join(file.replace('.', "-"));
        compile(&Path::new("examples").join(file), linked, &program);
        assert_eq!(String::from_utf8_lossy(&run(&program, &[]).stdout), expected, "{file}");
    }
}

#[test]
fn linked_to_the_shared_library() {
    check(Linked::Shared, &[]);
}

#[test]
fn linked_to_the_archive() {
    check(Linked::Archive, &["queue.c", "guards.cpp"]);
}

#[test]
fn linked_statically() {
    check(Linked::Static, &["queue.c", "pipeline.c", "guards.cpp"]);
}

#[test]
fn beside_asyncio() {
    for (file, expected) in PYTHON {
        let mut python = Command::new("timeout");
        python.args(["120", "python3"]).arg(here().join("examples").join(file));
        let output = succeeds(python.env("LD_LIBRARY_PATH", prefix().join("lib")));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{file}");
    }
}

#[test]
fn all_are_tried() {
    let files = std::fs::read_dir(here().join("examples")).expect("a directory");
    let mut files: Vec<_> = files
        .map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let tried = EXAMPLES.iter().chain(&PYTHON).map(|(file, _)| file.to_string());
    let mut tried: Vec<_> = tried.collect();
    files.sort();
    tried.sort();
    assert_eq!(files, tried);
}

#[test]
fn pkg_config_tells_the_version_and_the_place() {
    assert_eq!(pkg_config(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    let libdir = prefix().join("lib").display().to_string();
    assert_eq!(pkg_config(&["--libs"]), [format!("-L{libdir}"), "-lantiphon".to_owned()]);
}
