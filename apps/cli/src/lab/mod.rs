//! `lab`: the laboratory behind the locks.

mod check;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The laboratory behind the locks
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Check(check::Arguments),
}

/// Does what was asked for.
///
/// # Errors
///
/// As each part says.
pub fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.what {
        What::Check(arguments) => check::run(&arguments),
    }
}
