//! Reading traces from untrusted sources: all content is checked.

use std::io::Read;

use crate::codec::{Rest, decode};
use crate::event::What;
use crate::file::{MAGIC, MAX_BLOCK, VERSION, tag};
use crate::{About, Error, Event, Lock, LockKind, Site, Tables, Trace};

/// More threads than any program has: a larger number means damage, and must not allocate a table
/// of that size.
const MAX_THREADS: usize = 1 << 20;

/// Longer than any recording, in nanoseconds: over two years. Sums of a few such times don't
/// overflow.
const MAX_NS: u64 = 1 << 56;

/// Reads traces.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: R,
    offset: u64,
}

/// A block, and its offset in the file.
struct Block {
    tag: u8,
    payload: Vec<u8>,
    offset: u64,
}

impl<R: Read> Reader<R> {
    /// Reads a whole trace. Uses at most a few times the file's size of memory, plus the names of a
    /// million threads.
    ///
    /// A file that ends within a block or before the tables was cut off: the complete part is
    /// returned, with [`Trace::cut_off`] set.
    ///
    /// # Errors
    ///
    /// The variants of [`Error`].
    pub fn read(input: R) -> Result<Trace, Error> {
        let mut reader = Self { input, offset: 0 };
        reader.header()?;
        let about = reader.about()?;
        let mut events: Vec<Vec<Event>> = Vec::new();
        while let Some(block) = reader.block()? {
            match block.tag {
                tag::EVENTS => take_events(&block, &mut events)?,
                tag::TABLES => {
                    let tables = tables(&block)?;
                    reader.must_end()?;
                    return whole(about, tables, events, block.offset);
                }
                other => {
                    let what = format!("a block of the unknown kind {other}");
                    return Err(Error::damaged(block.offset, what));
                }
            }
        }
        cut_off(about, events, reader.offset)
    }

    fn header(&mut self) -> Result<(), Error> {
        let mut header = [0; 12];
        if self.fill(&mut header)? < header.len() || header[..8] != MAGIC {
            return Err(Error::Foreign);
        }
        let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if found == VERSION { Ok(()) } else { Err(Error::Version { found }) }
    }

    fn about(&mut self) -> Result<About, Error> {
        match self.block()? {
            Some(block) if block.tag == tag::ABOUT => serde_json::from_slice(&block.payload)
                .map_err(|error| Error::damaged(block.offset, error.to_string())),
            _ => Err(Error::damaged(12, "it does not say what was recorded")),
        }
    }

    /// Reads the next block; returns `None` if the file ends before the block does.
    fn block(&mut self) -> Result<Option<Block>, Error> {
        let offset = self.offset;
        let mut head = [0; 9];
        if self.fill(&mut head)? < head.len() {
            return Ok(None);
        }
        let [tag, length @ .., _, _, _, _] = head;
        let length = u32::from_le_bytes(length);
        let checksum = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
        if length > MAX_BLOCK {
            return Err(Error::damaged(offset, format!("{length} bytes in one block")));
        }
        // Grows with the available bytes, whatever length the block claims.
        let mut payload = Vec::new();
        let read = self.input.by_ref().take(length.into()).read_to_end(&mut payload)?;
        self.offset += read as u64;
        if read < length as usize {
            return Ok(None);
        }
        if crc32fast::hash(&payload) != checksum {
            return Err(Error::damaged(offset, "its checksum is wrong"));
        }
        Ok(Some(Block { tag, payload, offset }))
    }

    fn must_end(&mut self) -> Result<(), Error> {
        let offset = self.offset;
        if self.fill(&mut [0])? == 0 {
            return Ok(());
        }
        Err(Error::damaged(offset, "there is data after the last block"))
    }

    /// Reads until the buffer is full or the file ends; returns the number of bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }
}

/// Appends the events of a block to those of their thread.
fn take_events(block: &Block, threads: &mut Vec<Vec<Event>>) -> Result<(), Error> {
    let damaged = |what: &str| Error::damaged(block.offset, what);
    let mut rest = Rest(&block.payload);
    let thread = rest.number().and_then(|thread| usize::try_from(thread).ok());
    let (Some(thread), Some(count)) = (thread, rest.number()) else {
        return Err(damaged("events of no thread"));
    };
    if thread >= MAX_THREADS {
        return Err(damaged("a thread with an impossible number"));
    }
    if threads.len() <= thread {
        threads.resize_with(thread + 1, Vec::new);
    }
    let events = &mut threads[thread];
    let last_ns = events.last().map_or(0, |event| event.at_ns);
    let mut before_ns = 0;
    for at in 0..count {
        let event = decode(&mut rest, before_ns).ok_or_else(|| damaged("an unknown event"))?;
        if event.at_ns > MAX_NS {
            return Err(damaged("an event at an impossible time"));
        }
        if at == 0 && event.at_ns < last_ns {
            return Err(damaged("events that are not in the order of time"));
        }
        before_ns = event.at_ns;
        events.push(event);
    }
    if rest.0.is_empty() { Ok(()) } else { Err(damaged("more than its events")) }
}

