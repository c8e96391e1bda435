//! A progress line on stderr: only on a terminal, and only after two seconds.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The progress of some steps.
pub struct Progress {
    steps: usize,
    done: usize,
    begun: Instant,
    drawn: Option<Instant>,
    terminal: bool,
}

const PATIENCE: Duration = Duration::from_secs(2);
const REDRAW: Duration = Duration::from_millis(200);
const BAR: usize = 24;

impl Progress {
    /// Progress of `steps` steps, none of which is done.
    #[must_use]
    pub fn new(steps: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { steps, done: 0, begun: Instant::now(), drawn: None, terminal }
    }

    /// Counts one more step; `what` comes next.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        let now = Instant::now();
        let due = self.drawn.is_none_or(|drawn| now - drawn >= REDRAW);
        if !self.terminal || now - self.begun < PATIENCE || !due {
            return;
        }
        self.drawn = Some(now);
        let left = left(now - self.begun, self.done, self.steps);
        let full = BAR * self.done / self.steps.max(1);
        let bar = format!("{}{}", "━".repeat(full), "─".repeat(BAR.saturating_sub(full)));
        // Progress that can't be shown is not an error.
        let _ = write!(std::io::stderr(), "\r\x1b[K{bar} {} left  {what}", clock(left));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn left(spent: Duration, done: usize, steps: usize) -> Duration {
    spent.mul_f64(steps.saturating_sub(done) as f64 / done.max(1) as f64)
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_on_as_it_began() {
        assert_eq!(left(Duration::from_secs(10), 1, 4), Duration::from_secs(30));
        assert_eq!(left(Duration::from_secs(10), 4, 4), Duration::ZERO);
        assert_eq!(clock(Duration::from_secs(125)), "2:05");
    }
}
