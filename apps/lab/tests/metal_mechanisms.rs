//! What the bare-metal kernel has of Nemo, in QEMU: the ways to wake a waiter and to send a
//! message, threads and memory, and the table that compares the ways to tell other CPUs.

mod common;

use common::metal::{figure, is_exact, metal};

/// The mechanisms of the table.
const MECHANISMS: [&str; 12] = [
    "raw_ipi",
    "raw_each",
    "direct",
    "slot",
    "bitmap",
    "condvar_kick",
    "condvar_percpu",
    "condvar_batched",
    "condvar_queue",
    "condvar_watch",
    "mwait",
    "spin",
];

#[test]
fn waiters_are_woken_in_each_mode() {
    for options in [
        ["wake=queue", "idle=halt", "preempt_us=0"],
        ["wake=queue", "idle=halt", "preempt_us=30"],
        ["wake=batched", "idle=halt", "preempt_us=0"],
        ["wake=batched", "idle=halt", "preempt_us=30"],
        ["wake=batched", "idle=watch", "preempt_us=0"],
    ] {
        let mut all = vec!["--cpus", "8", "--exact", "--program", "stress"];
        for option in options.iter().chain(&["rounds=50", "tick_us=20"]) {
            all.extend(["--option", option]);
        }
        let Some((passed, report)) = metal(&all) else { return };
        assert!(passed, "{options:?}: {report:#}");
        is_exact(&report);
    }
}

#[test]
fn an_unknown_mode_is_refused() {
    let arguments = ["--cpus", "1", "--exact", "--option", "wake=never"];
    let Some((passed, report)) = metal(&arguments) else { return };
    assert!(!passed);
    assert_eq!(report["outcome"], "panicked", "{report:#}");
}

#[test]
fn threads_and_memory_are_where_their_creator_is() {
    for machine in [&["--cpus", "1"][..], &["--cpus", "4", "--nodes", "2"]] {
        let arguments = [machine, &["--exact", "--program", "threads"]].concat();
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        is_exact(&report);
    }
}

#[test]
fn no_action_runs_after_it_was_unregistered() {
    for machine in [&["--cpus", "1", "--exact"][..], &["--cpus", "4", "--exact"], &["--cpus", "2"]]
    {
        let arguments = [machine, &["--program", "messages", "--option", "rounds=30"]].concat();
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        is_exact(&report);
    }
}

#[test]
fn the_table_has_all_mechanisms_and_keeps_its_promises() {
    let mut senders = Vec::new();
    for cpus in ["2", "4", "8"] {
        let arguments = ["--cpus", cpus, "--exact", "--program", "table", "--option", "trials=5"];
        let Some((passed, report)) = metal(&arguments) else { return };
        assert!(passed, "{report:#}");
        let of = |mechanism: &str, part: &str| figure(&report, &format!("{mechanism}.{part}"));
        for mechanism in MECHANISMS {
            let (least, source) = (of(mechanism, "unicast.min"), of(mechanism, "source.min"));
            assert!(source > 0 && source < least, "{mechanism}: {report:#}");
            assert!(of(mechanism, "broadcast_source.min") > 0, "{mechanism}: {report:#}");
        }
        let raw = of("raw_ipi", "unicast.min");
        // A message without tables is the shortest, and none is long.
        let [direct, slot, bitmap] =
            ["direct", "slot", "bitmap"].map(|form| of(form, "unicast.p99"));
        assert!(direct < slot.min(bitmap), "{direct}, {slot}, {bitmap}");
        assert!(slot.max(bitmap) <= raw + 100, "{slot}, {bitmap}, raw_ipi is {raw}");
        assert!(of("condvar_kick", "unicast.p99") <= raw + 200, "{report:#}");
        // Without a kick the CPU learns of its thread at the next tick.
        assert!(of("condvar_queue", "unicast.p99") > of("condvar_kick", "unicast.p99"));
        if cpus != "2" {
            let kicks = of("condvar_kick", "broadcast_source.median");
            assert!(of("condvar_batched", "broadcast_source.median") < kicks, "{report:#}");
        }
        senders.push(["raw_ipi", "direct", "bitmap"].map(|by| of(by, "broadcast_source.p99")));
    }
    // One command, however many CPUs there are.
    assert!(senders.iter().all(|cost| *cost == senders[0]), "{senders:?}");
}

#[test]
fn linux_is_measured_beside_it_in_its_own_unit() {
    let arguments = ["--cpus", "2", "--exact", "--program", "table", "--option", "trials=2"];
    let Some((passed, report)) = metal(&[&arguments[..], &["--linux"]].concat()) else { return };
    assert!(passed, "{report:#}");
    assert_eq!(
        (&report["unit"], &report["host"]["unit"]),
        (&"instructions".into(), &"nanoseconds".into())
    );
    let missing = report["host"]["missing"].as_array().expect("a list");
    let figures = &report["host"]["figures"];
    assert!(figures["futex.syscall.min"].as_u64().is_some_and(|ns| ns > 0), "{report:#}");
    assert!(figures["spin.syscall.min"].is_null(), "{report:#}");
    for mechanism in ["futex", "pthread-cond", "eventfd", "event+nospin", "condvar+nospin"] {
        for part in ["unicast", "broadcast"] {
            let median = &report["host"]["figures"][format!("{mechanism}.{part}.median")];
            let why = format!("{mechanism}, {part}: ");
            let is_told =
                missing.iter().any(|one| one.as_str().is_some_and(|one| one.starts_with(&why)));
            // Either there is a figure, or a reason.
            assert!(median.as_u64().is_some_and(|ns| ns > 0) != is_told, "{why}{report:#}");
        }
    }
}
