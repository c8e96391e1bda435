//! Runs the examples of event loops and tiers in a short form, and checks that they end, that
//! nothing is lost, and the format of their output. Tardiness is not checked, because other tests
//! run at the same time.

#[path = "../../antiphon/tests/support/example.rs"]
mod example;

use antiphon_coop::{Tier, available};
use antiphon_linux::allowed;

use example::{refuses, succeeds};

/// Returns the numbers of a line that begins with this name, without their units.
fn numbers(line: &str, name: &str) -> Vec<f64> {
    line[name.len()..].split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Returns the line with that name.
fn row<'a>(said: &'a str, name: &str) -> &'a str {
    let found = said.lines().find(|line| line.strip_prefix(name).is_some_and(|l| l.contains(' ')));
    found.unwrap_or_else(|| panic!("no row {name} in {said}"))
}

fn rise(numbers: &[f64]) -> bool {
    numbers.is_sorted() && numbers.iter().all(|&number| number >= 0.0)
}

/// Returns the rows of the available tiers; the others give a reason.
fn tiers<'a>(said: &'a str, tiers: &'a [Tier]) -> impl Iterator<Item = (Tier, &'a str)> {
    let here = available();
    tiers.iter().filter_map(move |&tier| {
        // Behind the header: the text about the tiers that there are comes before.
        let row = row(&said[said.find("p99").expect("a header")..], &format!("{tier} "));
        here.tier(tier).is_ok().then_some((tier, row))
    })
}

#[test]
fn tiers_show_frames_from_the_first_second_on() {
    let cpu = allowed()[0].to_string();
    let Some(said) = succeeds("tiers", &["1", &cpu, "2", "1"]) else { return };
    let asked = [Tier::None, Tier::Boost, Tier::Split, Tier::RealTimeSplit];
    for (tier, row) in tiers(&said, &asked) {
        let numbers = numbers(row, tier.name());
        let [frames, p50, p99, p999, max, _, jain, players, cpu, pieces, _] = numbers[..] else {
            panic!("{row}")
        };
        assert!(rise(&[p50, p99, p999, max]) && max > 0.0, "{row}");
        // Of the 120 in a second; a late player may still have some to show.
        assert!(frames >= 30.0, "{row}");
        // Three threads that always want the CPU, one of which may have got little.
        assert!((0.3..=1.0).contains(&jain), "{row}");
        assert!(players > 0.0 && players < 100.0 && cpu > 0.0 && pieces > 0.0, "{row}");
    }
    refuses("tiers", &["x"], 2, "SECONDS: a number from 1 to 3600, not `x`");
    refuses("tiers", &["1", &cpu, "0"], 2, "PLAYERS: a number from 1");
    refuses("tiers", &["1", "8191"], 2, "may not run on CPU 8191");
}

/// The example fails by itself if it reads a message that differs from what was sent.
#[test]
fn midi_writes_and_reads_each_message() {
    let Some(said) = succeeds("midi", &["1", "1"]) else { return };
    let mut sizes = Vec::new();
    let asked = [Tier::None, Tier::Boost, Tier::RealTimeSplit, Tier::Split, Tier::Baton];
    for (tier, row) in tiers(&said, &asked) {
        let numbers = numbers(row, tier.name());
        assert!(numbers.len() == 8 && rise(&numbers[2..5]) && rise(&numbers[5..8]), "{row}");
        assert!(numbers[1] > 0.0 && numbers[0] > numbers[1], "{row}");
        sizes.push((numbers[0] as u64, numbers[1] as u64));
    }
    assert!(sizes.len() >= 2 && sizes.iter().all(|size| *size == sizes[0]), "{said}");
    refuses("midi", &["1", "1", "T9"], 2, "a tier is one of none, T1");
}

#[test]
fn a_loop_in_tokio_has_all_its_beats() {
    let Some(said) = succeeds("loop_in_tokio", &[]) else { return };
    let ours = numbers(row(&said, "the loop, inside Tokio"), "the loop, inside Tokio");
    assert!(ours.len() == 3 && ours[0] == 400.0 && rise(&ours[1..]), "{said}");
    let tokios = numbers(row(&said, "Tokio's own timers"), "Tokio's own timers");
    assert!(tokios.len() == 3 && tokios[0] > 0.0 && rise(&tokios[1..]), "{said}");
}

#[test]
fn on_time_drops_no_timer() {
    let Some(said) = succeeds("on_time", &["1"]) else { return };
    for name in ["steps of as long as there is", "steps of 250 pieces", "steps of 5000 pieces"] {
        let numbers = numbers(row(&said, name), name);
        assert!(numbers.len() == 4 && rise(&numbers[1..]), "{said}");
        // The frames of a second at 60 Hz, however late they are.
        assert!((59.0..=60.0).contains(&numbers[0]), "{said}");
    }
    for name in ["a step of one event", "from another thread", "a task that yields"] {
        let numbers = numbers(row(&said, name), name);
        assert!(numbers.len() == 1 && numbers[0] > 0.0, "{said}");
    }
    refuses("on_time", &["x"], 2, "how many seconds? a number from 1");
}

#[test]
fn loop_backends_answer() {
    let Some(said) = succeeds("loop_backends", &["50", "epoll"]) else { return };
    let numbers = numbers(row(&said, "epoll"), "epoll");
    assert!(numbers.len() == 3 && numbers[0] > 0.0, "{said}");
    refuses("loop_backends", &["x"], 2, "how many rounds? a number from 1");
}
