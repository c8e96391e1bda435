//! A temporary folder that only its user can read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, process};

/// A folder that is removed when this is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new folder.
    ///
    /// # Errors
    ///
    /// The folder can't be made, or its name is taken.
    pub fn new() -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only a number.
        let number = MADE.fetch_add(1, Relaxed);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("antiphon-metal-{}-{number}-{}", process::id(), since.subsec_nanos());
        let folder = env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }

    /// Returns the path of an entry of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that can't be removed is left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}
