//! What a person reads and what a script reads.

pub mod progress;
pub mod report;
pub mod table;
