//! `install`: builds the library for C and C++ and installs it where compilers search.
//!
//! ```text
//!   PREFIX/include/                        all of crates/capi/include
//!   PREFIX/lib/libantiphon.so.VERSION      and the links .so.ABI (its soname) and .so
//!   PREFIX/lib/libantiphon.a
//!   PREFIX/lib/pkgconfig/antiphon.pc
//! ```

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::finding::Outcome;
use crate::metadata::Metadata;
use crate::{Failure, tree};

/// The version of the workspace, and so of the library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The number in the soname; `crates/capi/build.rs` has the same number.
const ABI: &str = "0";
/// The profile for code that is called from C: panics abort.
const PROFILE: &str = "preload";

/// `cargo xtask install --prefix P [--destdir D]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let (mut prefix, mut destination) = (None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("prefix") => prefix = Some(PathBuf::from(arguments.value()?)),
            Long("destdir") => destination = Some(arguments.value()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let prefix = prefix.ok_or("no prefix: say --prefix P, such as --prefix /usr/local")?;
    if !prefix.is_absolute() {
        return Err(format!("--prefix {} is not absolute", prefix.display()).into());
    }
    let root = tree::root()?;
    let built = build(&root)?;
    place(&root.join("crates/capi"), &built, &prefix, &staged(&prefix, destination))?;
    Ok(Outcome::Clean)
}

/// Where the files are put now: the prefix below the destination, if one is given.
fn staged(prefix: &Path, destination: Option<OsString>) -> PathBuf {
    match destination {
        None => prefix.to_owned(),
        Some(destination) => {
            Path::new(&destination).join(prefix.strip_prefix("/").unwrap_or(prefix))
        }
    }
}

/// Builds the libraries; returns their directory.
fn build(root: &Path) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "-p", "antiphon-capi", "--profile", PROFILE])
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err("the library does not build".into());
    }
    Ok(Metadata::read(root)?.target_directory.join(PROFILE))
}

/// Puts the files of the crate and the libraries in `built` under `at`. Paths in these files refer
/// to `prefix`, the place of installation.
fn place(of_crate: &Path, built: &Path, prefix: &Path, at: &Path) -> Result<(), Failure> {
    let (include, lib) = (at.join("include"), at.join("lib"));
    let config = lib.join("pkgconfig");
    for directory in [&include, &config] {
        fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    for header in fs::read_dir(of_crate.join("include"))? {
        let header = header?;
        put(&header.path(), &include.join(header.file_name()), 0o644)?;
    }
    let shared = format!("libantiphon.so.{VERSION}");
    put(&built.join("libantiphon_capi.so"), &lib.join(&shared), 0o755)?;
    put(&built.join("libantiphon_capi.a"), &lib.join("libantiphon.a"), 0o644)?;
    link(&shared, &lib.join(format!("libantiphon.so.{ABI}")))?;
    link(&shared, &lib.join("libantiphon.so"))?;

    let text = fs::read_to_string(of_crate.join("antiphon.pc.in"))?
        .replace("@prefix@", &prefix.display().to_string())
        .replace("@version@", VERSION);
    let path = config.join("antiphon.pc");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// Copies a file to a path that may be in use: programs that have the old file open keep it.
fn put(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    let fresh = to.with_added_extension("new");
    let copied = fs::copy(from, &fresh)
        .and_then(|_| fs::set_permissions(&fresh, fs::Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&fresh, to));
    copied.map_err(|error| format!("{}: {error}", to.display()))?;
    println!("{}", to.display());
    Ok(())
}

/// Makes `at` a link to its neighbour `name`.
fn link(name: &str, at: &Path) -> Result<(), Failure> {
    let fresh = at.with_added_extension("new");
    let linked = match fs::remove_file(&fresh) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => symlink(name, &fresh).and_then(|()| fs::rename(&fresh, at)),
    };
    linked.map_err(|error| format!("{}: {error}", at.display()))?;
    println!("{}", at.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_needed_and_absolute() {
        for (arguments, expected) in [
            (&[][..], "--prefix"),
            (&["--prefix", "here"][..], "not absolute"),
            (&["--prefix", "/p", "more"][..], "more"),
        ] {
            let failure = run(lexopt::Parser::from_args(arguments)).unwrap_err().to_string();
            assert!(failure.contains(expected), "{failure}");
        }
    }

    #[test]
    fn a_destination_stands_before_the_prefix() {
        let staged = |destination: Option<&str>| {
            super::staged(Path::new("/usr"), destination.map(OsString::from))
        };
        assert_eq!(staged(None), Path::new("/usr"));
        assert_eq!(staged(Some("/stage")), Path::new("/stage/usr"));
    }
}
