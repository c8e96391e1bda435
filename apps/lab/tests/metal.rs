//! The bare-metal image in QEMU: its stress passes, its failures are reported, and its paths are as
//! short as is promised, on 1, 2, 4 and 8 CPUs.

mod common;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use common::golden::{self, Lengths};
use common::metal::{MISSING, figure, is_exact, metal};
use common::{PROGRAM, skipped};
use serde_json::Value;

#[test]
fn paths_are_as_short_as_is_promised_on_any_number_of_cpus() {
    let mut broadcasts = Vec::new();
    let mut lengths = Lengths::new();
    for cpus in ["1", "2", "4", "8"] {
        let arguments = ["--cpus", cpus, "--exact", "--program", "paths"];
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        lengths.insert(cpus.to_owned(), path_lengths(&report));
        if cpus == "1" {
            continue;
        }
        let raw = figure(&report, "raw_ipi");
        for (name, above) in
            [("message_entry", 30), ("message_body", 100), ("condvar_running", 200)]
        {
            let path = figure(&report, &format!("{name}.max"));
            assert!(path <= raw + above, "{name} on {cpus} CPUs: {path}, and raw_ipi is {raw}");
        }
        broadcasts.push(figure(&report, "broadcast_send"));
        broadcasts.push(figure(&report, "broadcast_send.max"));
    }
    assert!(broadcasts.iter().all(|sent| *sent == broadcasts[0]), "{broadcasts:?}");
    golden::check(&lengths);
}

/// The figures that are lengths of a path: those without a dot are medians. `…_last` are sums of
/// what several CPUs run by turns.
fn path_lengths(report: &Value) -> BTreeMap<String, u64> {
    let figures = report["figures"].as_object().expect("figures").iter();
    let lengths = figures.filter(|(name, _)| !name.contains('.') && !name.ends_with("_last"));
    lengths.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect()
}

#[test]
fn two_exact_runs_print_the_same() {
    let run = || metal(&["--cpus", "2", "--exact", "--program", "paths"]);
    let (Some((_, one)), Some((_, other))) = (run(), run()) else { return };
    assert_eq!(one["figures"], other["figures"]);
}

/// Half a second at an instruction in a nanosecond, with the firmware's part.
#[test]
fn the_first_code_of_the_program_runs_within_half_a_billion_instructions() {
    let run = || metal(&["--cpus", "4", "--exact", "--program", "hello"]);
    let (Some((_, one)), Some((_, other))) = (run(), run()) else { return };
    let ticks = figure(&one, "first_code_ticks");
    assert!(ticks <= 500_000_000, "{ticks} instructions");
    // The kernel's own part.
    let kernel_us = figure(&one, "first_code_us");
    assert!(kernel_us * 1000 < ticks, "{kernel_us} µs of {ticks} instructions");
    assert_eq!(ticks, figure(&other, "first_code_ticks"), "an exact run is the same each time");
}

#[test]
fn a_thread_that_can_not_be_created_takes_nothing() {
    for machine in [&["--cpus", "1"][..], &["--cpus", "4", "--nodes", "2"]] {
        let program = ["--memory", "64", "--exact", "--program", "exhaust"];
        let Some((passed, report)) = metal(&[machine, &program].concat()) else { return };
        assert!(passed, "{report:#}");
        assert!(figure(&report, "again") > 500, "{report:#}");
        is_exact(&report);
    }
}

