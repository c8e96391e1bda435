//! The probes of the library: their notes say where they are, and gdb stops at them.

mod support;

use std::process::Command;

use support::{compile, installed, library, scratch, skipped};

const NAMES: [&str; 3] = ["lock_wait_start", "lock_acquired", "lock_gave_up"];

#[test]
fn the_notes_have_a_place_and_two_arguments_each() {
    // `readelf` is one of the tools that come with a C compiler.
    let notes = Command::new("readelf").args(["--notes", "--wide"]).arg(library()).output();
    let notes = notes.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let notes = notes.unwrap_or_default();
    let lines: Vec<&str> = notes.lines().map(str::trim).collect();
    for name in NAMES {
        let line = format!("Name: {name}");
        let found: Vec<_> = (0..lines.len()).filter(|&at| lines[at] == line).collect();
        assert!(!found.is_empty(), "no {name}: {notes}");
        for at in found {
            assert!(lines[at - 1].ends_with("Provider: antiphon"), "{}", lines[at - 1]);
            // Without a base gdb finds no probe.
            assert!(!lines[at + 1].contains("Base: 0x0000000000000000"), "{}", lines[at + 1]);
            let place = lines[at + 1].strip_prefix("Location: 0x").and_then(|rest| rest.get(..16));
            let place = place.and_then(|place| u64::from_str_radix(place, 16).ok());
            assert!(place.is_some_and(|place| place != 0), "{}", lines[at + 1]);
            let arguments = lines[at + 2].strip_prefix("Arguments: ").unwrap_or("");
            let of_eight = |argument: &str| argument.starts_with("8@");
            assert!(arguments.split(' ').filter(|it| of_eight(it)).count() == 2, "{arguments}");
        }
    }
}

#[test]
fn gdb_stops_where_a_wait_begins_and_where_it_ends() {
    if !installed("gdb") {
        return;
    }
    let directory = scratch("probes");
    let program = compile(&directory, "probes.c");
    let mut gdb = Command::new("timeout");
    gdb.args(["-k", "5", "100", "gdb", "-batch", "-nx"]);
    let preload = format!("set exec-wrapper env LD_PRELOAD={}", library().display());
    for command in [
        preload.as_str(),
        "set breakpoint pending on",
        "break ready",
        "run",
        // Now the library is loaded.
        "break -probe-stap antiphon:lock_wait_start",
        "break -probe-stap antiphon:lock_acquired",
        "break -probe-stap antiphon:lock_gave_up",
        "continue",
        "printf \"start %d %d %d\\n\", $_probe_argc, $_probe_arg0 == &mutex, $_probe_arg1",
        "continue",
        "printf \"gave up %d %d %d\\n\", $_probe_argc, $_probe_arg0 == &mutex, $_probe_arg1",
        "continue",
        "printf \"start %d %d %d\\n\", $_probe_argc, $_probe_arg0 == &mutex, $_probe_arg1",
        "continue",
        "printf \"acquired %d %d %d\\n\", $_probe_argc, $_probe_arg0 == &mutex, $_probe_arg1",
        "continue",
    ] {
        gdb.args(["-ex", command]);
    }
    let Ok(output) = gdb.arg(&program).output() else { panic!("no timeout") };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("ptrace: Operation not permitted") {
        return skipped("gdb may not run programs here");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let stops: Vec<&str> = text
        .lines()
        .filter(|line| ["start ", "gave up ", "acquired "].iter().any(|of| line.starts_with(of)))
        .collect();
    assert_eq!(
        stops,
        ["start 2 1 0", "gave up 2 1 0", "start 2 1 0", "acquired 2 1 0"],
        "{text}{said}"
    );
    assert!(text.contains("exited normally"), "{text}{said}");
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
