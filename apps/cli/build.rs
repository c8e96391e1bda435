//! Builds the preload library and embeds it, so that the command is one file.
//!
//! A build script can't depend on another package's `cdylib` in stable Cargo, so it runs Cargo
//! again, in the profile that the library is shipped in and with a target directory of its own (the
//! outer one is locked while this runs). What the outer build has resolved is not resolved again.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The crates that the library is made of, by their folders.
const PARTS: [&str; 5] = ["platform", "sync", "linux", "record", "preload"];
const PROFILE: &str = "preload";
const LIBRARY: &str = "libantiphon_preload.so";
const EMBEDDED: &str = "antiphon-preload.so";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?;
    watch(&root);
    let built = build(&root, &out.join("preload"), &target)?;
    fs::copy(&built, out.join(EMBEDDED))
        .map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(())
}

/// Everything that the library is made of; a path that is not there would mean "always".
fn watch(root: &Path) {
    let parts = PARTS.iter().flat_map(|part| {
        let folder = root.join("crates").join(part);
        ["Cargo.toml", "build.rs", "src"].map(|entry| folder.join(entry))
    });
    let files = ["Cargo.toml", "Cargo.lock"].map(|file| root.join(file));
    for path in parts.chain(files).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
}

fn build(root: &Path, directory: &Path, target: &str) -> Result<PathBuf, Box<dyn Error>> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(root)
        .args(["build", "--quiet", "--package", "antiphon-preload", "--lib"])
        .args(["--profile", PROFILE, "--target", target])
        .arg("--target-dir")
        .arg(directory)
        // Clippy's driver and coverage's flags are for the code that is looked at.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    if root.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building antiphon-preload ended with {status}").into());
    }
    Ok(directory.join(target).join(PROFILE).join(LIBRARY))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
