//! The kernel: Debian's, pinned; or the newest one whose type information is whole.
//!
//! Several of Debian's kernels are built with a tool that describes functions wrongly
//! (`antiphon_btf`): no scheduler can be loaded into them. So each is checked before it is used.

use std::fs;
use std::path::{Path, PathBuf};

use antiphon_btf::Kernel;

use super::archive::Archive;
use super::image;
use crate::Failure;

/// The package of the kernel with which the figures of the docs were measured.
const PINNED: &str = "linux-binary-7.0.13+deb13-cloud-amd64";
/// Those that may take its place.
const OTHERS: &str = "^linux-binary-[0-9].*-cloud-amd64$";

/// Returns the file of a kernel of Debian, from the last time if there is one.
///
/// # Errors
///
/// If none can be fetched, or none of them is whole.
pub fn of_debian(folder: &Path) -> Result<PathBuf, Failure> {
    let kept = folder.join("vmlinuz");
    if kept.is_file() {
        return Ok(kept);
    }
    let archive = Archive::open(&folder.join("apt"))?;
    for name in archive.names(OTHERS, PINNED)? {
        let unpacked = folder.join("package");
        archive.unpack(&name, &unpacked)?;
        let file = find(&unpacked)?.ok_or_else(|| format!("{name} has no kernel"))?;
        match check(folder, &file)? {
            None => {
                println!("kernel: {name}, whose type information is whole");
                // Renamed at the end: a kernel that is kept has been checked.
                fs::rename(&file, &kept)?;
                fs::remove_dir_all(&unpacked)?;
                return Ok(kept);
            }
            Some(why) => println!("kernel: not {name}: {why}"),
        }
        fs::remove_dir_all(&unpacked)?;
    }
    Err("no kernel of Debian's archive can be used".into())
}

/// Returns a kernel's file that the caller has chosen.
///
/// # Errors
///
/// If it can't be used, and why.
pub fn own(folder: &Path, file: &Path) -> Result<PathBuf, Failure> {
    match check(folder, file)? {
        None => Ok(file.to_owned()),
        Some(why) => Err(format!("{}: {why}", file.display()).into()),
    }
}

/// Returns why a scheduler can't be loaded into a kernel, if it can't.
fn check(folder: &Path, file: &Path) -> Result<Option<String>, Failure> {
    let whole = image::decompress(folder, &fs::read(file)?)?;
    let kernel = Kernel::read(image::section(&whole, ".BTF").ok_or("a kernel without BTF")?)?;
    if !kernel.has_sched_ext() {
        return Ok(Some("it has no sched_ext".to_owned()));
    }
    let broken = kernel.broken();
    Ok((!broken.is_empty()).then(|| {
        format!("its type information has {} wrong functions, as {}", broken.len(), broken[0])
    }))
}

/// A kernel's file in an unpacked package: where it is has changed with releases.
fn find(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if entry.file_name().to_string_lossy().starts_with("vmlinuz") {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}
