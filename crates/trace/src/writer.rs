//! Writing a trace, block by block.

use std::io::Write;

use serde::Serialize;

use crate::codec::{encode, put};
use crate::event::Event;
use crate::file::{MAGIC, MAX_BLOCK, VERSION, tag};
use crate::{About, Error, Tables};

/// The largest number of events in a block: its payload is far below [`MAX_BLOCK`].
const BLOCK_EVENTS: usize = 1 << 16;

/// Writes a trace as a stream, and keeps none of it in memory.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if `out` takes nothing.
    pub fn new(out: W, about: &About) -> Result<Self, Error> {
        let mut writer = Self { out, bytes: 0 };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.json(tag::ABOUT, about)?;
        Ok(writer)
    }

    /// Appends events of a thread, in the order of time, after its earlier events. The tables at
    /// the end must have the thread and all entries that the events name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it can't be written.
    ///
    /// # Panics
    ///
    /// If the events are not in the order of time.
    pub fn events(&mut self, thread: u32, events: &[Event]) -> Result<(), Error> {
        for part in events.chunks(BLOCK_EVENTS) {
            let mut payload = Vec::with_capacity(part.len() * 6);
            put(&mut payload, thread.into());
            put(&mut payload, part.len() as u64);
            let mut before_ns = 0;
            for event in part {
                assert!(event.at_ns >= before_ns, "events are in the order of time");
                encode(&mut payload, event.at_ns - before_ns, event.what);
                before_ns = event.at_ns;
            }
            self.block(tag::EVENTS, &payload)?;
        }
        Ok(())
    }

    /// Ends the trace. Returns its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it can't be written, or the tables are too long for a block.
    pub fn finish(mut self, tables: &Tables) -> Result<u64, Error> {
        self.json(tag::TABLES, tables)?;
        self.out.flush()?;
        Ok(self.bytes)
    }

    fn json(&mut self, tag: u8, value: &impl Serialize) -> Result<(), Error> {
        let payload = serde_json::to_vec(value).map_err(std::io::Error::from)?;
        self.block(tag, &payload)
    }

    fn block(&mut self, tag: u8, payload: &[u8]) -> Result<(), Error> {
        let length = u32::try_from(payload.len()).ok().filter(|&length| length <= MAX_BLOCK);
        let length = length.ok_or_else(|| std::io::Error::other("a block of over 64 MiB"))?;
        self.put(&[tag])?;
        self.put(&length.to_le_bytes())?;
        self.put(&crc32fast::hash(payload).to_le_bytes())?;
        self.put(payload)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
