//! Arrival times of packets.
//!
//! A trace is a text with a line for each arrival: its time from the beginning, and optionally, as
//! a second word, its size in bytes.
//!
//! ```text
//! # what follows a '#' is ignored
//! 0
//! 0.000020 1500       seconds where there is a point
//! 40000 64            else nanoseconds
//! ```

use std::path::Path;

use antiphon_report::input;

/// An arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival, in nanoseconds from the beginning.
    pub due_ns: u64,
    /// Step of the ramp; 0 without a ramp.
    pub step: usize,
    /// Size in bytes, if a trace gives it.
    pub bytes: Option<usize>,
}

/// Steps of the ramp, as multiples of the capacity.
pub const STEPS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
/// Length of each step.
pub const STEP_NS: u64 = 50_000_000;
/// The length of the spike in the middle of a step.
const SPIKE_NS: u64 = 1_000_000;
/// Factor by which the rate rises during the spike.
const SPIKE: f64 = 10.0;

/// Maximal size of an IP packet.
const MOST_BYTES: usize = (1 << 16) - 1;
/// Maximal length of a trace, which is replayed for each policy.
const LONGEST_NS: u64 = 600_000_000_000;
/// Maximal size of a file with a trace.
const MOST_FILE: usize = 256 << 20;

/// Returns `count` arrivals at a steady rate per second.
pub fn steady(count: u64, rate: f64) -> Vec<Arrival> {
    let due_ns = |number: u64| (number as f64 * 1e9 / rate) as u64;
    (0..count).map(|number| Arrival { due_ns: due_ns(number), step: 0, bytes: None }).collect()
}

/// Returns the ramp for a capacity of `capacity` packets per second.
pub fn ramp(capacity: f64) -> Vec<Arrival> {
    let mut all = Vec::new();
    for (step, part) in STEPS.into_iter().enumerate() {
        let begin = step as u64 * STEP_NS;
        let middle = begin + STEP_NS / 2;
        let (mut at, gap_ns) = (begin as f64, 1e9 / (capacity * part));
        while (at as u64) < begin + STEP_NS {
            let due_ns = at as u64;
            all.push(Arrival { due_ns, step, bytes: None });
            let spikes = (middle..middle + SPIKE_NS).contains(&due_ns);
            at += if spikes { gap_ns / SPIKE } else { gap_ns };
        }
    }
    all
}

/// Reads the arrivals from a file.
///
/// # Errors
///
/// One line: where the file is not a trace, and what a trace is.
pub fn read(path: &Path) -> Result<Vec<Arrival>, String> {
    let named = |what: &dyn std::fmt::Display| format!("--arrivals {}: {what}", path.display());
    let text = input::text(path, MOST_FILE).map_err(|error| named(&error))?;
    parse(&text).map_err(|what| named(&what))
}

fn parse(text: &str) -> Result<Vec<Arrival>, String> {
    let mut all: Vec<Arrival> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(due) = words.next() else { continue };
        let at = |what: &str| format!("line {}: {what}", number + 1);
        let due_ns = time(due).ok_or_else(|| {
            at(&format!("'{due}' is not a time; write nanoseconds (20000) or seconds (0.00002)"))
        })?;
        let bytes = words.next().map(|word| size(word).map_err(|what| at(&what))).transpose()?;
        if let Some(word) = words.next() {
            return Err(at(&format!("'{word}' is too much; write a time and a size")));
        }
        if all.last().is_some_and(|last| last.due_ns > due_ns) {
            return Err(at(&format!("{due} is before the line above; sort the lines by time")));
        }
        all.push(Arrival { due_ns, step: 0, bytes });
    }
    let Some((first, last)) = all.first().zip(all.last()).map(|(a, b)| (a.due_ns, b.due_ns)) else {
        return Err("it has no arrivals; write one per line, in nanoseconds or seconds".to_owned());
    };
    if last - first > LONGEST_NS {
        let seconds = (last - first) / 1_000_000_000;
        let most = LONGEST_NS / 1_000_000_000;
        return Err(format!("it goes on for {seconds} s; cut it to {most} s at most"));
    }
    all.iter_mut().for_each(|arrival| arrival.due_ns -= first);
    Ok(all)
}

/// Parses nanoseconds, or seconds with a point.
fn time(word: &str) -> Option<u64> {
    if !word.contains('.') {
        return word.parse().ok();
    }
    let seconds = word.parse().ok().filter(|seconds| (0.0..1e10).contains(seconds));
    seconds.map(|seconds: f64| (seconds * 1e9).round() as u64)
}

fn size(word: &str) -> Result<usize, String> {
    let bytes = word.parse().ok().filter(|bytes| (1..=MOST_BYTES).contains(bytes));
    bytes.ok_or_else(|| format!("'{word}' is not a size; write bytes from 1 to {MOST_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_times_and_sizes() {
        let text = "# a comment\n1.000000000\n\n1000020000 64 # late\n 1.00004 1500\n";
        let all: Vec<_> =
            parse(text).expect("a trace").iter().map(|one| (one.due_ns, one.bytes)).collect();
        assert_eq!(all, [(0, None), (20_000, Some(64)), (40_000, Some(1500))]);
    }

    #[test]
    fn what_is_no_trace_is_told_with_its_line() {
        for (text, told) in [
            ("", "no arrival"),
            ("# nothing\n\n", "no arrival"),
            ("0\nsoon\n", "line 2: 'soon' is not a time"),
            ("-1", "line 1: '-1' is not a time"),
            ("0.1\n0.05\n", "line 2: 0.05 is before the line above"),
            ("0 0", "line 1: '0' is not a size"),
            ("0 70000", "from 1 to 65535"),
            ("0 1 2", "line 1: '2' is too much"),
            ("nan.0", "is not a time"),
            ("0\n1000.0\n", "goes on for 1000 s"),
        ] {
            assert!(parse(text).is_err_and(|why| why.contains(told)), "{text}: {told}");
        }
    }

    #[test]
    fn a_rate_is_kept_and_a_ramp_rises() {
        assert_eq!(steady(3, 50_000.0).last().map(|last| last.due_ns), Some(40_000));
        let all = ramp(100_000.0);
        assert!(all.is_sorted_by_key(|arrival| arrival.due_ns));
        let of = |step| all.iter().filter(|arrival| arrival.step == step).count() as f64;
        for (step, part) in STEPS.into_iter().enumerate() {
            // 49 ms at the step's rate, and one at ten times that.
            let wanted = part * 100.0 * (49.0 + SPIKE);
            assert!((of(step) - wanted).abs() <= 12.0, "{step}: {} of {wanted}", of(step));
        }
    }
}
