//! The program of an image's package, built for Linux and run here, so that its figures stand
//! beside those of the image.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    let program = build(folder)?;
    let mut command = Command::new(&program);
    command.args(options).arg(format!("cpus={}", machine.cpus));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let named = |error| Failure::measured(format!("{}: {error}", program.display()));
    let mut child = command.spawn().map_err(named)?;
    let (lines, in_time) = machine::read(&mut child, Instant::now() + machine.limit);
    if !in_time {
        // An error means that the program has ended just now.
        let _ = child.kill();
    }
    let status = child.wait().map_err(named)?;
    if !in_time || !status.success() {
        let why = if in_time { status.to_string() } else { "it did not end in time".to_owned() };
        return Err(Failure::measured(format!("on Linux, {}: {why}", folder.display())));
    }
    let figure = |line: &String| {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(lines.iter().filter_map(figure).collect())
}

fn build(folder: &Path) -> Result<PathBuf, Failure> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--message-format", "json-render-diagnostics"]);
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(image::results(folder));
    let built = cargo.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| Failure::missing(format!("cargo: {error}")))?;
    let path = image::built(&built.stdout).filter(|_| built.status.success());
    path.ok_or_else(|| Failure::measured(format!("{} does not build for Linux", folder.display())))
}
