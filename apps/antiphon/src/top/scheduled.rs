//! The threads under the scheduler in the kernel, if it runs.

use serde_json::{Value, json};

use super::pools::Part;
use crate::sched::status;
use crate::sched::threads::{Before, Threads};

/// Asks the scheduler repeatedly.
#[derive(Default)]
pub struct Asks(Before);

/// One answer.
pub struct Scheduled {
    whole: bool,
    threads: Threads,
}

impl Asks {
    /// Returns the scheduler's threads; `None` if it does not run, or does not tell this user.
    pub fn look(&mut self) -> Option<Scheduled> {
        let status = status::ask().ok()?;
        let whole = status["scope"] == "full";
        Some(Scheduled { whole, threads: Threads::of(&status, &mut self.0) })
    }
}

impl Scheduled {
    /// The text about it, at most `most` rows.
    pub fn parts(&self, most: usize) -> Vec<Part> {
        let whom = if self.whole { "all threads" } else { "threads that ask for it" };
        let line = format!("antiphon sched runs {whom}");
        if self.threads.is_empty() {
            return vec![Part::Line(line + "; none is registered")];
        }
        vec![Part::Line(line + ", these are registered:"), Part::Table(self.threads.table(most))]
    }

    /// The same for scripts.
    pub fn json(&self) -> Value {
        let scope = if self.whole { "full" } else { "partial" };
        json!({ "scope": scope, "tasks": self.threads.json() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_whom_it_runs_and_who_is_registered() {
        let of = |whole, threads: Value| Scheduled {
            whole,
            threads: Threads::of(&json!({ "threads": threads }), &mut Before::default()),
        };
        let lines = |one: &Scheduled| {
            let parts = one.parts(5).into_iter().map(|part| match part {
                Part::Line(line) => line,
                Part::Table(table) => table.render(false),
            });
            parts.collect::<Vec<_>>().join("\n")
        };
        let none = lines(&of(true, json!([])));
        assert!(none.contains("all threads; none is registered"), "{none}");
        let one = of(false, json!([{ "thread": 7, "process": 7, "standing": "cooperative" }]));
        assert!(lines(&one).contains("cooperative"), "{}", lines(&one));
        assert_eq!(
            (&one.json()["scope"], &one.json()["tasks"][0]["thread"]),
            (&json!("partial"), &json!(7))
        );
    }
}
