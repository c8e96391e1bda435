//! The deterministic mode: one seed gives one schedule; failures are found, reported and
//! reproduced; and, using it, whole runs of the scheduler.
#![cfg(feature = "deterministic")]

mod failures;
mod panics;
mod policies;
mod runs;
mod seeds;
