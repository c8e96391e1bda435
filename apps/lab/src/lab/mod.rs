//! `lab`: the model checker, and players on the cooperative loop.

pub mod check;
mod mutants;
pub mod play;
