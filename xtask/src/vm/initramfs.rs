//! The program that the machine starts with, and the archive in which the kernel finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROGRAM: &str = "antiphon-scx-vm";

/// Builds the program, and puts it into an archive. Returns the archive's path.
///
/// # Errors
///
/// If it does not build. The compiler has then printed the reason.
pub fn make(root: &Path, target: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let libraries = Command::new("pkg-config").args(["--variable=libdir", "libelf"]).output()?;
    let libraries = String::from_utf8(libraries.stdout)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Static, as the machine has no other file; a target is named so that build scripts are not.
    let built = Command::new(cargo)
        .current_dir(root)
        .env("LIBBPF_SYS_LIBRARY_PATH", libraries.trim())
        .args(["build", "--quiet", "--locked", "--package=antiphon-scx", "--features=program"])
        .args([&format!("--bin={PROGRAM}"), &format!("--target={TARGET}")])
        .args(["--config", "profile.dev.strip=true", "--config"])
        .arg(format!("target.{TARGET}.rustflags=[\"-Ctarget-feature=+crt-static\"]"))
        .status()?;
    if !built.success() {
        return Err(format!("{PROGRAM} does not build").into());
    }
    let program = fs::read(target.join(TARGET).join("debug").join(PROGRAM))?;
    let path = folder.join("initramfs");
    fs::write(&path, archive(&[("init", &program)]))?;
    Ok(path)
}

/// An archive of programs, in the form that the kernel unpacks (`cpio`, "newc").
fn archive(programs: &[(&str, &[u8])]) -> Vec<u8> {
    const FOLDER: u32 = 0o40_755;
    const FILE: u32 = 0o100_755;
    let mut all = Vec::new();
    entry(&mut all, 1, ".", FOLDER, &[]);
    for (number, (name, content)) in (2..).zip(programs) {
        entry(&mut all, number, name, FILE, content);
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

    #[test]
    fn an_archive_has_heads_at_multiples_of_four() {
        let all = archive(&[("init", b"12345")]);
        let heads: Vec<_> =
            (0..all.len() - 5).filter(|at| &all[*at..at + 6] == b"070701").collect();
        assert_eq!(heads.len(), 3);
        assert!(heads.iter().all(|at| at % 4 == 0) && all.len().is_multiple_of(4));
        assert!(all.windows(10).any(|name| name == b"TRAILER!!!"));
    }
}
