//! `bench loop`, in a short form: the CPU share of each program, and whose timers are earlier, with
//! bounds that hold even on a shared machine. Absolute tardiness is never checked.

mod common;

use common::{jain, output, skipped, stderr};
use serde_json::Value;

/// Four equal players that want twice the CPU in total, and no hogs.
const EQUALS: [&str; 13] = [
    "bench",
    "loop",
    "--repetitions",
    "1",
    "--seconds",
    "2",
    "--players",
    "4",
    "--hogs",
    "0",
    "--alike",
    "--demand",
    "50",
];
/// A run is repeated if other programs have had the CPU for most of it.
const TRIES: usize = 3;

/// Returns the first rows for which `holds` is true, or the last rows. `None` if a scheme is not
/// permitted here.
fn rows(how: &[&str], holds: impl Fn(&[Value]) -> bool) -> Option<Vec<Value>> {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let done = output(&[&EQUALS[..], how].concat());
        if done.status.code() == Some(69) {
            skipped(&stderr(&done));
            return None;
        }
        assert!(done.status.success(), "{}", stderr(&done));
        let report: Value = serde_json::from_slice(&done.stdout).expect("one JSON object");
        seen = common::rows(&report).to_vec();
        if holds(&seen) {
            break;
        }
    }
    Some(seen)
}

fn figure(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {row:#}"))
}

/// By the kernel's account of each player, which excludes other programs that had the CPU.
fn players_jain(row: &Value) -> f64 {
    jain(row["players"].as_array().expect("a list").iter().map(|player| figure(player, "/cpu")))
}

#[test]
fn equals_have_equal_parts_of_the_cpu() {
    for scheme in ["t1", "t3"] {
        let is_fair = |row: &Value| players_jain(row) >= 0.8;
        let how = ["--subject", scheme, "--against", "epoll", "--json"];
        let Some(rows) = rows(&how, |rows| rows.iter().all(is_fair)) else { continue };
        assert_eq!(rows.len(), 2);
        rows.iter().for_each(|row| assert!(is_fair(row), "{} for {row:#}", players_jain(row)));
    }
}

#[test]
fn who_hands_the_cpu_over_is_sooner_than_who_waits_for_a_slice() {
    let p50 = |row: &Value| figure(row, "/tardiness_us/p50");
    let in_order = |rows: &[Value]| p50(&rows[0]) < p50(&rows[1]);
    let how = ["--subject", "t3", "--against", "epoll", "--json"];
    let rows = rows(&how, in_order).expect("it needs nothing");
    assert!(in_order(&rows), "t3 {}, epoll {}", p50(&rows[0]), p50(&rows[1]));
    // No timers were left out to achieve this.
    let timers = |row: &Value| figure(row, "/tardiness_us/timers");
    assert!((timers(&rows[0]) - timers(&rows[1])).abs() <= 4.0, "{rows:#?}");
}
