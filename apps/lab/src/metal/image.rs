//! Building an image, with the flags that it needs.
//!
//! | flag | why |
//! |---|---|
//! | `--cfg=antiphon_image` | the kernel's symbols, and its panic handler |
//! | `-Cno-redzone=yes` | an interrupt may come between any two instructions |
//! | `-Crelocation-model=static` | an image is loaded where it is linked |
//! | `-Cforce-frame-pointers=yes` | backtraces |
//! | `-Cforce-unwind-tables=no` | nothing unwinds |
//!
//! They are given on the command line of Cargo, with a folder for its results of their own: so the
//! ordinary builds of the workspace are neither changed nor made stale.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use antiphon_report::failure::Failure;
use serde_json::Value;

use super::red_zone;

const FLAGS: &str = "build.rustflags=[\"--cfg=antiphon_image\",\"-Cno-redzone=yes\",\
                     \"-Crelocation-model=static\",\"-Cforce-frame-pointers=yes\",\
                     \"-Cforce-unwind-tables=no\"]";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The package of the tree's own image.
const OWN: &str = "antiphon-kernel";
/// The greatest size of the loaded part of our own image, in bytes.
const LIMIT: u64 = 1 << 20;

/// An image.
pub struct Image {
    path: PathBuf,
    size: u64,
    is_own: bool,
}

impl Image {
    /// Builds the tree's own image, or that of the package in `folder`.
    ///
    /// # Errors
    ///
    /// If there is no tree, or the package does not build.
    pub fn build(folder: Option<&Path>) -> Result<Self, Failure> {
        let root = folder.map_or_else(tree, |folder| Ok(folder.to_owned()))?;
        let path = program(&root, |cargo| {
            cargo.args(["--profile", "metal", "--target", TARGET, "--config", FLAGS]);
            // They would go before the flags.
            for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS"] {
                cargo.env_remove(name);
            }
            if folder.is_none() {
                cargo.args(["--package", OWN, "--features", "image"]);
            }
        })?;
        let path = path.ok_or_else(|| {
            let what = "does not build: cargo says why, above";
            Failure::measured(format!("the image in {} {what}", root.display()))
        })?;
        let bytes = fs::read(&path);
        let bytes = bytes.map_err(|error| Failure::measured(format!("the image: {error}")))?;
        let size = loaded(&bytes).ok_or_else(|| Failure::measured("the image is no ELF file"))?;
        Ok(Self { path, size, is_own: folder.is_none() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes of the file are loaded.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Checks that no function uses the red zone, and that our own image is small.
    ///
    /// # Errors
    ///
    /// If one does, or it is not; if there is no disassembler.
    pub fn check(&self) -> Result<(), Failure> {
        red_zone::check(&self.path)?;
        if self.is_own && self.size > LIMIT {
            return Err(Failure::measured(format!(
                "the image has {} bytes, and {LIMIT} are allowed",
                self.size
            )));
        }
        Ok(())
    }
}

/// Builds the package in `root` with Cargo, told `how`. Returns the path of its program, unless it
/// does not build. The results have a folder of their own.
///
/// # Errors
///
/// If Cargo does not start.
pub fn program(root: &Path, how: impl FnOnce(&mut Command)) -> Result<Option<PathBuf>, Failure> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--message-format", "json-render-diagnostics"]);
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml"));
    let results = env::var_os("CARGO_TARGET_DIR");
    let results = results.map_or_else(|| root.join("target"), PathBuf::from);
    cargo.arg("--target-dir").arg(results.join("metal"));
    how(&mut cargo);
    let built = cargo.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| Failure::missing(format!("cargo: {error}")))?;
    let messages = String::from_utf8_lossy(&built.stdout);
    let path = messages.lines().filter_map(executable).next_back();
    Ok(path.filter(|_| built.status.success()))
}

/// The path of the program that a message of Cargo says was built.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message.get("executable")?.as_str().map(PathBuf::from)
}

/// How many bytes of an ELF file are loaded.
fn loaded(bytes: &[u8]) -> Option<u64> {
    use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
    let file = ElfFile64::<object::Endianness>::parse(bytes).ok()?;
    let endian = file.endian();
    let headers = file.elf_header().program_headers(endian, bytes).ok()?;
    let is_loaded =
        |header: &&object::elf::ProgramHeader64<_>| header.p_type(endian) == object::elf::PT_LOAD;
    Some(headers.iter().filter(is_loaded).map(|header| header.p_filesz(endian)).sum())
}

/// The tree: the one that the caller is in, or the one that this program was built from.
fn tree() -> Result<PathBuf, Failure> {
    let here = env::current_dir().unwrap_or_default();
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = here.ancestors().chain(built_from.ancestors());
    let mut trees = above.filter(|folder| folder.join("apps/kernel/Cargo.toml").is_file());
    trees.next().map(Path::to_owned).ok_or_else(|| {
        Failure::missing("the image is built from Antiphon's sources: call this in a clone of them")
    })
}
