//! The command line that the image was started with.

use super::lock::Lock;
use crate::options::Options;

/// Length of the longest command line that is kept, in bytes.
const TEXT: usize = 2048;

/// The copy of the command line, made before its memory is used for other data.
struct Text {
    bytes: [u8; TEXT],
    length: usize,
}

static COMMAND_LINE: Lock<Text> = Lock::new(Text { bytes: [0; TEXT], length: 0 });

/// Returns the options of the command line.
#[must_use]
pub fn options() -> Options<'static> {
    let text = COMMAND_LINE.lock();
    let first = text.bytes.as_ptr();
    // SAFETY: `keep` has written it once, before there was another thread, from a text.
    unsafe {
        let bytes = core::slice::from_raw_parts(first, text.length);
        Options(core::str::from_utf8_unchecked(bytes))
    }
}

/// Keeps the command line. Called once, before there is another thread.
#[cfg(antiphon_image)]
pub(super) fn keep(text: &str) {
    let mut kept = COMMAND_LINE.lock();
    // A line that is too long is cut off between two words.
    let bytes = text.as_bytes();
    let last = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte == b' ').unwrap_or(0);
    let length = bytes.get(..TEXT).map_or(bytes.len(), |kept| match bytes.get(TEXT) {
        None => TEXT,
        Some(_) => last(kept),
    });
    kept.bytes[..length].copy_from_slice(&bytes[..length]);
    kept.length = length;
}
