//! Cargo's description of the workspace: `cargo metadata --no-deps`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Failure;

/// The workspace.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Its packages.
    pub packages: Vec<Package>,
    /// The folder in which cargo builds.
    pub target_directory: PathBuf,
}

/// One package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its description, in one line.
    pub description: Option<String>,
    /// The path of its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Dependencies of all kinds.
    pub dependencies: Vec<Dependency>,
    /// The targets that cargo builds.
    pub targets: Vec<Target>,
}

/// A dependency of a package.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// The package that is depended on.
    pub name: String,
    /// `dev`, `build`, or `None` for a normal dependency.
    pub kind: Option<String>,
    /// The path of the dependency, if it is in this tree.
    pub path: Option<PathBuf>,
}

/// A target: a library, program, test, example or benchmark.
#[derive(Clone, Debug, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `lib`, `cdylib`, `bin`, `test`, …
    pub kind: Vec<String>,
    /// Its root source file.
    pub src_path: PathBuf,
}

impl Metadata {
    /// Reads the metadata of the workspace at `root` from cargo.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(root)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Package {
    /// The directory of its manifest.
    pub fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new(""))
    }
}
