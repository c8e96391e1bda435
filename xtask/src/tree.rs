//! The files of this tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The root of the workspace that this program was built from.
pub fn root() -> Result<PathBuf, Failure> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("start it as `cargo xtask`: it finds the tree through cargo")?;
    let root = Path::new(&here).parent().ok_or("the manifest has no directory above it")?;
    Ok(root.to_owned())
}

/// The files that git tracks or would track, relative to `root`, sorted.
pub fn files(root: &Path) -> Result<Vec<String>, Failure> {
    let listing = git(root, &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    let mut files: Vec<_> =
        listing.lines().filter(|file| root.join(file).is_file()).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Files that differ from the commit `base`, untracked ones included.
pub fn changed_since(root: &Path, base: &str) -> Result<Vec<String>, Failure> {
    let diff = git(root, &["diff", "--name-only", "--relative", base, "--"])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard"])?;
    Ok(diff.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// The text of a file in the commit `base`.
pub fn text_at(root: &Path, base: &str, file: &str) -> Result<String, Failure> {
    git(root, &["show", &format!("{base}:{file}")])
}

/// The text of a file; `None` if it is not UTF-8.
pub fn text(root: &Path, file: &str) -> Result<Option<String>, Failure> {
    let bytes = std::fs::read(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    Ok(String::from_utf8(bytes).ok())
}

/// Git's names for the current contents of these files, in their order; `files` are relative to
/// `root`.
pub fn blobs(root: &Path, files: &[&str]) -> Result<Vec<String>, Failure> {
    let arguments: Vec<_> = ["hash-object", "--"].iter().chain(files).copied().collect();
    Ok(git(root, &arguments)?.lines().map(str::to_owned).collect())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, Failure> {
    // Unquoted: otherwise, a name with a special character is returned escaped.
    let output = Command::new("git")
        .args(["-c", "core.quotePath=false"])
        .args(arguments)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", arguments.join(" "), error.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
