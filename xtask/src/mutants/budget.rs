//! The total time of the trials.

use std::ffi::OsStr;
use std::process::Command;
use std::time::{Duration, Instant};

/// The time after which no further mutant is tried; without an end, all are.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    end: Option<Instant>,
}

impl Budget {
    /// A budget of `length` from `start` on.
    pub fn new(start: Instant, length: Option<Duration>) -> Self {
        Self { end: length.map(|length| start + length) }
    }

    /// Returns whether the budget is used up at `now`.
    pub fn is_spent(self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    /// A command that is ended, with all processes that it started, when the budget is used up;
    /// `None` if it is used up at `now`.
    pub fn command(self, now: Instant, program: &OsStr) -> Option<Command> {
        let Some(end) = self.end else { return Some(Command::new(program)) };
        let left = end.saturating_duration_since(now);
        let mut command = Command::new("timeout");
        // For `timeout`, a limit of 0 means no limit.
        command.arg(format!("{:.3}s", left.as_secs_f64().max(0.001))).arg(program);
        (!left.is_zero()).then_some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_budget_is_spent_at_its_end() {
        let start = Instant::now();
        let budget = Budget::new(start, Some(MINUTE));
        assert!(!budget.is_spent(start));
        assert!(!budget.is_spent(start + MINUTE / 2));
        assert!(budget.is_spent(start + MINUTE));
        assert!(Budget::new(start, Some(Duration::ZERO)).is_spent(start));
        assert!(!Budget::new(start, None).is_spent(start + 60 * MINUTE));
    }

    #[test]
    fn a_command_has_what_is_left() {
        let start = Instant::now();
        let at = |length, now| {
            let command = Budget::new(start, length).command(now, OsStr::new("cargo"))?;
            let words = [command.get_program()].into_iter().chain(command.get_args());
            Some(words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(at(None, start + MINUTE).unwrap(), ["cargo"]);
        let timeout = at(Some(MINUTE), start + MINUTE / 4).unwrap();
        assert_eq!(timeout, ["timeout", "45.000s", "cargo"]);
        assert_eq!(at(Some(MINUTE), start + MINUTE), None);
        let shortest = at(Some(MINUTE), start + MINUTE - Duration::from_nanos(1)).unwrap();
        assert_eq!(shortest[1], "0.001s");
    }
}
