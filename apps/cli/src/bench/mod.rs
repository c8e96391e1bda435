//! `bench`: ours beside the peers, in one interleaved run.

pub mod locks;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Measure ours beside the peers, in one interleaved run
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Locks(locks::Arguments),
}

/// Runs the benchmark that was asked for.
///
/// # Errors
///
/// As each benchmark says.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.what {
        What::Locks(arguments) => locks::run(&arguments),
    }
}
