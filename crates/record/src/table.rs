//! Hash tables with open addressing in shared memory: find the record of a key, or claim a free one
//! for it.
//!
//! A key is written once, by an exchange, and never removed, so a search ends at the key or at the
//! first free record. Searches are short or the table counts as full: a long run of taken records
//! would make every miss slow for the program under test.
//!
//! A table is searched piece by piece. A key that finds a piece full continues in the next, which
//! is mapped for it; because a full path stays full, every process finds a key where another has
//! stored it.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::column::Column;

/// Most records that a search reads in a piece.
const PROBES: usize = 64;

/// The result of a search for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The key existed.
    Old(usize),
    /// The key did not exist, and a record has been claimed for it.
    New(usize),
    /// The key did not exist, and there is no room.
    Full,
}

impl Found {
    /// The record, old or new.
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            Self::Old(index) | Self::New(index) => Some(index),
            Self::Full => None,
        }
    }
}

/// Finds `key`, which is not zero, in a table whose key words `word` returns, or claims a record.
pub(crate) fn find<T: 'static>(
    table: &Column<T>,
    key: u64,
    word: impl Fn(&'static T) -> &'static AtomicU64,
) -> Found {
    for piece in 0..table.count() {
        let Some(records) = table.piece(piece) else { return Found::Full };
        match find_in(records.len(), key, |at| word(&records[at])) {
            Found::Full => {}
            Found::Old(at) => return Found::Old(table.begin(piece) + at),
            Found::New(at) => return Found::New(table.begin(piece) + at),
        }
    }
    Found::Full
}

/// [`find`] in one piece of `length` records, a power of two.
fn find_in<'a>(length: usize, key: u64, word: impl Fn(usize) -> &'a AtomicU64) -> Found {
    for index in path(key, length) {
        let at = word(index);
        // Relaxed, as below: a record's other words are counters, or used only by the reader, which
        // tolerates half a record.
        let mut seen = at.load(Relaxed);
        if seen == 0 {
            match at.compare_exchange(0, key, Relaxed, Acquire) {
                Ok(_) => return Found::New(index),
                Err(theirs) => seen = theirs,
            }
        }
        if seen == key {
            return Found::Old(index);
        }
    }
    Found::Full
}

/// Finds `key`, which is not zero and was claimed by this process, but claims nothing.
pub(crate) fn lookup<T: 'static>(
    table: &Column<T>,
    key: u64,
    word: impl Fn(&'static T) -> &'static AtomicU64,
) -> Option<usize> {
    // A record that this process has claimed is in a piece that it has mapped.
    let pieces = (0..table.count()).map_while(|piece| Some((piece, table.mapped(piece)?)));
    for (piece, records) in pieces {
        for at in path(key, records.len()) {
            // Relaxed: as in `find_in`.
            match word(&records[at]).load(Relaxed) {
                0 => return None,
                seen if seen == key => return Some(table.begin(piece) + at),
                _ => {}
            }
        }
    }
    None
}

/// The indices that a search for `key` among `length` records reads, in order.
pub(crate) fn path(key: u64, length: usize) -> impl Iterator<Item = usize> {
    let begin = hash(key) as usize;
    (0..PROBES.min(length)).map(move |step| begin.wrapping_add(step) & (length - 1))
}

/// Spreads keys that differ in few bits, such as addresses, over all bits.
pub(crate) fn hash(key: u64) -> u64 {
    let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table in memory of its own.
    fn table(length: usize) -> (&'static [AtomicU64], Column<AtomicU64>) {
        let words: Vec<AtomicU64> = (0..length).map(|_| AtomicU64::new(0)).collect();
        let words: &'static [AtomicU64] = words.leak();
        (words, Column::whole(words))
    }

    #[test]
    fn finds_again_what_it_claimed_and_says_when_it_is_full() {
        let (words, table) = table(128);
        let find = |key| find(&table, key, |word| word);
        let claimed: Vec<Found> = (1..=32).map(find).collect();
        assert!(claimed.iter().all(|found| matches!(found, Found::New(_))));
        for (key, claimed) in (1..=32).zip(&claimed) {
            assert_eq!(find(key).index(), claimed.index());
            assert!(matches!(find(key), Found::Old(_)));
        }
        let full = (100..1000).map(find).filter(|&found| found == Found::Full).count();
        assert!(full >= 900 - (128 - 32), "{full}");
        let lookup = |key| lookup(&table, key, |word| word);
        assert!((1..=32).zip(&claimed).all(|(key, claimed)| lookup(key) == claimed.index()));
        assert_eq!(lookup(5_000), None);
        assert_eq!(words.iter().filter(|word| word.load(Relaxed) == 7).count(), 1);
    }

    #[test]
    fn threads_that_race_for_a_key_get_the_same_record() {
        let (_, table) = table(1024);
        let run = || (1..500).map(|key| find(&table, key, |word| word).index()).collect();
        let all: Vec<Vec<Option<usize>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|one| *one == all[0]));
    }
}
