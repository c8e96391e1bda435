//! What a person reads and what a script reads.

pub mod page;
pub mod progress;
pub mod report;
pub mod shell;
pub mod table;

use std::io::Write as _;

use crate::failure::Failure;

/// Writes `text` to stdout, whole.
///
/// # Errors
///
/// If stdout can't be written: the disk is full, perhaps.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::measured(format!("stdout: {error}")))
}
