//! The deterministic mode: a seed is a schedule, failures are found, told and had again; and, with
//! it, whole runs of the scheduler.
#![cfg(feature = "deterministic")]

mod failures;
mod panics;
mod policies;
mod runs;
mod seeds;
