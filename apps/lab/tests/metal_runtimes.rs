//! Runtimes on bare metal: the pool of this tree runs each task once and forks for less than a task
//! costs, on 1, 2 and 4 CPUs; and runtimes of others do the same work there as on Linux.

mod common;

use common::metal::{figure, metal};

#[test]
fn forks_and_tasks_come_to_the_same_on_any_number_of_cpus() {
    for cpus in ["1", "2", "4"] {
        let arguments = ["--cpus", cpus, "--exact", "--program", "fork-join"];
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        for part in ["call", "fork", "spawn"] {
            // The Fibonacci number of 20, and the calls that are not leaves.
            assert_eq!(figure(&report, &format!("{part}.result")), 6765);
            assert_eq!(figure(&report, &format!("{part}.joins")), 10_945);
            let took = figure(&report, &format!("{part}.per_1000"));
            println!("{cpus} CPUs: {took} instructions for 1000 × {part}");
        }
        let [call, fork, spawn] =
            ["call", "fork", "spawn"].map(|part| figure(&report, &format!("{part}.per_1000")));
        // A fork that becomes no task is two calls and a count.
        assert!(call < fork && fork < spawn, "{report:#}");
        // A task is made of a fork when a worker is idle, and an idle worker takes it.
        let steals = figure(&report, "fork.steals");
        assert_eq!(steals > 0, cpus != "1", "{report:#}");
    }
}

#[test]
fn packets_are_handled_once_each() {
    for cpus in ["1", "2", "4"] {
        let arguments = ["--cpus", cpus, "--exact", "--program", "packets"];
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        for count in ["handled", "newlines", "numbers"] {
            let expected = figure(&report, &format!("{count}.expected"));
            assert_eq!(figure(&report, count), expected, "{count}: {report:#}");
        }
        println!("{cpus} CPUs: {} instructions for a packet", figure(&report, "packet"));
    }
}

#[test]
fn the_pool_loses_no_task_when_cpus_run_at_once_and_threads_are_preempted() {
    for (program, size) in [("fork-join", "n=14"), ("packets", "packets=300")] {
        for time in [&["--exact"][..], &[]] {
            let options = ["--option", size, "--option", "preempt_us=100"];
            let mut all = vec!["--cpus", "2", "--program", program];
            all.extend(time.iter().chain(&options));
            let Some((passed, report)) = metal(&all) else { return };
            assert!(passed, "{all:?}: {report:#}");
        }
    }
}

#[test]
fn runtimes_of_others_run_unchanged_and_share_their_work() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/metal-runtimes");
    for cpus in ["1", "2", "4"] {
        let mut all = vec!["--cpus", cpus, "--exact", "--image", folder];
        if cpus == "2" {
            all.push("--linux");
        }
        // The program checks each result.
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{report:#}");
        for ported in ["chili", "rayon-core", "crossbeam-deque", "crossbeam-epoch"] {
            assert!(figure(&report, &format!("{ported}.lines")) > 0, "{ported}: {report:#}");
            assert_eq!(figure(&report, &format!("{ported}.changed")), 0, "{ported}: {report:#}");
        }
        let call = figure(&report, "call.per_1000");
        for runtime in ["ours", "chili", "rayon"] {
            let elsewhere = figure(&report, &format!("{runtime}.elsewhere"));
            assert_eq!(elsewhere > 0, cpus != "1", "{runtime}: {report:#}");
            assert!(figure(&report, &format!("{runtime}.per_1000")) > call, "{report:#}");
            let linux = report["linux"][format!("{runtime}.per_1000")].as_u64();
            assert_eq!(linux.is_some_and(|ns| ns > 0), cpus == "2", "{runtime}: {report:#}");
        }
    }
}

#[test]
fn a_message_wakes_one_processor_where_a_broadcast_wakes_all() {
    const TASKS: u64 = 50;
    for cpus in [2_u64, 4, 8] {
        let (count, tasks) = (cpus.to_string(), format!("tasks={TASKS}"));
        let all = ["--cpus", &count, "--exact", "--program", "legion", "--option", &tasks];
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{report:#}");
        let of = |name: &str| figure(&report, name);
        for (way, wakes) in [
            ("broadcast", TASKS * (cpus - 1)),
            ("moved", TASKS * (cpus - 1)),
            ("one", TASKS),
            ("message", TASKS),
            ("direct", 0),
        ] {
            // Each task is claimed once, by whatever number of processors that have woken for it.
            assert_eq!(of(&format!("{way}.claims")), TASKS, "{way}: {report:#}");
            assert_eq!(of(&format!("{way}.twice")), 0, "{way}: {report:#}");
            assert_eq!(of(&format!("{way}.wakes")), wakes, "{way}: {report:#}");
            let (ran, quiet) = (of(way), of(&format!("{way}.quiet")));
            println!("{cpus} CPUs, {way}: runs after {ran}, quiet after {quiet} instructions");
        }
        // No switch, no mutex: the task runs earlier, and all CPUs together do less for it.
        for part in ["", ".quiet"] {
            let [broadcast, message, direct] =
                ["broadcast", "message", "direct"].map(|way| of(&format!("{way}{part}")));
            assert!(direct < message && message < broadcast, "{part}: {report:#}");
        }
    }
}
