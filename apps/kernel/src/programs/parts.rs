//! A program of parts: each has a count that must be exact.

use antiphon_metal::println;
use antiphon_metal::x86::power::Outcome;

/// The counts of the parts.
pub struct Parts {
    wrong: u32,
}

impl Parts {
    /// The counts before the first part.
    pub const NONE: Self = Self { wrong: 0 };

    /// Prints the count of a part, and the count that it must have.
    pub fn add(&mut self, name: &str, (counted, expected): (u64, u64)) {
        println!("{name}={counted}");
        println!("{name}.expected={expected}");
        self.wrong += u32::from(counted != expected);
    }

    /// The program has passed if all parts were exact.
    pub fn outcome(&self) -> Outcome {
        if self.wrong == 0 { Outcome::Passed } else { Outcome::Failed }
    }
}
