//! Reads files that a user names, up to a limit: a wrong name, such as a device, must not exhaust
//! the memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Reads a file of at most `most` bytes. Blocks until the end of the file or the limit.
///
/// # Errors
///
/// If the file can't be read, or is longer.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let what = format!("more than {} KiB, which no file of this kind has", most >> 10);
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Reads a text, as [`bytes`] does.
///
/// # Errors
///
/// Those of `bytes`; if the file is not UTF-8.
pub fn text(path: &Path, most: usize) -> Result<String> {
    let text = String::from_utf8(bytes(path, most)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "not a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_may_be_there() {
        let endless = bytes(Path::new("/dev/zero"), 4096).expect_err("it has no end");
        assert_eq!(endless.kind(), ErrorKind::FileTooLarge);
        assert_eq!(endless.to_string(), "more than 4 KiB, which no file of this kind has");
        let path = std::env::temp_dir().join(format!("antiphon-input-{}", std::process::id()));
        std::fs::write(&path, b"\xffxyz").expect("a file");
        let read = (bytes(&path, 4), bytes(&path, 3), text(&path, 4));
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(read.0.expect("it fits"), b"\xffxyz");
        assert!(read.1.is_err());
        assert_eq!(read.2.expect_err("no text").kind(), ErrorKind::InvalidData);
    }
}
