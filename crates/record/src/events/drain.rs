//! Reading events, while the program writes others.

use core::mem::{offset_of, size_of};
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::fence;
use std::io;

use super::{CHUNKS, Chunk, EVENTS, FREE, FULL, Note, OWNED, Record, RollLayout};
use crate::Kind;
use crate::layout::{FILE_BYTES, LOCK, MODULE, MODULES, ROW, ROWS, SITE};
use crate::layout::{split_address_key, split_row_key};
use crate::program::read_path;
use crate::reader::Recording;

/// When so many chunks are owned, those of threads that are gone are looked for.
const SCARCE: usize = CHUNKS / 4 * 3;

/// The first words of a chunk: its owner, its number and what was lost before, its events and the
/// thread's id.
type Head = [u64; 3];

/// Events of one thread that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The record of its process.
    pub process: u32,
    /// The number of the thread.
    pub thread: u32,
    /// The kernel's id of the thread.
    pub tid: u32,
    /// How many batches came before of this thread.
    pub sequence: u32,
    /// Events that were dropped between the batch before and this one.
    pub lost: u32,
    /// What it did, in the order of time, but for signal handlers.
    pub notes: Vec<Note>,
}

/// A lock, as a recording knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The record of its process.
    pub process: u32,
    /// What it is.
    pub kind: Kind,
    /// Where it stood.
    pub address: u64,
}

/// How ticks become time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds in 2^32 ticks.
    pub(crate) rate: u64,
    /// When the first process was ready, in ticks.
    pub(crate) origin: u64,
}

impl Clock {
    /// Nanoseconds since the first process was ready; 0 before.
    #[must_use]
    pub fn ns(self, ticks: u64) -> u64 {
        let since = ticks.saturating_sub(self.origin);
        u64::try_from((u128::from(since) * u128::from(self.rate)) >> 32).unwrap_or(u64::MAX)
    }
}

impl Recording {
    /// How ticks become time; `None` before the first process has said so.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn clock(&self) -> io::Result<Option<Clock>> {
        let [rate, origin] = self.clock_words()?;
        Ok((rate != 0).then_some(Clock { rate, origin }))
    }

    /// How many events found no room so far, of all threads: also of those which never had any.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn dropped(&self) -> io::Result<u64> {
        Ok(self.words_at(at(offset_of!(RollLayout, dropped)), 1)?[0])
    }

    /// Takes the chunks that are full, and makes room for more. With `all` those that are not full,
    /// too: once, when nobody writes any more.
    ///
    /// # Errors
    ///
    /// Those of reading and writing the file.
    pub fn drain(&self, all: bool) -> io::Result<Vec<Batch>> {
        let mut batches = Vec::new();
        for (index, state) in self.states()?.enumerate() {
            if state == FULL || (all && state == OWNED) {
                batches.extend(self.batch(index)?);
            }
            if state == FULL {
                self.free(index)?;
            }
        }
        Ok(batches)
    }

    /// Takes the chunks of threads that were killed, or whose end nobody noted, if few are free;
    /// `gone` says of a thread, by the kernel's id of it, that it is no more.
    ///
    /// # Errors
    ///
    /// Those of reading and writing the file.
    pub fn reclaim(&self, mut gone: impl FnMut(u32) -> bool) -> io::Result<Vec<Batch>> {
        let owned = self.states()?.enumerate().filter(|(_, state)| *state == OWNED);
        let owned: Vec<usize> = owned.map(|(index, _)| index).collect();
        let mut batches = Vec::new();
        if owned.len() < SCARCE {
            return Ok(batches);
        }
        for index in owned {
            let Some(head) = self.head(index)? else { continue };
            if gone(tid(head)) {
                batches.extend(self.batch(index)?);
                self.free(index)?;
            }
        }
        Ok(batches)
    }

    /// The states of all chunks.
    fn states(&self) -> io::Result<impl Iterator<Item = u32> + use<>> {
        let states = self.words_at(at(offset_of!(RollLayout, states)), CHUNKS / 2)?;
        // CHUNK-2. Acquire: pairs with the release in `append`.
        fence(Acquire);
        Ok(states.into_iter().flat_map(|pair| [pair as u32, (pair >> 32) as u32]))
    }

    /// Makes a chunk anybody's that has been read.
    fn free(&self, index: usize) -> io::Result<()> {
        // CHUNK-5. Whoever claims it and is killed at once leaves it without an owner.
        self.write_at(chunk(index), &0_u64.to_ne_bytes())?;
        // Release: we are done with it; pairs with the acquire in `claim`.
        fence(Release);
        let state = at(offset_of!(RollLayout, states) + index * size_of::<u32>());
        self.write_at(state, &FREE.to_ne_bytes())
    }

    /// The head of a chunk, as words; `None` if it is nobody's.
    fn head(&self, index: usize) -> io::Result<Option<Head>> {
        let owner = self.words_at(chunk(index), 1)?[0];
        // CHUNK-5. Acquire: pairs with the release of the owner in `write_on_new`.
        fence(Acquire);
        let words = self.words_at(chunk(index), 3)?;
        // CHUNK-5. Acquire: pairs with the release of the count in `append`.
        fence(Acquire);
        Ok((owner != 0).then_some([owner, words[1], words[2]]))
    }

    /// What is in a chunk; `None` if it is nobody's.
    fn batch(&self, index: usize) -> io::Result<Option<Batch>> {
        let Some(head) = self.head(index)? else { return Ok(None) };
        let [owner, numbers, used] = head;
        let length = (used as u32 as usize).min(EVENTS);
        let events = chunk(index) + offset_of!(Chunk, events) as u64;
        let records = self.words_at(events, length * (size_of::<Record>() / 8))?;
        let records = records.chunks_exact(size_of::<Record>() / 8);
        Ok(Some(Batch {
            process: ((owner >> 32) as u32).wrapping_sub(1),
            thread: owner as u32,
            tid: tid(head),
            sequence: numbers as u32,
            lost: (numbers >> 32) as u32,
            notes: records.filter_map(|record| Note::of(record[0], record[1])).collect(),
        }))
    }

    /// Of a row that a note names: the records of its lock and of its site, if they were to be had.
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
        let (lock, _, site) = split_row_key(self.record(ROW, row)?[0]);
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

    /// The site of a record: its address, and where in which file that is, if that is known.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn site(&self, record: u32) -> io::Result<(u64, Option<(String, u64)>)> {
        let site = self.record(SITE, record as usize)?;
        let (_, _, address) = split_address_key(site[0]);
        let Some(module) = (site[1] as usize).checked_sub(1).filter(|at| *at < MODULES) else {
            return Ok((address, None));
        };
        let module = self.record(MODULE, module)?;
        Ok((address, read_path(&module[2..], module[1]).map(|path| (path, site[2]))))
    }
}

/// The kernel's id of who owns the chunk with that head.
fn tid(head: Head) -> u32 {
    (head[2] >> 32) as u32
}

/// Where a chunk is in the file.
fn chunk(index: usize) -> u64 {
    at(offset_of!(RollLayout, chunks) + index * size_of::<Chunk>())
}

fn at(offset: usize) -> u64 {
    FILE_BYTES + offset as u64
}
