//! Helpers shared by the tests of the laboratory, and with those of the command.

#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

pub mod golden;
#[path = "../../../antiphon/tests/common/live.rs"]
pub mod live;
pub mod metal;
pub mod play;
#[path = "../../../antiphon/tests/common/support.rs"]
mod support;

pub use support::*;

/// The laboratory. Its verbs are tested here as `antiphon` runs them.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_antiphon-lab");
