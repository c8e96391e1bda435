//! The program that the machine starts with, and the archive in which the kernel finds it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::glibc::File;
use crate::Failure;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program of the scheduler's cases, which is static, and puts it into an archive.
/// Returns the archive's path.
///
/// # Errors
///
/// If it does not build. The compiler has then printed the reason.
pub fn make(root: &Path, target: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let libraries = Command::new("pkg-config").args(["--variable=libdir", "libelf"]).output()?;
    let libraries = String::from_utf8(libraries.stdout)?;
    let mut cargo = cargo(root);
    // Static, as the machine has no other file; a target is named so that build scripts are not.
    cargo.env("LIBBPF_SYS_LIBRARY_PATH", libraries.trim()).arg("--config");
    cargo.arg(format!("target.{TARGET}.rustflags=[\"-Ctarget-feature=+crt-static\"]"));
    let program = build(cargo, "antiphon-scx-vm", "program", target)?;
    let path = folder.join("initramfs");
    fs::write(&path, archive(&[("init".to_owned(), program)]))?;
    Ok(path)
}

/// Builds the program of the cases of sections, and puts it into an archive with the C libraries
/// that it is to run with. Returns the archive's path.
///
/// # Errors
///
/// As for [`make`].
pub fn make_for_slices(
    root: &Path,
    target: &Path,
    folder: &Path,
    mut files: Vec<File>,
) -> Result<PathBuf, Failure> {
    let mut cargo = cargo(root);
    // Its sections are counted in instructions.
    cargo.args(["--config", "profile.dev.opt-level=2"]);
    files.push(("init".to_owned(), build(cargo, "antiphon-slice-vm", "slice", target)?));
    let path = folder.join("initramfs-slice");
    fs::write(&path, archive(&files))?;
    Ok(path)
}

fn cargo(root: &Path) -> Command {
    let name = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut cargo = Command::new(name);
    cargo.current_dir(root).args(["build", "--quiet", "--locked", "--package=antiphon-scx"]);
    cargo.args([&format!("--target={TARGET}"), "--config", "profile.dev.strip=true"]);
    cargo
}

/// Builds a program. Returns its file.
fn build(mut cargo: Command, name: &str, feature: &str, target: &Path) -> Result<Vec<u8>, Failure> {
    cargo.args([format!("--bin={name}"), format!("--features={feature}")]);
    if !cargo.status()?.success() {
        return Err(format!("{name} does not build").into());
    }
    Ok(fs::read(target.join(TARGET).join("debug").join(name))?)
}

/// An archive of programs, in the form that the kernel unpacks (`cpio`, "newc"), with the folders
/// that they are in.
fn archive(files: &[File]) -> Vec<u8> {
    const FOLDER: u32 = 0o40_755;
    const FILE: u32 = 0o100_755;
    let mut all = Vec::new();
    let parents = files.iter().flat_map(|(path, _)| Path::new(path).ancestors().skip(1));
    let mut folders: BTreeSet<_> = parents.filter_map(Path::to_str).collect();
    folders.remove("");
    // A folder comes before what is in it: its path is the beginning of the other.
    let folders: Vec<_> = std::iter::once(".").chain(folders).collect();
    for (number, path) in (1..).zip(&folders) {
        entry(&mut all, number, path, FOLDER, &[]);
    }
    for (number, (path, content)) in (folders.len() as u32 + 1..).zip(files) {
        entry(&mut all, number, path, FILE, content);
    }
    entry(&mut all, 0, "TRAILER!!!", 0, &[]);
    all
}

fn entry(all: &mut Vec<u8>, number: u32, name: &str, mode: u32, content: &[u8]) {
    let (bytes, name_bytes) = (content.len() as u32, name.len() as u32 + 1);
    // Number, mode, user, group, links, time, bytes, four of devices, bytes of the name, a sum.
    let fields = [number, mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0];
    all.extend(b"070701");
    for field in fields {
        all.extend(format!("{field:08x}").bytes());
    }
    all.extend(name.bytes().chain([0]));
    all.resize(all.len().next_multiple_of(4), 0);
    all.extend(content);
    all.resize(all.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<u8> {
        archive(&paths.iter().map(|path| (path.to_string(), b"12345".to_vec())).collect::<Vec<_>>())
    }

    fn heads(all: &[u8]) -> Vec<usize> {
        (0..all.len() - 5).filter(|at| &all[*at..at + 6] == b"070701").collect()
    }

    #[test]
    fn an_archive_has_heads_at_multiples_of_four() {
        let all = of(&["init"]);
        assert_eq!(heads(&all).len(), 3);
        assert!(heads(&all).iter().all(|at| at % 4 == 0) && all.len().is_multiple_of(4));
        assert!(all.windows(10).any(|name| name == b"TRAILER!!!"));
    }

    #[test]
    fn folders_are_there_before_their_files() {
        let all = of(&["init", "lib/x/a", "lib/b"]);
        let find = |name: &[u8]| all.windows(name.len()).position(|part| part == name);
        assert_eq!(heads(&all).len(), 7);
        assert!(find(b"lib\0") < find(b"lib/x\0") && find(b"lib/x\0") < find(b"lib/x/a\0"));
        assert!(find(b"lib\0") < find(b"lib/b\0"));
    }
}
