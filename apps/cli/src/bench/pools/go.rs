//! Programs in Go, the source of which is in this command: built when they are to be measured.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::failure::Failure;

/// A program in a folder of its own, which goes with this.
pub struct Built(PathBuf);

const PROGRAM: &str = "program";

impl Built {
    /// Builds the program `source`; says what is missing if that can't be.
    ///
    /// # Errors
    ///
    /// If there is no folder for it.
    pub fn of(name: &str, source: &str) -> Result<Result<Self, String>, Failure> {
        let folder = format!("antiphon-go-{name}-{}", std::process::id());
        let built = Self(std::env::temp_dir().join(folder));
        let written =
            fs::create_dir(&built.0).and_then(|()| fs::write(built.0.join("main.go"), source));
        written.map_err(|error| {
            Failure::measured(format!("can't write to {}: {error}", built.0.display()))
        })?;
        Ok(built.build().map(|()| built))
    }

    fn build(&self) -> Result<(), String> {
        let build = Command::new("go")
            .args(["build", "-o", PROGRAM, "main.go"])
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output();
        match build {
            Ok(done) if done.status.success() => Ok(()),
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr);
                Err(format!(
                    "go build failed: {}",
                    said.lines().last().unwrap_or("it said nothing")
                ))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err("no go on the PATH; install Go".to_owned())
            }
            Err(error) => Err(format!("can't start go: {error}")),
        }
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.0.join(PROGRAM)
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        // What is left behind is in the folder for what is temporary.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Becomes the program, which prints the outcome of the repetition. Returns why it could not.
pub fn become_it(program: &Path, arguments: &[String]) -> String {
    format!("can't start {}: {}", program.display(), Command::new(program).args(arguments).exec())
}
