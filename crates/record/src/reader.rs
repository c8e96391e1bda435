//! The reading half: positioned reads of the file, while it grows or after.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::histogram::BUCKETS;
use crate::layout::{
    BODY, DEPTHS, DROPS, EDGE, EdgeRecord, FILE_BYTES, GUARDS, HEADER, Header, LOCK, MAGIC, MODULE,
    PROCESS, PROGRAM, ROW, ROWS, RowBody, SITE, Section, THREAD, ThreadRecord, VERSION,
    split_address_key, split_row_key,
};
use crate::lookout::Lookout;
use crate::namespace::is_elsewhere;
use crate::program::{read_path, read_programs};
use crate::snapshot::{
    Blocked, Dropped, Edge, Lock, Nests, Process, Row, Site, Snapshot, Strangers, Thread, Waiting,
};
use crate::{Histogram, Kind, Scope};

/// Which word of a record a field begins at; of a row's body, if nothing else is said.
macro_rules! field {
    ($name:ident) => {
        field!(RowBody, $name)
    };
    ($record:ident, $name:ident) => {
        core::mem::offset_of!($record, $name) / 8
    };
}

/// A recording's file, as its reader holds it.
#[derive(Debug)]
pub struct Recording {
    file: File,
}

impl Recording {
    /// Creates the file at `path` (its name goes in the program's environment as
    /// [`VARIABLE`](crate::VARIABLE)). The file is sparse; the caller removes it in the end.
    ///
    /// # Errors
    ///
    /// Those of the file system; a file that is there already is one.
    pub fn create(path: &Path, scope: Scope) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Self::begin(file, scope)
    }

    /// Makes a recording of an empty file, such as one from `memfd_create`, to be handed to the
    /// program as `/proc/PID/fd/N`.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn begin(file: File, scope: Scope) -> io::Result<Self> {
        file.set_len(scope.file_bytes())?;
        let header = [MAGIC, VERSION, scope.bits(), FILE_BYTES];
        let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        file.write_all_at(&bytes, 0)?;
        Ok(Self { file })
    }

    /// Opens a recording that is there.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`ErrorKind::InvalidData`] if it is no recording of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let recording = Self { file };
        let header = recording.words(HEADER)?;
        if header[..2] != [MAGIC, VERSION] || header[3] != FILE_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "no recording of this version"));
        }
        Ok(recording)
    }

    /// What has been recorded so far.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn read(&self) -> io::Result<Snapshot> {
        let header = self.words(HEADER)?;
        let modules = self.modules()?;
        let (processes, process_at) = self.processes()?;
        let (sites, site_at) = self.sites(&modules, &process_at)?;
        let (mut locks, lock_at) = self.locks(&process_at, &site_at)?;
        let threads = self.words(THREAD)?;
        let rest_waits = threads.chunks(THREAD.words).any(|record| record[5] == ROWS as u64 + 1);
        let (rows, row_at, depths) = self.rows(&mut locks, &lock_at, &site_at, rest_waits)?;
        let threads = read_threads(&threads, &process_at, &rows, &row_at);
        let edges = self.edges(&lock_at, &row_at)?;
        let programs = read_programs(&self.words(PROGRAM)?);
        let (drops, counts) = header[4..].split_at(DROPS);
        Ok(Snapshot {
            scope: Scope::from_bits(header[2]),
            started: counts[0],
            bypasses: counts[1],
            strangers: Strangers { count: counts[2], lock: counts[3] },
            processes,
            sites,
            locks,
            rows,
            threads,
            depths,
            edges,
            programs,
            dropped: Dropped {
                processes: drops[0],
                modules: drops[1],
                sites: drops[2],
                locks: drops[3],
                rows: drops[4],
                threads: drops[5],
                edges: drops[6],
                programs: drops[7],
            },
        })
    }

    fn modules(&self) -> io::Result<Vec<Option<String>>> {
        let words = self.words(MODULE)?;
        let name = |record: &[u64]| read_path(&record[2..], record[1]);
        Ok(words.chunks(MODULE.words).map(name).collect())
    }

    fn processes(&self) -> io::Result<(Vec<Process>, Places)> {
        let words = self.words(PROCESS)?;
        let places = Places::of(&words, PROCESS);
        let all = places.records(&words, PROCESS).map(|(_, record)| Process {
            pid: record[0] as u32,
            parent: places.get(record[1].wrapping_sub(1)),
            began_ns: record[2],
            light: record[3] != 0,
            elsewhere: is_elsewhere(record[4]),
        });
        Ok((all.collect(), places))
    }

    fn sites(
        &self,
        modules: &[Option<String>],
        process_at: &Places,
    ) -> io::Result<(Vec<Site>, Places)> {
        let words = self.words(SITE)?;
        let places = Places::of(&words, SITE);
        let all = places.records(&words, SITE).map(|(_, record)| {
            let (process, _, address) = split_address_key(record[0]);
            let module = (record[1] as usize).checked_sub(1).and_then(|at| modules.get(at));
            Site {
                process: process_at.get(process).unwrap_or(0),
                address,
                module: module.cloned().flatten(),
                offset: record[2],
            }
        });
        Ok((all.collect(), places))
    }

    fn locks(&self, process_at: &Places, site_at: &Places) -> io::Result<(Vec<Lock>, Places)> {
        let words = self.words(LOCK)?;
        let places = Places::of(&words, LOCK);
        let all = places.records(&words, LOCK).map(|(_, record)| {
            let (process, kind, address) = split_address_key(record[0]);
            Lock {
                process: process_at.get(process).unwrap_or(0),
                address,
                kind: Kind::from_bits(kind),
                first_site: site_at.get(record[1].wrapping_sub(1)),
            }
        });
        Ok((all.collect(), places))
    }

    fn rows(
        &self,
        locks: &mut Vec<Lock>,
        lock_at: &Places,
        site_at: &Places,
        rest_waits: bool,
    ) -> io::Result<(Vec<Row>, Places, Vec<u64>)> {
        let words = self.words(ROW)?;
        let places = Places::of(&words, ROW);
        let mut rows = Vec::new();
        let mut depths = vec![0_u64; DEPTHS];
        let mut count = |body: &[u64]| {
            for (depth, more) in depths.iter_mut().zip(&body[field!(depths)..]) {
                // Over a recording a program may have written.
                *depth = depth.wrapping_add(*more);
            }
        };
        for (index, record) in places.records(&words, ROW) {
            let (lock, reads, site) = split_row_key(record[0]);
            let lock = lock_at.get(lock.wrapping_sub(1)).unwrap_or(0);
            let kind = locks.get(lock).map_or(Kind::Rest, |lock| lock.kind.of_row(reads));
            let site = site_at.get(site.wrapping_sub(1));
            let body = self.record(BODY, index)?;
            count(&body);
            rows.push(row(lock, kind, site, &body));
        }
        let body = self.record(BODY, ROWS)?;
        count(&body);
        let rest = row(locks.len(), Kind::Rest, None, &body);
        if rest.contended != 0 || rest.acquisitions != 0 || rest_waits {
            locks.push(Lock { process: 0, address: 0, kind: Kind::Rest, first_site: None });
            rows.push(rest);
        }
        Ok((rows, places, depths))
    }

    fn edges(&self, lock_at: &Places, row_at: &Places) -> io::Result<Vec<Edge>> {
        let words = self.words(EDGE)?;
        let places = Places::of(&words, EDGE);
        let both = |word: u64, of: &Places| halves(word).map(|at| of.get(at.wrapping_sub(1)));
        let all = places.records(&words, EDGE).filter_map(|(_, record)| {
            let [held, taken] = both(record[0], lock_at);
            let guards = &record[field!(EdgeRecord, guards)..][..GUARDS];
            let lives = record[field!(EdgeRecord, lives)];
            // Without lives the rest is not there yet.
            (lives != 0).then_some(())?;
            Some(Edge {
                held: held?,
                taken: taken?,
                count: record[field!(EdgeRecord, count)],
                rows: both(record[field!(EdgeRecord, rows)], row_at),
                lives: halves(lives).map(|life| life as u32),
                guards: guards.iter().filter_map(|at| lock_at.get(at.wrapping_sub(1))).collect(),
            })
        });
        Ok(all.collect())
    }

    /// A look at what single threads do now.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn lookout(&self) -> io::Result<Lookout<'_>> {
        Lookout::new(self)
    }

    pub(crate) fn words(&self, section: Section) -> io::Result<Vec<u64>> {
        self.words_at(section.offset, section.records * section.words)
    }

    pub(crate) fn record(&self, section: Section, index: usize) -> io::Result<Vec<u64>> {
        let offset = section.offset + (index * section.words * 8) as u64;
        self.words_at(offset, section.words)
    }

    /// The header's words on ticks: their rate, their origin, what a look at them takes.
    pub(crate) fn clock_words(&self) -> io::Result<[u64; 3]> {
        let words = self.words_at(core::mem::offset_of!(Header, rate) as u64, 3)?;
        Ok([words[0], words[1], words[2]])
    }

    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(crate) fn words_at(&self, offset: u64, words: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; words * 8];
        self.file.read_exact_at(&mut bytes, offset)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    }
}

