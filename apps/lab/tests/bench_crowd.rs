//! `--load crowd`: the neighbours' threads exist during the measurement, and are gone after it.

mod common;

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{antiphon, json, refused, rows, stderr};

const THREADS: usize = 7;

fn bench(seconds: &str) -> Child {
    let arguments = [
        "bench",
        "locks",
        "--load",
        "crowd=7",
        "--case",
        "short",
        "--threads",
        "2",
        "--seconds",
        seconds,
        "--repetitions",
        "2",
        "--subject",
        "shfl-mutex",
        "--against",
        "glibc",
    ];
    let mut command = antiphon(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the command starts")
}

/// Returns the processes whose parent is `parent` and whose command line has `word`.
fn children(parent: u32, word: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("procfs").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |process: &u32| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        let status = read("status").unwrap_or_default();
        let is_child = status.lines().any(|line| {
            line.strip_prefix("PPid:").is_some_and(|id| id.trim().parse() == Ok(parent))
        });
        is_child && read("cmdline").is_some_and(|line| line.contains(word))
    };
    numbers.filter(is_it).collect()
}

/// Returns the states and priorities of a process's threads, from `/proc`.
fn threads(process: u32) -> Vec<(char, i32)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of = |stat: String| {
        // The name before may contain anything: state is field 3, nice is field 19.
        let fields: Vec<_> =
            stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect();
        Some((fields.first()?.chars().next()?, fields.get(16)?.parse().ok()?))
    };
    let stat = |path: std::path::PathBuf| fs::read_to_string(path.join("stat")).ok();
    tasks.filter_map(|task| of(stat(task.path())?)).collect()
}

/// Waits until `seen` returns a value, and returns it.
fn eventually<T>(what: &str, seen: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(seen) = seen() {
            return seen;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the process of the crowd, once all its threads exist.
fn crowd(bench: u32) -> u32 {
    eventually("a crowd of 7 threads", || {
        let found = children(bench, "__neighbour");
        found.first().copied().filter(|&one| found.len() == 1 && threads(one).len() == THREADS)
    })
}

fn is_there(process: u32) -> bool {
    threads(process).iter().any(|&(state, _)| state != 'Z' && state != 'X')
}

#[test]
fn a_crowd_is_runnable_at_our_priority_and_ends_with_a_bench_that_is_killed() {
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let mut bench = bench("30");
        let crowd = crowd(bench.id());
        let nice = threads(std::process::id())[0].1;
        let all_run = || threads(crowd).iter().all(|&thread| thread == ('R', nice));
        eventually("all want a CPU, at our priority", || all_run().then_some(()));
        // SAFETY: takes numbers; the process is our child, which was not waited for yet.
        unsafe { libc::kill(bench.id() as i32, signal) };
        bench.wait().expect("it is our child");
        eventually("the crowd ends", || (!is_there(crowd)).then_some(()));
    }
}

#[test]
fn a_crowd_ends_with_the_measurement() {
    let mut bench = bench("0.05");
    let crowd = crowd(bench.id());
    let status = bench.wait().expect("it is our child");
    assert!(status.success(), "{status}");
    assert!(!is_there(crowd), "it was waited for");
}

#[test]
fn rows_name_their_crowd_and_measure_for_as_long_as_it_needs() {
    let arguments = [
        "bench",
        "locks",
        "--load",
        "idle,crowd=3",
        "--case",
        "short",
        "--threads",
        "2",
        "--repetitions",
        "1",
        "--subject",
        "shfl-mutex",
        "--against",
        "",
        "--json",
    ];
    let report = json(&arguments);
    let seen: Vec<_> =
        rows(&report).iter().map(|row| (row["load"].as_str(), row["seconds"].as_f64())).collect();
    assert_eq!((seen[0].0, seen[1].0), (Some("idle"), Some("crowd=3")));
    assert!(seen[0].1 <= seen[1].1 && seen[0].1.is_some(), "{seen:?}");
}

#[test]
fn a_crowd_that_is_too_large_or_none_is_refused() {
    for load in ["crowd=0", "crowd=301", "crowd=many"] {
        let said = refused(&["bench", "locks", "--load", load]);
        assert!(said.contains("crowd=1 to crowd=300"), "{said}");
    }
    let output = antiphon(&["bench", "locks", "--help"]).output().expect("the command starts");
    assert!(String::from_utf8_lossy(&output.stdout).contains("crowd=300"), "{}", stderr(&output));
}
