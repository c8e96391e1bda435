//! Runtimes on bare metal: the pool of this tree runs each task once and forks for less than a task
//! costs, on 1, 2 and 4 CPUs.

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
