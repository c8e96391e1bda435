//! Where code comes from: the file that is mapped at an address, and the offset in it.
//!
//! Asked for once for each call site, when it is new, so that a recording needs no process to be
//! read: it may have been killed, or have closed the library.

use crate::pieces::Pieces;

/// Calls `found` with the path and the offset of the file that is mapped at `address`, if one is.
pub(crate) fn locate(address: usize, found: impl FnOnce(&[u8], u64)) {
    at(address, |mapping| {
        if mapping.path.first() == Some(&b'/') {
            found(mapping.path, mapping.offset + (address - mapping.begin) as u64);
        }
    });
}

/// Whether other processes may have the memory at `address`, too.
pub(crate) fn is_shared(address: usize) -> bool {
    at(address, |mapping| mapping.shared).unwrap_or(false)
}

fn at<R>(address: usize, found: impl FnOnce(&Mapping<'_>) -> R) -> Option<R> {
    let mut lines = Pieces::of(c"/proc/self/maps", b'\n')?;
    while let Some(line) = lines.next() {
        if let Some(mapping) = Mapping::parse(line)
            && (mapping.begin..mapping.end).contains(&address)
        {
            return Some(found(&mapping));
        }
    }
    None
}

/// A line of `/proc/self/maps`: `begin-end rights offset device inode path`.
struct Mapping<'a> {
    begin: usize,
    end: usize,
    shared: bool,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
        let begin = hexadecimal(range.next()?)?;
        let end = hexadecimal(range.next()?)?;
        let shared = fields.next()?.ends_with(b"s");
        let offset = hexadecimal(fields.next()?)? as u64;
        let path = fields.nth(2).unwrap_or_default().trim_ascii_start();
        Some(Self { begin, end, shared, offset, path })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |number, &digit| {
        let digit = (digit as char).to_digit(16)?;
        number.checked_mul(16)?.checked_add(digit as usize)
    })
}
