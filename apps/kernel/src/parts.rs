//! A program of parts, each of which counts something: what it has counted must be exact.

use antiphon_metal::println;
use antiphon_metal::x86::power::Outcome;

/// What the parts have counted.
pub struct Parts {
    wrong: u32,
}

impl Parts {
    /// No part has counted yet.
    pub const NONE: Self = Self { wrong: 0 };

    /// Prints what a part has counted, and what it had to count.
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
