//! The input of the compressors, which is the same on every machine.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::Failure;

/// Its size in bytes.
const SIZE: usize = 100_000_000;
/// The size of the vocabulary, in which the common words are much more common.
const WORDS: u64 = 1 << 14;

/// The path of a text file in `directory`, which is created if it does not exist.
pub fn make(directory: &Path) -> Result<PathBuf, Failure> {
    let path = directory.join("input");
    let there = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == SIZE as u64);
    if !there {
        let mut file = BufWriter::new(File::create(&path)?);
        let (mut random, mut left) = (1, SIZE);
        while left > 0 {
            let word = word(&mut random);
            let used = word.len().min(left);
            file.write_all(&word[..used])?;
            left -= used;
        }
        file.flush()?;
    }
    Ok(path)
}

fn word(random: &mut u64) -> Vec<u8> {
    // Below a random bound, so that small numbers are frequent, like common words.
    let bound = next(random) % WORDS + 1;
    let mut letters = next(random) % bound * 0x9E37_79B9 + 1;
    let mut word = Vec::new();
    while letters > 0 {
        word.push(b'a' + (letters % 26) as u8);
        letters /= 26 * 26;
    }
    word.push(if next(random).is_multiple_of(12) { b'\n' } else { b' ' });
    word
}

/// Marsaglia's xorshift.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 16
}
