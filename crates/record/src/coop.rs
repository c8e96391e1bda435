//! The activity of the event loops of a cooperative program: a page of counts, written by the
//! preload library `crates/preload-coop`, and read by the process that has started the program.
//!
//! A row belongs to one thread, from when it is found to be a loop until the process executes
//! another program or ends; rows are never freed. All words are counts of one writer, so the counts
//! of a thread that was killed remain.
//!
//! | words of a row | contents |
//! |---|---|
//! | `id` | process and thread, 32 bits each; 0: no row |
//! | `name` | the name of the thread, 16 bytes |
//! | `tier` | bit 0: the loop passes the CPU on, bit 1: it is raised when it is late |
//! | `refusal` | why a bit of `tier` is missing: [`Refusal`] |
//! | `counts` | one for each of [`Count`] |
//! | `sum`, `most`, `buckets` | how late the loop learnt that a timer was due, in nanoseconds |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::histogram::{BUCKETS, Histogram, bucket};

/// Environment variable for the tier of a program's loops: `auto`, `t1` or `t3`. Without it the
/// library does nothing.
pub const TIER: &str = "ANTIPHON_COOP";
/// Environment variable for the name of the loops' domain.
pub const DOMAIN: &str = "ANTIPHON_COOP_DOMAIN";
/// Environment variable for the CPU of the domain.
pub const CPU: &str = "ANTIPHON_COOP_CPU";
/// Environment variable for the options of a new domain, as text from [`words_of`]. Without it they
/// are the default; an existing domain keeps its own.
pub const OPTIONS: &str = "ANTIPHON_COOP_OPTIONS";
/// Environment variable for the file with the page, if a report is wanted.
pub const REPORT: &str = "ANTIPHON_COOP_REPORT";

/// Formats numbers for an environment variable.
#[must_use]
pub fn words_of(numbers: [u64; 4]) -> String {
    numbers.map(|number| number.to_string()).join(",")
}

/// Parses the text from [`words_of`]; `None` if it is not four numbers.
#[must_use]
pub fn numbers_of(words: &str) -> Option<[u64; 4]> {
    let numbers: Option<Vec<_>> = words.split(',').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Most loops that get a row.
pub const ROWS: usize = 256;
/// Length of the file, in bytes.
pub const PAGE_BYTES: usize = size_of::<Page>();

/// Bit of `tier`: the loop passes its CPU on to others of its domain.
pub const BATON: u64 = 1;
/// Bit of `tier`: the loop is raised while it is late.
pub const BOOST: u64 = 2;

/// The kinds of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Waits.
    Waits,
    /// Waits with a timeout of 0.
    Zero,
    /// Waits with a timeout of 0 before which the loop had announced its next release time.
    Told,
    /// Waits without a timeout.
    Endless,
    /// Times that had passed at the end of a wait: ends of timeouts, and times that the loop had
    /// announced.
    Due,
    /// Demotions because it has run too long.
    Overrun,
    /// Demotions because it has slept elsewhere.
    Slept,
    /// Demotions because it has had more than its share.
    Share,
    /// Number of times that the loop was raised.
    Raises,
    /// Number of times that the loop could not be raised.
    Refusals,
}

impl Count {
    /// All kinds of counts.
    pub const ALL: [Self; 10] = [
        Self::Waits,
        Self::Zero,
        Self::Told,
        Self::Endless,
        Self::Due,
        Self::Overrun,
        Self::Slept,
        Self::Share,
        Self::Raises,
        Self::Refusals,
    ];
}

/// Why a loop lacks a part of the requested tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The domain can't be opened.
    Domain,
    /// The domain is full.
    Full,
    /// The thread may not run on the domain's CPU.
    Cpu,
    /// Real-time priorities are not permitted.
    RealTime,
    /// Other threads kept this one from running while it joined.
    KeptFromRunning,
}

impl Refusal {
    /// All reasons, in the order in which a report names them.
    pub const ALL: [Self; 5] =
        [Self::Domain, Self::Full, Self::Cpu, Self::RealTime, Self::KeptFromRunning];

    fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.number() == number)
    }

    const fn number(self) -> u64 {
        self as u64 + 1
    }
}

/// The page: all zero at first.
#[repr(C)]
pub struct Page {
    /// Number of rows requested so far.
    wanted: AtomicU64,
    rows: [RowWords; ROWS],
}

/// The words of a loop, which only its thread writes.
#[repr(C)]
pub struct RowWords {
    id: AtomicU64,
    name: [AtomicU64; 2],
    tier: AtomicU64,
    refusal: AtomicU64,
    counts: [AtomicU64; Count::ALL.len()],
    sum: AtomicU64,
    most: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Page {
    /// Takes a row for a thread of a process; `None` if none is left.
    pub fn take(&self, process: u32, thread: u32, name: [u8; 16]) -> Option<&RowWords> {
        // Relaxed, here and below: each count has one writer, and orders no other data.
        let row = self.rows.get(self.wanted.fetch_add(1, Relaxed) as usize)?;
        for (word, part) in row.name.iter().zip(name.as_chunks().0) {
            word.store(u64::from_le_bytes(*part), Relaxed);
        }
        row.id.store(u64::from(process) << 32 | u64::from(thread), Relaxed);
        Some(row)
    }
}

impl RowWords {
    /// Sets the loop's tier ([`BATON`], [`BOOST`]), and why it lacks a part.
    pub fn set_tier(&self, tier: u64, refusal: Option<Refusal>) {
        self.tier.store(tier, Relaxed);
        self.refusal.store(refusal.map_or(0, Refusal::number), Relaxed);
    }

