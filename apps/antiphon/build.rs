//! Builds the preload libraries and embeds them, so that the command is one file.
//!
//! A build script can't depend on another package's `cdylib` in stable Cargo, so it runs Cargo
//! again, in the profile in which the libraries are shipped, with a separate target directory (the
//! outer one is locked while this runs). Versions that the outer build has resolved are not
//! resolved again.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The folders of the crates that the libraries consist of.
const PARTS: [&str; 8] =
    ["platform", "sync", "linux", "record", "preload", "runtime", "antiphon", "preload-coop"];
const PROFILE: &str = "preload";
/// The package of each library, the file that Cargo builds, and its name here.
const LIBRARIES: [[&str; 3]; 2] = [
    ["antiphon-preload", "libantiphon_preload.so", "antiphon-preload.so"],
    ["antiphon-preload-coop", "libantiphon_preload_coop.so", "antiphon-preload-coop.so"],
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?;
    watch(&root);
    if is_only_looked_at() {
        return embed_nothing(&out);
    }
    let built = build(&root, &out.join("preload"), &target)?;
    let mut version = 0xcbf2_9ce4_8422_2325;
    for [_, library, embedded] in LIBRARIES {
        let library = built.join(library);
        let contents =
            fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
        version = hash(version, &contents);
        fs::write(out.join(embedded), contents)?;
    }
    // Computed at build time: hashing in each run of the command would take milliseconds.
    println!("cargo::rustc-env=ANTIPHON_PRELOAD_VERSION={version:016x}");
    Ok(())
}

/// Whether this build is for Clippy: the libraries are then never run, and building them takes
/// longer than all of Clippy's work. Cargo keeps the results for Clippy apart.
fn is_only_looked_at() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER");
    wrapper.is_some_and(|path| Path::new(&path).file_stem() == Some("clippy-driver".as_ref()))
}

/// Writes empty files in place of the libraries.
fn embed_nothing(out: &Path) -> Result<(), Box<dyn Error>> {
    for [.., embedded] in LIBRARIES {
        fs::write(out.join(embedded), [])?;
    }
    println!("cargo::rustc-env=ANTIPHON_PRELOAD_VERSION={:016x}", 0);
    Ok(())
}

/// FNV-1a, 64 bits: distinguishes versions of the libraries.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(before, step)
}

/// Rebuilds when any source of the libraries changes. A path that does not exist would mean
/// "always".
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

/// Builds the libraries, and returns their folder.
fn build(root: &Path, directory: &Path, target: &str) -> Result<PathBuf, Box<dyn Error>> {
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(root)
        .args(["build", "--quiet", "--lib"])
        .args(LIBRARIES.iter().flat_map(|[package, ..]| ["--package", package]))
        .args(["--profile", PROFILE, "--target", target])
        // The profile strips debug information; not generating it saves an eighth of the time.
        .args(["--config", &format!("profile.{PROFILE}.debug=false")])
        .arg("--target-dir")
        .arg(directory)
        // Clippy's driver and the flags for coverage must not affect the libraries.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    if root.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("building the preload libraries ended with {status}").into());
    }
    Ok(directory.join(target).join(PROFILE))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
