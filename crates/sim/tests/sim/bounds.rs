//! Tests of the longest times in a machine file: each is allowed, a little more is not, and a
//! machine with only such times does not count as stuck.

use antiphon_sim::{Description, Pace, Use, contend};

use crate::machines::{SMALL, wrong};
use crate::toys::{Lock, Parking, Ticket};

/// In milliseconds, by the keys of [`SMALL`].
const MOST: [(f64, &[&str]); 3] = [
    (0.01, &["transfer", "memory", "cache", "load", "atomic", "fence", "invalidate", "occupancy"]),
    (
        1.0,
        &[
            "read",
            "offset",
            "send",
            "deliver",
            "handle",
            "membarrier",
            "exit",
            "switch",
            "park",
            "wake",
            "wake_latency",
            "wake_jitter",
            "start_jitter",
            "migrate",
        ],
    ),
    (100.0, &["after", "slice", "balance"]),
];

/// The bound of the value on a line.
fn most(line: &str) -> Option<f64> {
    let (key, value) = line.split_once(" = ")?;
    let most = || MOST.iter().find(|(_, keys)| keys.contains(&key)).map(|(most, _)| *most);
    value.starts_with("{ ").then(|| most().unwrap_or_else(|| panic!("no bound of {key}")))
}

fn at_the_bounds() -> String {
    let line = |line: &str| match (most(line), line.split_once(" = ")) {
        (Some(most), Some((key, _))) => format!("{key} = {{ ms = {most}, estimated = \"x\" }}\n"),
        _ => format!("{line}\n"),
    };
    SMALL.lines().map(line).collect()
}

#[test]
fn a_time_above_its_bound_is_an_error_with_its_line() {
    for line in SMALL.lines() {
        let Some((most, (key, _))) = most(line).zip(line.split_once(" = ")) else { continue };
        let (at, what) =
            wrong(line, &format!("{key} = {{ ms = {}, measured = \"x\" }}", most * 1.01));
        assert!(at.starts_with(key), "{at}: {what}");
        let most = match most {
            0.01 => "10 us".to_owned(),
            most => format!("{most} ms"),
        };
        assert!(what.contains(&format!("from 0 to {most}")), "{what}");
    }
}

fn usage<L: Lock>() -> Use<L> {
    (L::lock, L::unlock)
}

#[test]
fn on_a_machine_at_its_bounds_threads_get_on() {
    let machine = Description::parse(&at_the_bounds()).expect("each is possible").machine;
    assert_eq!((machine.slice_ns, machine.transfer_ns(0, 4)), (100_000_000, 10_000));
    let pace = Pace { section_ns: 100, away_ns: 1_000 };
    let threads = 4 * machine.cores() as usize;
    let spun = contend(machine.clone(), threads, pace, 5_000_000, Ticket::NEW, usage());
    let slept = contend(machine, threads, pace, 5_000_000, Parking::NEW, usage());
    for outcome in [spun, slept] {
        let _ = outcome.unwrap_or_else(|stuck| panic!("{stuck}"));
    }
}