fn tables(block: &Block) -> Result<Tables, Error> {
    serde_json::from_slice(&block.payload)
        .map_err(|error| Error::damaged(block.offset, error.to_string()))
}

/// Builds the trace, if the events only name entries of the tables.
fn whole(
    about: About,
    tables: Tables,
    events: Vec<Vec<Event>>,
    offset: u64,
) -> Result<Trace, Error> {
    let Tables { locks, sites, mut threads, costs, dropped } = tables;
    if events.len() > threads.len() {
        return Err(Error::damaged(offset, "a thread that is in no table"));
    }
    if threads.iter().any(|thread| thread.role as usize > sites.len()) {
        return Err(Error::damaged(offset, "a role that is in no table"));
    }
    if !costs.iter().all(|cost| cost.before_ps.max(cost.after_ps) <= MAX_NS) {
        return Err(Error::damaged(offset, "an event that took impossibly long"));
    }
    let sizes = [locks.len(), sites.len(), threads.len()];
    for (thread, events) in threads.iter_mut().zip(events) {
        if !events.iter().all(|event| is_known(event.what, sizes)) {
            let what =
                format!("an event of thread {} refers to an entry that is in no table", thread.id);
            return Err(Error::damaged(offset, what));
        }
        thread.events = events;
    }
    Ok(Trace { about, locks, sites, threads, costs, dropped, cut_off: false })
}

fn is_known(what: What, [locks, sites, threads]: [usize; 3]) -> bool {
    let (lock, site, thread) = names(what);
    let within = |place: Option<u32>, size| place.is_none_or(|place| (place as usize) < size);
    within(lock, locks) && within(site, sites) && within(thread, threads)
}

/// The lock, the site and the thread that an event names, if any.
fn names(what: What) -> (Option<u32>, Option<u32>, Option<u32>) {
    match what {
        What::Begins | What::Ends | What::Off { .. } | What::Asked { .. } => (None, None, None),
        What::Waits { lock, site } | What::Takes { lock, site, .. } => {
            (Some(lock), Some(site), None)
        }
        What::GivesUp { lock } | What::Releases { lock } => (Some(lock), None, None),
        What::Sleeps { condition, site } => (Some(condition), Some(site), None),
        What::Wakes { condition, .. } | What::Notifies { condition, .. } => {
            (Some(condition), None, None)
        }
        What::Creates { thread } | What::Joins { thread } | What::Joined { thread } => {
            (None, None, Some(thread))
        }
    }
}

/// Builds a trace without tables: its threads, and its locks, whose kinds follow from the
/// operations on them. The file ends at `offset`.
fn cut_off(about: About, events: Vec<Vec<Event>>, offset: u64) -> Result<Trace, Error> {
    let whats = || events.iter().flatten().map(|event| event.what);
    let mut sizes = [0, 0, events.len()];
    for what in whats() {
        let (lock, site, thread) = names(what);
        for (size, place) in sizes.iter_mut().zip([lock, site, thread]) {
            *size = place.map_or(0, |place| place as usize + 1).max(*size);
        }
    }
    // Numbers are assigned in the order of first use: in an event, in an event that a thread's next
    // one may precede, or for a thread's role.
    let most = whats().count() + 2 * events.len();
    if sizes.iter().any(|size| *size > most) {
        return Err(Error::damaged(offset, "an event before it refers to an impossible entry"));
    }
    let mut locks = vec![Lock { kind: LockKind::Mutex, address: 0, process: 0 }; sizes[0]];
    for what in whats() {
        match what {
            What::Takes { lock, shared: true, .. } => locks[lock as usize].kind = LockKind::RwLock,
            What::Sleeps { condition, .. }
            | What::Wakes { condition, .. }
            | What::Notifies { condition, .. } => {
                locks[condition as usize].kind = LockKind::Condition;
            }
            _ => {}
        }
    }
    let sites = vec![Site::default(); sizes[1]];
    let mut threads: Vec<_> =
        events.into_iter().map(|events| crate::Thread { events, ..Default::default() }).collect();
    threads.resize(sizes[2], crate::Thread::default());
    Ok(Trace { about, locks, sites, threads, cut_off: true, ..Trace::default() })
}
