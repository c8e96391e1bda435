//! The C libraries of a machine: Debian's newest one, and this host's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;
use crate::Failure;

/// The loader and the libraries that a program of Rust needs.
const FILES: [&str; 3] = ["ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6"];
/// That of the compiler, which is taken from this host for both.
const UNWINDER: &str = "libgcc_s.so.1";

/// A file: its path in the machine, and its content.
pub type File = (String, Vec<u8>);

/// Returns the files of both.
///
/// # Errors
///
/// If a package can't be fetched, or the host has no such files.
pub fn files(folder: &Path) -> Result<Vec<File>, Failure> {
    let newest = folder.join("libc6/usr/lib/x86_64-linux-gnu");
    if !newest.join(FILES[1]).is_file() {
        Archive::open(&folder.join("apt"))?.unpack("libc6", &folder.join("libc6"))?;
    }
    let mut files = Vec::new();
    for name in FILES {
        // Where programs look for the loader, and the loader for libraries.
        let at = if name == FILES[0] { "lib64" } else { "lib/x86_64-linux-gnu" };
        files.push((format!("{at}/{name}"), fs::read(newest.join(name))?));
        let at = if name == FILES[0] { "ld.so" } else { name };
        files.push((format!("host/{at}"), fs::read(of_host(name)?)?));
    }
    for at in ["lib/x86_64-linux-gnu", "host"] {
        files.push((format!("{at}/{UNWINDER}"), fs::read(of_host(UNWINDER)?)?));
    }
    Ok(files)
}

/// Where the host's compiler finds a library.
fn of_host(name: &str) -> Result<PathBuf, Failure> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output()?;
    let path = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    if path.is_absolute() { Ok(path) } else { Err(format!("gcc does not find {name}").into()) }
}
