//! Reads events from a recording's file: the chunks, and the objects that their notes name.

use core::mem::{offset_of, size_of};
use std::io;

use super::{Batch, CHUNK, CHUNKS, EVENTS, Head, Mapped, RollHead, Shared, Shelf};
use crate::Kind;
use crate::layout::{
    BODY, FILE_BYTES, LOCK, MODULE, MODULES, PROCESS, ProcessRecord, ROWS, RowBody,
};
use crate::layout::{SITE, split_address_key, split_row_key};
use crate::module::Module;
use crate::reader::Recording;

/// A lock of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The record of its process.
    pub process: u32,
    /// Its kind.
    pub kind: Kind,
    /// Its address.
    pub address: u64,
}

/// Converts ticks to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds in 2^32 ticks.
    pub(crate) rate: u64,
    /// The time at which the first process was ready, in ticks.
    pub(crate) origin: u64,
}

impl Clock {
    /// Nanoseconds since the first process was ready; 0 before.
    #[must_use]
    pub fn ns(self, ticks: u64) -> u64 {
        self.span_ns(ticks.saturating_sub(self.origin))
    }

    /// The length of `ticks` ticks, in nanoseconds.
    #[must_use]
    pub fn span_ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.rate)) >> 32).unwrap_or(u64::MAX)
    }
}

impl Recording {
    /// The conversion of ticks to time; `None` before the first process has stored it.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn clock(&self) -> io::Result<Option<Clock>> {
        let [rate, origin, _] = self.clock_words()?;
        Ok((rate != 0).then_some(Clock { rate, origin }))
    }

    /// Number of events of all threads that found no room so far, including threads that never had
    /// a chunk.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn dropped(&self) -> io::Result<u64> {
        Ok(self.words_at(at(offset_of!(RollHead, dropped)), 1)?[0])
    }

    /// As [`drain`](super::drain).
    ///
    /// # Errors
    ///
    /// Those of reading and writing the file.
    pub fn drain(&self, all: bool) -> io::Result<Vec<Batch>> {
        super::drain(self, all)
    }

    /// As [`reclaim`](super::reclaim).
    ///
    /// # Errors
    ///
    /// Those of reading and writing the file.
    pub fn reclaim(&self, gone: impl FnMut(&Head) -> bool) -> io::Result<Vec<Batch>> {
        super::reclaim(self, gone)
    }

    /// The process namespace in which the ids of a process are valid, by its inode number; 0 if
    /// unknown.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn namespace(&self, process: u32) -> io::Result<u64> {
        let word = offset_of!(ProcessRecord, namespace) / 8;
        Ok(self.record(PROCESS, process as usize)?[word])
    }

    /// The records of the lock and the site of a row that a note names, if they exist.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn row_records(&self, object: u32) -> io::Result<(Option<u32>, Option<u32>)> {
        let Some(row) = crate::RowWriter::from_bits(object).map(crate::RowWriter::index) else {
            return Ok((None, None));
        };
        if row >= ROWS {
            return Ok((None, None));
        }
        let key = self.record(BODY, row)?[offset_of!(RowBody, key) / 8];
        let (lock, _, site) = split_row_key(key);
        let record = |number: u64| u32::try_from(number.wrapping_sub(1)).ok();
        Ok((record(lock), record(site)))
    }

    /// The lock of a record.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn lock(&self, record: u32) -> io::Result<Place> {
        let key = self.record(LOCK, record as usize)?[0];
        let (process, kind, address) = split_address_key(key);
        Ok(Place { process: process as u32, kind: Kind::from_bits(kind), address })
    }

    /// The site of a record: its address, and the file and offset of that, if known.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn site(&self, record: u32) -> io::Result<(u64, Option<(Module, u64)>)> {
        let site = self.record(SITE, record as usize)?;
        let (_, _, address) = split_address_key(site[0]);
        let Some(module) = (site[1] as usize).checked_sub(1).filter(|at| *at < MODULES) else {
            return Ok((address, None));
        };
        let module = self.record(MODULE, module)?;
        Ok((address, Module::read(&module).map(|module| (module, site[2]))))
    }
}

impl Shelf for Recording {
    type Memory = Mapped;
    type Error = io::Error;

    fn states(&self) -> io::Result<Vec<u32>> {
        let states = self.words_at(at(offset_of!(RollHead, states)), CHUNKS / 2)?;
        Ok(states.into_iter().flat_map(halves).collect())
    }

    fn set_state(&self, chunk: usize, state: u32) -> io::Result<()> {
        let word = at(offset_of!(RollHead, states) + chunk * size_of::<u32>());
        self.write_at(word, &state.to_ne_bytes())
    }

    fn owner(&self, chunk: usize) -> io::Result<u64> {
        Ok(self.words_at(self::chunk(chunk) + offset_of!(Shared, owner) as u64, 1)?[0])
    }

    fn set_owner(&self, chunk: usize, owner: u64) -> io::Result<()> {
        let word = self::chunk(chunk) + offset_of!(Shared, owner) as u64;
        self.write_at(word, &owner.to_ne_bytes())
    }

    fn numbers(&self, chunk: usize) -> io::Result<[u32; 4]> {
        let first = self::chunk(chunk) + offset_of!(Shared, sequence) as u64;
        let words = self.words_at(first, 2)?;
        let [[sequence, lost], [used, tid]] = [halves(words[0]), halves(words[1])];
        Ok([sequence, lost, used, tid])
    }

    fn events(&self, chunk: usize, count: usize) -> io::Result<Vec<[u64; 2]>> {
        let first = self::chunk(chunk) + offset_of!(Shared, events) as u64;
        let words = self.words_at(first, count.min(EVENTS) * 2)?;
        Ok(words.as_chunks::<2>().0.to_vec())
    }
}

/// The two half words of a word, in memory order.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// The offset of a chunk in the file.
fn chunk(chunk: usize) -> u64 {
    CHUNK.offset + (chunk * size_of::<Shared>()) as u64
}

fn at(offset: usize) -> u64 {
    FILE_BYTES + offset as u64
}
