//! The laboratory: the separate program `antiphon-lab`, which carries out the verbs that measure
//! and simulate.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use antiphon_report::failure::Failure;

use crate::installed;

const PROGRAM: &str = "antiphon-lab";
/// The verbs of the laboratory.
const VERBS: [&str; 5] = ["bench", "sim", "validate", "metal", "lab"];
/// The verbs of the laboratory with their purposes, for `--help`.
pub const VERBS_IN_HELP: &str = "\
Laboratory (a separate program, antiphon-lab: cargo install --path apps/lab):
  bench     Measure our locks, tasks, loops and so on beside their peers, in interleaved runs
  sim       Run the same code on simulated machines
  validate  Compare the simulator's predictions with measurements on this machine
  metal     Run the bare-metal image, in which Antiphon is the kernel, in QEMU
  lab       Run the model checker, or adaptive players that are on time
";

/// Returns whether these arguments are for the laboratory: one of its verbs, or help on one.
pub fn has(arguments: &[OsString]) -> bool {
    let is_verb = |word: &OsString| VERBS.iter().any(|verb| word == verb);
    match arguments {
        [help, verb, ..] if help == "help" => is_verb(verb),
        [verb, ..] => is_verb(verb),
        [] => false,
    }
}

/// Replaces this process by the laboratory, with these arguments: exit code and signal handling are
/// the laboratory's. Returns only on failure.
pub fn carry_out(arguments: &[OsString]) -> Failure {
    match found() {
        Ok(program) => cannot_start(&program, &Command::new(&program).args(arguments).exec()),
        Err(failure) => failure,
    }
}

/// Runs the laboratory with these arguments, and returns its stdout. It inherits our stderr.
///
/// # Errors
///
/// If it is not installed. If it fails: it has then written the reason to stderr.
pub fn ask(arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let program = found()?;
    let output = Command::new(&program).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| cannot_start(&program, &error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    let killed = || Failure::measured(format!("{PROGRAM} ended by {}", output.status));
    Err(code.map_or_else(killed, Failure::passed_on))
}

fn cannot_start(program: &Path, error: &std::io::Error) -> Failure {
    Failure::missing(format!("{} can't be started: {error}", program.display()))
}

/// The path of the laboratory.
fn found() -> Result<PathBuf, Failure> {
    installed::find(PROGRAM).ok_or_else(|| {
        Failure::missing(format!(
            "this is done by the laboratory, and there is no {PROGRAM} beside this program or in \
             PATH; in a clone, cargo install --path apps/lab installs it, and cargo build \
             --release -p {PROGRAM} builds it"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_the_laboratory(arguments: &[&str]) -> bool {
        has(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn its_verbs_and_help_on_them_are_its_own() {
        for arguments in [&["bench"][..], &["sim", "--help"], &["help", "lab", "play"]] {
            assert!(is_of_the_laboratory(arguments), "{arguments:?}");
        }
        for arguments in [&[][..], &["run", "bench"], &["help"], &["help", "run"], &["--help"]] {
            assert!(!is_of_the_laboratory(arguments), "{arguments:?}");
        }
    }

    #[test]
    fn each_verb_is_in_the_help() {
        for verb in VERBS {
            assert!(VERBS_IN_HELP.contains(&format!("\n  {verb} ")), "{verb}");
        }
    }
}
