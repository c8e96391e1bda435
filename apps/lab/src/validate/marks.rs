//! Marks that a thread records while it is measured, and their evaluation.

use crate::pinned::Switches;

/// Counts that a thread records periodically.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Time of the mark, in ticks.
    pub at: u64,
    /// Number of rounds so far.
    pub rounds: u64,
    /// Switches of the thread so far.
    pub switches: Switches,
}

/// Returns the number of rounds between two times, and whether the thread lost its CPU.
pub fn between(marks: &[Mark], from: u64, to: u64) -> (f64, bool) {
    let disturbed = marks.windows(2).any(|pair| {
        let overlaps = pair[1].at > from && pair[0].at < to;
        overlaps && pair[1].switches.preempted != pair[0].switches.preempted
    });
    (at(marks, to, |mark| mark.rounds) - at(marks, from, |mark| mark.rounds), disturbed)
}

/// Returns how often the thread was switched away from between two times.
pub fn switches(marks: &[Mark], from: u64, to: u64) -> f64 {
    let all = |mark: &Mark| mark.switches.voluntary + mark.switches.preempted;
    at(marks, to, all) - at(marks, from, all)
}

/// Returns a count at a time, by linear interpolation between the marks around it.
fn at(marks: &[Mark], moment: u64, count: impl Fn(&Mark) -> u64) -> f64 {
    let after = marks.partition_point(|mark| mark.at <= moment);
    let value = |mark: &Mark| count(mark) as f64;
    match (after.checked_sub(1).map(|before| &marks[before]), marks.get(after)) {
        (Some(before), Some(after)) => {
            let share = (moment - before.at) as f64 / (after.at - before.at) as f64;
            value(before) + (value(after) - value(before)) * share
        }
        (Some(last), None) => value(last),
        (None, Some(first)) => value(first),
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: u64, rounds: u64, preempted: u64) -> Mark {
        Mark { at, rounds, switches: Switches { voluntary: 0, preempted } }
    }

    #[test]
    fn rounds_are_counted_between_moments_and_disturbed_windows_are_seen() {
        let marks = [mark(100, 0, 3), mark(200, 100, 3), mark(400, 200, 4), mark(500, 300, 4)];
        assert_eq!(between(&marks, 100, 200), (100.0, false));
        assert_eq!(between(&marks, 150, 300), (100.0, true));
        assert_eq!(between(&marks, 400, 450), (50.0, false), "marks belong to the window before");
        assert!(between(&marks, 390, 450).1);
        assert_eq!(between(&marks, 0, 1000), (300.0, true));
        assert_eq!(switches(&marks, 200, 400), 1.0);
    }
}
