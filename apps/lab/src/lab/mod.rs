//! `lab`: the laboratory behind the locks.

pub mod check;
mod mutants;
pub mod play;
