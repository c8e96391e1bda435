//! Reads and writes files with numbers that may only fall: those of [`prose`](super::prose) and
//! [`circles`](super::circles).

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Failure;

/// Reads the numbers in a file; `file` is relative to `root`.
///
/// # Errors
///
/// If it can't be read, or is not TOML of that form.
pub fn read<T: DeserializeOwned>(root: &Path, file: &str) -> Result<T, Failure> {
    let text =
        std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{file}: {error}").into())
}

/// Writes the numbers, with an explaining comment above them.
///
/// # Errors
///
/// If the file can't be written.
pub fn write(root: &Path, file: &str, about: &str, numbers: &str) -> Result<(), Failure> {
    std::fs::write(root.join(file), format!("{about}{numbers}"))
        .map_err(|error| format!("{file}: {error}").into())
}
