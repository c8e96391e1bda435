//! The hunted program, and its preload library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::SOURCES;
use crate::metadata::Metadata;
use crate::{Failure, tree};

/// The compiled program, in a private directory that is removed when this is dropped.
pub struct Program {
    directory: PathBuf,
    /// The folder in which dumps are kept.
    kept: PathBuf,
}

impl Program {
    /// Compiles the sources below `root` into a directory below `directory`.
    pub fn compile(root: &Path, directory: &Path) -> Result<Self, Failure> {
        let program = Self {
            directory: directory.join(std::process::id().to_string()),
            kept: directory.to_owned(),
        };
        std::fs::create_dir_all(&program.directory)?;
        let sources = tree::files(root)?;
        let sources =
            sources.iter().filter(|file| file.starts_with(SOURCES) && file.ends_with(".c"));
        let status = Command::new("gcc")
            .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .arg(program.path())
            .args(sources)
            .current_dir(root)
            .status()
            .map_err(|error| format!("gcc: {error}"))?;
        if !status.success() {
            return Err(format!("{SOURCES} does not compile").into());
        }
        Ok(program)
    }

    /// The program.
    pub fn path(&self) -> PathBuf {
        self.directory.join("hunt")
    }

    /// The path of its board.
    pub fn board(&self) -> PathBuf {
        self.directory.join("board")
    }

    /// The path where the dump of a hang is kept.
    pub fn dump(&self, seed: u64) -> PathBuf {
        self.kept.join(format!("hang-{seed}.txt"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            eprintln!("hunt: {}: {error}", self.directory.display());
        }
    }
}

/// Builds the preload library in the form that is shipped.
pub fn build_library(root: &Path) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--package", "antiphon-preload", "--profile", "preload"])
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err("the preload library does not build".into());
    }
    Ok(Metadata::read(root)?.target_directory.join("preload/libantiphon_preload.so"))
}
