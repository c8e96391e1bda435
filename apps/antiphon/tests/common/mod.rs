//! Helpers that the tests of the command share.

#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

pub mod live;
mod support;

pub use support::*;

/// The command.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_antiphon");
