//! A kernel with the time-slice extension, built of Debian's source: Debian builds none.
//!
//! It is a small one: it has what the cases need, and starts in a second. Building it takes a
//! quarter of an hour on two CPUs, 2 GB of disk meanwhile, and happens once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::archive::Archive;
use crate::Failure;

/// The package of the source with which the figures of the docs were measured.
const PINNED: &str = "linux-source-7.2";
/// Those that may take its place.
const OTHERS: &str = "^linux-source-[0-9]+[.][0-9]+$";

/// What the kernel has besides the least that it can have.
const OPTIONS: &str = include_str!("slice.config");
/// The option that it is built for.
const EXTENSION: &str = "CONFIG_RSEQ_SLICE_EXTENSION=y";

/// Files that are large, and of no use here: of drivers that are not built.
const LEFT_OUT: [&str; 6] = [
    "*/drivers/gpu/drm/amd/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/testing/*",
];

/// Returns the file of a kernel with the extension, from the last time if there is one.
///
/// # Errors
///
/// If there is no source, or it can't be built; the compiler has then printed the reason.
pub fn kernel(folder: &Path) -> Result<PathBuf, Failure> {
    let kept = folder.join("vmlinuz-slice");
    if kept.is_file() {
        return Ok(kept);
    }
    let archive = Archive::open(&folder.join("apt"))?;
    let names = archive.names(OTHERS, PINNED)?;
    let name = names.first().ok_or("Debian's archive has no source of a kernel")?;
    println!("kernel: builds {name}, once");
    let package = folder.join("source");
    archive.unpack(name, &package)?;
    let packed = package.join(format!("usr/src/{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(&packed).arg("-C").arg(&package);
    tar.args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")));
    run(&mut tar)?;
    let source = package.join(name);
    build(&source)?;
    // Renamed at the end: a kernel that is kept is whole.
    fs::rename(source.join("arch/x86/boot/bzImage"), &kept)?;
    fs::remove_dir_all(&package)?;
    Ok(kept)
}

fn build(source: &Path) -> Result<(), Failure> {
    let make = |arguments: &[&str]| {
        run(Command::new("make").current_dir(source).arg("-s").args(arguments))
    };
    make(&["tinyconfig"])?;
    let path = source.join(".config");
    let least = fs::read_to_string(&path)?;
    // The last word on an option counts.
    fs::write(&path, least + OPTIONS)?;
    make(&["olddefconfig"])?;
    if !fs::read_to_string(&path)?.lines().any(|line| line == EXTENSION) {
        return Err(format!("{EXTENSION} is not to be had in this source").into());
    }
    let jobs = std::thread::available_parallelism()?;
    make(&[&format!("-j{jobs}"), "bzImage"])
}

/// Runs a program whose output is for the user.
fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.stdin(Stdio::null()).status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{} failed", command.get_program().to_string_lossy()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_lines_that_the_kernel_reads() {
        assert!(OPTIONS.lines().any(|line| line == EXTENSION));
        for line in OPTIONS.lines() {
            let is_comment = line.is_empty() || line.starts_with("# ");
            let option = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
            assert!(is_comment || option.is_some_and(|(_, value)| !value.is_empty()), "{line}");
        }
    }
}
