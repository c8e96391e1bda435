//! Who takes the tasks: our pools, and the peers.

mod ours;
mod peers;

use super::go;
use super::measure::{Figures, Order, Repetition};
use crate::bench::rounds::Outcome;

pub use ours::names as ours;

/// The peers' names.
pub const PEERS: [&str; 7] = ["loop", go::NAME, "tokio", "smol", "rayon", "rayon-fifo", "channel"];

/// Has the one with a name carry out a repetition.
///
/// # Errors
///
/// If there is none, or it can't start its threads.
pub fn with(
    name: &str,
    order: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    match name.split_once('/') {
        Some(parts) => ours::with(parts, order, repetition),
        None => peers::with(name, order, repetition),
    }
}

fn unknown(name: &str) -> String {
    format!("no subject '{name}'")
}
