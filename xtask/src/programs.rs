//! `programs`: runs programs that this project did not write, with and without `antiphon`.
//!
//! | module | question |
//! |---|---|
//! | [`battery`] | do they behave the same? (a check: `cargo xtask programs`) |
//! | [`measure`] | how fast are they? (a measurement: `cargo xtask programs --measure`) |

mod battery;
mod measure;

use crate::Failure;
use crate::finding::Outcome;

/// `cargo xtask programs [--quick] …` or `cargo xtask programs --measure …`.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let mut ahead = arguments.clone();
    match ahead.next()? {
        Some(lexopt::Arg::Long("measure")) => measure::run(ahead),
        _ => battery::run(arguments),
    }
}
