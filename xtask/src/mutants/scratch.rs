//! A copy of the tree for mutants, kept between runs so that its builds stay incremental.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::{Failure, tree};

/// The copy. Only one process has it at a time.
pub struct Scratch {
    tree: PathBuf,
    builds: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Brings the copy below `directory` up to date with the tree at `root`.
    ///
    /// # Errors
    ///
    /// If another process has it, or a file can't be copied.
    pub fn of(root: &Path, directory: &Path) -> Result<Self, Failure> {
        let tree = directory.join("tree");
        std::fs::create_dir_all(&tree)?;
        let lock = File::create(directory.join("lock"))?;
        lock.try_lock().map_err(|_| "another `cargo xtask mutants` is running")?;
        let files: BTreeSet<_> = tree::files(root)?.into_iter().collect();
        for file in &files {
            write_if_changed(&tree.join(file), &std::fs::read(root.join(file))?)?;
        }
        remove_others(&tree, "", &files)?;
        Ok(Self { tree, builds: directory.join("build"), _lock: lock })
    }

    /// The root of the copy.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// The folder in which cargo builds the copy.
    pub fn builds(&self) -> &Path {
        &self.builds
    }

    /// The text of a file of the copy.
    pub fn text(&self, file: &str) -> Result<String, Failure> {
        let path = self.tree.join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}").into())
    }

    /// Runs `trial` while files of the copy have the given `texts`, and then restores the files.
    pub fn with<R>(
        &self,
        texts: &BTreeMap<String, String>,
        trial: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut originals = BTreeMap::new();
        for (file, text) in texts {
            originals.insert(file, self.text(file)?);
            std::fs::write(self.tree.join(file), text)?;
        }
        let result = trial();
        for (file, original) in originals {
            std::fs::write(self.tree.join(file), original)?;
        }
        result
    }
}

/// Leaves an equal file alone: cargo rebuilds newer files.
fn write_if_changed(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    if std::fs::read(path).is_ok_and(|present| present == contents) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, contents).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Removes files of an earlier copy that the tree no longer has.
fn remove_others(tree: &Path, below: &str, files: &BTreeSet<String>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(tree.join(below))? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("odd name {name:?}"))?;
        let file = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            remove_others(tree, &file, files)?;
        } else if !files.contains(&file) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test's own below the system's temporary one.
    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_change_is_there_during_the_trial_only() {
        let directory = directory("change");
        let file = directory.join("tree/f");
        write_if_changed(&file, b"one").unwrap();
        let scratch = Scratch {
            tree: directory.join("tree"),
            builds: directory.join("build"),
            _lock: File::create(directory.join("lock")).unwrap(),
        };
        let changed = BTreeMap::from([("f".to_owned(), "two".to_owned())]);
        let seen = scratch.with(&changed, || Ok(std::fs::read_to_string(&file)?)).unwrap();
        assert_eq!(seen, "two");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        let failed = scratch.with(&changed, || Err::<(), _>("failed".into()));
        assert!(failed.is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn equal_files_keep_their_times_and_removed_ones_go() {
        let directory = directory("copy");
        let path = directory.join("a/b");
        write_if_changed(&path, b"x").unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        write_if_changed(&path, b"x").unwrap();
        assert_eq!(path.metadata().unwrap().modified().unwrap(), time);
        write_if_changed(&directory.join("a/old"), b"y").unwrap();
        remove_others(&directory, "", &BTreeSet::from(["a/b".to_owned()])).unwrap();
        assert!(path.exists());
        assert!(!directory.join("a/old").exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
