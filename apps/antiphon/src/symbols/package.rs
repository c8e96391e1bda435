//! The package with a file's debug information, where the file came with a distribution.
//!
//! It is used only in the note that says what to install.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A clause that says what to install so that functions in the file at `path` get names and lines.
/// `None` if no package has that file.
pub fn advice(path: &Path) -> Option<String> {
    debian(path, Path::new("/var/lib/dpkg/info")).or_else(|| red_hat(path))
}

/// The package whose Debian file list has this file: its debug information is in a package with the
/// same name and the suffix `-dbgsym`.
fn debian(path: &Path, lists: &Path) -> Option<String> {
    let names = spellings(path);
    for entry in std::fs::read_dir(lists).ok()?.flatten() {
        let list = entry.path();
        if list.extension().is_none_or(|ending| ending != "list") {
            continue;
        }
        let Ok(files) = std::fs::read_to_string(&list) else { continue };
        if files.lines().any(|line| names.iter().any(|name| Path::new(line) == name)) {
            let package = list.file_stem()?.to_str()?.split(':').next()?.to_owned();
            return Some(format!("{package}-dbgsym"));
        }
    }
    None
}

/// The paths under which a list may have a file: as given, resolved, and with or without the `/usr`
/// that was merged with the root.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    names.extend(std::fs::canonicalize(path));
    let other = |path: &PathBuf| match path.strip_prefix("/usr") {
        Ok(rest) => Some(Path::new("/").join(rest)),
        Err(_) => Some(Path::new("/usr").join(path.strip_prefix("/").ok()?)),
    };
    let others: Vec<_> = names.iter().filter_map(other).collect();
    names.extend(others);
    names
}

/// The package that has the file, where packages are RPM's.
fn red_hat(path: &Path) -> Option<String> {
    let mut rpm = Command::new("rpm");
    rpm.args(["-qf", "--qf", "%{NAME}"]).arg(path).stdin(Stdio::null()).stderr(Stdio::null());
    let output = rpm.output().ok().filter(|output| output.status.success())?;
    let package = String::from_utf8(output.stdout).ok()?;
    (!package.is_empty()).then(|| format!("{package}-debuginfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_the_list_of_its_package() {
        let lists = std::env::temp_dir().join(format!("antiphon-lists-{}", std::process::id()));
        std::fs::create_dir_all(&lists).expect("a folder");
        let write =
            |name: &str, text: &str| std::fs::write(lists.join(name), text).expect("a file");
        write("other.list", "/lib/liba.so.1.2\n/x\n");
        write("liba1:amd64.list", "/.\n/usr\n/lib/liba.so.1\n");
        write("liba1.md5sums", "/lib/libb.so\n");
        let found = |path: &str| debian(Path::new(path), &lists);
        assert_eq!(found("/lib/liba.so.1").as_deref(), Some("liba1-dbgsym"));
        assert_eq!(found("/usr/lib/liba.so.1").as_deref(), Some("liba1-dbgsym"));
        assert_eq!((found("/lib/liba.so"), found("/lib/libb.so")), (None, None));
        std::fs::remove_dir_all(&lists).expect("gone");
    }
}