#[test]
fn locks_waits_and_messages_lose_nothing() {
    for arguments in [
        &["--cpus", "1", "--exact", "--option", "preempt_us=50"][..],
        &["--cpus", "2", "--exact", "--option", "idle=watch"],
        &["--cpus", "4", "--exact", "--option", "preempt_us=20"],
        &["--cpus", "8", "--exact", "--nodes", "2"],
        &["--cpus", "2", "--option", "preempt_us=500"],
    ] {
        let mut all = arguments.to_vec();
        all.extend(["--program", "stress", "--option", "rounds=100"]);
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{all:?}: {report:#}");
        for part in [
            "mutex",
            "condvar",
            "event",
            "barrier",
            "sleep",
            "mailbox",
            "prompt",
            "percpu",
            "broadcast",
        ] {
            let expected = figure(&report, &format!("{part}.expected"));
            assert_eq!(figure(&report, part), expected, "{part}: {report:#}");
        }
    }
}

#[test]
fn many_cpus_lose_nothing() {
    for size in [["--cpus", "64", "--nodes", "8"], ["--cpus", "255", "--nodes", "1"]] {
        let mut all = size.to_vec();
        all.extend(["--memory", if size[1] == "64" { "64" } else { "2048" }]);
        all.extend(["--program", "stress", "--seconds", "300"]);
        all.extend(["--option", "rounds=10", "--option", "threads=1"]);
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{report:#}");
    }
}

#[test]
fn each_way_to_fail_ends_in_a_report() {
    for (program, outcome, function) in [
        ("fault", "faulted", "fault"),
        ("overflow", "faulted", "deeper"),
        ("overflow-idle", "faulted", "deeper"),
        ("panic", "panicked", "panic::{{closure}}"),
    ] {
        let Some((passed, report)) = metal(&["--cpus", "2", "--program", program]) else { return };
        assert!(!passed);
        assert_eq!(report["outcome"], outcome, "{report:#}");
        let frames = report["backtrace"].as_array().expect("a backtrace").iter();
        let functions = frames.filter_map(|frame| frame["functions"].as_array()).flatten();
        let is_it = |found: &Value| {
            let text = |key| found[key].as_str().unwrap_or_default();
            text("name").contains(function) && text("place").contains("src/programs/faults.rs")
        };
        assert!(functions.into_iter().any(is_it), "{program}: {report:#}");
        let is_overflow = report["text"].to_string().contains("a stack has overflowed");
        assert_eq!(is_overflow, program.starts_with("overflow"), "{program}: {report:#}");
    }
}

#[test]
fn each_loader_boots_the_image_and_the_machine_switches_itself_off() {
    for (boot, loader) in [("pvh", "pvh"), ("grub", "multiboot2"), ("grub-efi", "multiboot2")] {
        let mut all = vec!["--boot", boot, "--cpus", "4", "--nodes", "2", "--memory", "2560"];
        all.extend(["--program", "stress", "--option", "rounds=20", "--option", "end=acpi"]);
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{boot}: {report:#}");
        assert_eq!(report["loader"], loader);
        assert_eq!(figure(&report, "prompt"), figure(&report, "prompt.expected"));
    }
}

#[test]
fn an_image_writes_and_reads_files_of_the_host_and_knows_the_time() {
    let folder = env::temp_dir().join(format!("antiphon-share-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let now_ns = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        u64::try_from(since.as_nanos()).expect("a time before 2554")
    };
    let before = now_ns();
    let shared = folder.to_str().expect("a path that is text");
    let mut all = vec!["--share", shared, "--cpus", "2", "--exact", "--program", "channel"];
    let Some((passed, report)) = metal(&all) else { return };
    assert!(passed, "{report:#}");
    assert!((before..=now_ns()).contains(&figure(&report, "wall_ns")), "{report:#}");
    let text = report["text"].as_array().expect("lines");
    assert!(text.iter().any(|line| line == "a line by the channel"), "{report:#}");
    let written = fs::read(folder.join("antiphon-channel")).expect("the file");
    assert_eq!(written.len() as u64, figure(&report, "bytes"));
    assert!(written.iter().enumerate().all(|(at, byte)| *byte == (at * 7) as u8));
    // The image's part of a call: instructions.
    for (name, bound) in [("call_ask", 50), ("call_take", 70)] {
        assert!(figure(&report, &format!("{name}.max")) <= bound, "{name}: {report:#}");
    }
    // By EFI the device's memory is above 4 GiB.
    all = vec!["--boot", "grub-efi", "--share", shared, "--program", "channel"];
    if let Some((passed, report)) = metal(&all) {
        assert!(passed, "{report:#}");
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn without_a_shared_folder_calls_to_the_host_say_so() {
    let Some((passed, report)) = metal(&["--cpus", "1", "--program", "channel"]) else { return };
    assert!(!passed);
    assert_eq!(report["outcome"], "failed");
    let text = report["text"].to_string();
    assert!(text.contains("start the image with `--share DIR`"), "{report:#}");
}

#[test]
fn a_word_that_grub_would_change_is_refused() {
    let arguments = ["metal", "--boot", "grub", "--option", "name=$value"];
    let output = Command::new(PROGRAM).args(arguments).output().expect("the laboratory runs");
    let error = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(MISSING) => skipped(error.trim_end()),
        code => assert_eq!(code, Some(2), "{error}"),
    }
}

#[test]
fn nodes_have_their_own_memory() {
    let arguments = ["--cpus", "4", "--nodes", "2", "--memory", "2560", "--program", "hello"];
    let Some((passed, report)) = metal(&arguments) else { return };
    assert!(passed, "{report:#}");
    assert_eq!(figure(&report, "nodes"), 2);
    // Memory above 4 GiB is used, too.
    assert!(figure(&report, "node1.memory_kib") > 2_500_000, "{report:#}");
}
