//! Numbers that may only fall, and the files that they stand in: of [`prose`](super::prose) and of
//! [`circles`](super::circles).

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Failure;

/// The numbers in a file; `file` relative to `root`.
///
/// # Errors
///
/// If it can't be read, or is no TOML of that form.
pub fn read<T: DeserializeOwned>(root: &Path, file: &str) -> Result<T, Failure> {
    let text =
        std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{file}: {error}").into())
}

/// Writes the numbers, with a comment that says what they are above them.
///
/// # Errors
///
/// If the file can't be written.
pub fn write(root: &Path, file: &str, about: &str, numbers: &str) -> Result<(), Failure> {
    std::fs::write(root.join(file), format!("{about}{numbers}"))
        .map_err(|error| format!("{file}: {error}").into())
}
