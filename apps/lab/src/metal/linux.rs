//! The program of an image's package, built for Linux and run here, so that its figures stand
//! beside those of the image.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use antiphon_report::failure::Failure;

use super::image;
use super::machine::{self, Machine};

/// Builds the package in `folder` and runs it with as many CPUs as the machine has: its arguments
/// are `options`, then `cpus=N`. Returns the figures that it prints.
///
/// # Errors
///
/// The package does not build, or the program fails or does not end in time.
pub fn figures(
    folder: &Path,
    machine: &Machine,
    options: &[String],
) -> Result<Vec<(String, u64)>, Failure> {
    let program = image::program(folder, |cargo| {
        cargo.arg("--release");
    })?;
    let program = program.ok_or_else(|| {
        Failure::measured(format!("{} does not build for Linux", folder.display()))
    })?;
    let mut command = Command::new(&program);
    command.args(options).arg(format!("cpus={}", machine.cpus));
    let named = |error| Failure::measured(format!("{}: {error}", program.display()));
    let end = Instant::now() + machine.limit;
    let (lines, status) = machine::lines_of(&mut command, end).map_err(named)?;
    if !status.is_some_and(|status| status.success()) {
        let late = || "it did not end in time".to_owned();
        let why = status.map_or_else(late, |status| status.to_string());
        return Err(Failure::measured(format!("on Linux, {}: {why}", folder.display())));
    }
    let figure = |line: &String| {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(lines.iter().filter_map(figure).collect())
}
