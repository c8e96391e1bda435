//! Reads a file of the kernel piece by piece, without allocating.

use core::ffi::CStr;

use crate::sys::File;

const LENGTH: usize = 640;

/// A file that is read in pieces that end with a separator.
pub(crate) struct Pieces {
    file: File,
    separator: u8,
    buffer: [u8; LENGTH],
    begin: usize,
    end: usize,
}

impl Pieces {
    /// Opens the file at `path`. `None` if it can't be opened.
    pub(crate) fn of(path: &CStr, separator: u8) -> Option<Self> {
        let file = File::open(path, libc::O_RDONLY)?;
        Some(Self { file, separator, buffer: [0; LENGTH], begin: 0, end: 0 })
    }

    /// The next piece, without its separator. A piece of more than `LENGTH` bytes is cut to that
    /// length. `None` at the end.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = &self.buffer[self.begin..self.end];
            if let Some(length) = rest.iter().position(|&byte| byte == self.separator) {
                let begin = self.begin;
                self.begin += length + 1;
                return Some(&self.buffer[begin..begin + length]);
            }
            if rest.len() == LENGTH {
                self.skip_overlong();
                return Some(&self.buffer);
            }
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            match self.file.read(&mut self.buffer[self.end..]) {
                Some(length) => self.end += length,
                None => return self.last(),
            }
        }
    }

    /// The piece after the last separator.
    fn last(&mut self) -> Option<&[u8]> {
        let (begin, end) = (self.begin, self.end);
        (self.begin, self.end) = (0, 0);
        (begin != end).then(|| &self.buffer[begin..end])
    }

    /// Skips the rest of a piece that fills the buffer, up to its separator.
    fn skip_overlong(&mut self) {
        (self.begin, self.end) = (0, 0);
        let mut byte = [0];
        while self.file.read(&mut byte).is_some() && byte[0] != self.separator {}
    }
}