    /// Adds one to a count.
    pub fn add(&self, count: Count) {
        let word = &self.counts[count as usize];
        word.store(word.load(Relaxed) + 1, Relaxed);
    }

    /// Sets a count.
    pub fn set(&self, count: Count, number: u64) {
        self.counts[count as usize].store(number, Relaxed);
    }

    /// Counts a timer of which the loop learnt `ns` nanoseconds after it was due.
    pub fn late(&self, ns: u64) {
        self.add(Count::Due);
        let bucket = &self.buckets[bucket(ns)];
        bucket.store(bucket.load(Relaxed) + 1, Relaxed);
        self.sum.store(self.sum.load(Relaxed).wrapping_add(ns), Relaxed);
        self.most.store(self.most.load(Relaxed).max(ns), Relaxed);
    }
}

/// A loop, as read from its row.
#[derive(Clone, Debug)]
pub struct LoopRow {
    /// The process id.
    pub process: u32,
    /// The thread id.
    pub thread: u32,
    /// The name of that thread.
    pub name: String,
    /// Whether the loop passed its CPU on to others.
    pub baton: bool,
    /// Whether the loop was raised when it was late.
    pub boost: bool,
    /// The reason, if one of the two was refused.
    pub refusal: Option<Refusal>,
    counts: [u64; Count::ALL.len()],
    /// How late the loop learnt that a timer was due, in nanoseconds.
    pub tardiness: Histogram,
}

impl LoopRow {
    /// The count of that kind.
    #[must_use]
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }
}

/// Reads the current rows of a file, and the number of loops that found no row.
///
/// # Errors
///
/// Those of reading the file.
pub fn read(file: &File) -> io::Result<(Vec<LoopRow>, u64)> {
    let mut bytes = vec![0; PAGE_BYTES];
    file.read_exact_at(&mut bytes, 0)?;
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let (wanted, rows) = words.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
    let rows = rows.chunks_exact(size_of::<RowWords>() / size_of::<u64>());
    Ok((rows.filter_map(row).collect(), wanted.saturating_sub(ROWS as u64)))
}

/// A row from its words, in the order of [`RowWords`].
fn row(words: &[u64]) -> Option<LoopRow> {
    let mut words = words.iter().copied();
    let id = words.next().filter(|&id| id != 0)?;
    let name: Vec<u8> = words.by_ref().take(2).flat_map(u64::to_le_bytes).collect();
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let (tier, refusal) = (words.next()?, words.next()?);
    let counts = std::array::from_fn(|_| words.next().unwrap_or(0));
    let (sum_ns, max_ns) = (words.next()?, words.next()?);
    Some(LoopRow {
        process: (id >> 32) as u32,
        thread: id as u32,
        name: String::from_utf8_lossy(name).into_owned(),
        baton: tier & BATON != 0,
        boost: tier & BOOST != 0,
        refusal: Refusal::of(refusal),
        counts,
        tardiness: Histogram { counts: words.collect(), sum_ns, max_ns },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        // SAFETY: atomic words, for which zero is valid.
        let page: Box<Page> = unsafe { Box::new_zeroed().assume_init() };
        let name = *b"loop\0\0\0\0\0\0\0\0\0\0\0\0";
        let row = page.take(7, 8, name).expect("a row");
        row.set_tier(BATON, Some(Refusal::RealTime));
        row.add(Count::Waits);
        row.set(Count::Share, 3);
        [5, 1000].into_iter().for_each(|ns| row.late(ns));
        for _ in 1..ROWS {
            assert!(page.take(1, 2, name).is_some());
        }
        assert!(page.take(1, 2, name).is_none());

        let path = std::env::temp_dir().join(format!("coop-page-{}", std::process::id()));
        // SAFETY: the page consists of initialised words.
        let bytes = unsafe {
            std::slice::from_raw_parts((&raw const *page).cast::<u8>(), size_of::<Page>())
        };
        std::fs::write(&path, bytes).expect("a file");
        let (rows, lost) = read(&File::open(&path).expect("the file")).expect("a page");
        std::fs::remove_file(&path).expect("it was there");
        assert_eq!((rows.len(), lost), (ROWS, 1));
        let row = &rows[0];
        assert_eq!((row.process, row.thread, &*row.name), (7, 8, "loop"));
        assert_eq!((row.baton, row.boost, row.refusal), (true, false, Some(Refusal::RealTime)));
        let counts = [Count::Waits, Count::Share, Count::Due, Count::Zero].map(|it| row.count(it));
        assert_eq!(counts, [1, 3, 2, 0]);
        assert_eq!((row.tardiness.max_ns, row.tardiness.sum_ns), (1000, 1005));
        assert_eq!(row.tardiness.count(), 2);
    }
}