/// Where the records of a table stand in the vector that is made of those in use.
struct Places(Vec<Option<usize>>);

impl Places {
    fn of(words: &[u64], section: Section) -> Self {
        let mut next = 0;
        let place = |record: &[u64]| {
            (record[0] != 0).then(|| {
                next += 1;
                next - 1
            })
        };
        Self(words.chunks(section.words).map(place).collect())
    }

    fn get(&self, record: u64) -> Option<usize> {
        self.0.get(usize::try_from(record).ok()?).copied().flatten()
    }

    fn records<'a>(
        &self,
        words: &'a [u64],
        section: Section,
    ) -> impl Iterator<Item = (usize, &'a [u64])> {
        words.chunks(section.words).enumerate().filter(|(_, record)| record[0] != 0)
    }
}

/// The two numbers of a word.
fn halves(word: u64) -> [u64; 2] {
    [word >> 32, word & u64::from(u32::MAX)]
}

/// The threads from the words of their table.
fn read_threads(words: &[u64], process_at: &Places, rows: &[Row], row_at: &Places) -> Vec<Thread> {
    let thread = |record: &[u64]| {
        let (process, _, tid) = split_address_key(record[0]);
        let at = match record[5] {
            // The row of the rest is the last, if it is there.
            at if at == ROWS as u64 + 1 => rows.len().checked_sub(1),
            at => row_at.get(at.wrapping_sub(1)),
        };
        let waiting = at.and_then(|at| rows.get(at).map(|row| (at, row)));
        let waiting = waiting.map(|(at, row)| Waiting {
            row: at,
            lock: row.lock,
            site: row.site,
            since_ns: record[6],
        });
        Thread {
            process: process_at.get(process).unwrap_or(0),
            tid: tid as u32,
            blocked: Blocked {
                mutex_ns: record[1],
                condition_ns: record[2],
                spin_ns: record[3],
                rwlock_ns: record[field!(ThreadRecord, rwlock_ns)],
            },
            waits: record[4],
            acquisitions: record[7],
            waiting,
            nests: Nests {
                count: record[field!(ThreadRecord, nests)],
                locks: record[field!(ThreadRecord, nested)],
                most: record[field!(ThreadRecord, nested_max)],
            },
        }
    };
    words.chunks(THREAD.words).filter(|record| record[0] != 0).map(thread).collect()
}

/// A row from the words of its body.
fn row(lock: usize, kind: Kind, site: Option<usize>, body: &[u64]) -> Row {
    let histogram = |total: usize, counts: usize| Histogram {
        sum_ns: body[total],
        max_ns: body[total + 1],
        counts: body[counts..counts + BUCKETS].to_vec(),
    };
    Row {
        lock,
        kind,
        site,
        acquisitions: body[field!(acquisitions)],
        contended: body[field!(contended)],
        gave_up: body[field!(gave_up)],
        still_waiting: 0,
        wait: histogram(field!(wait), field!(waits)),
        hold: histogram(field!(hold), field!(holds)),
    }
}
