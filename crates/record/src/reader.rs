//! The reader of a recording: positioned reads of the file, while programs write to it or later.

use core::mem::offset_of;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::histogram::BUCKETS;
use crate::layout::{
    BODY, DEPTHS, DROPS, EDGE, EdgeRecord, FILE_BYTES, GUARDS, HEADER, Header, LOCK, MAGIC, MODULE,
    PROCESS, PROGRAM, REST, ROWS, RowBody, SITE, STACK, Section, THREAD, ThreadRecord, VERSION,
    split_address_key, split_row_key,
};
use crate::lookout::Lookout;
use crate::module::Module;
use crate::namespace::is_elsewhere;
use crate::program::read_programs;
use crate::snapshot::{
    Blocked, Dropped, Edge, Lock, Nests, Process, Row, Site, Snapshot, Stack, Strangers, Thread,
    Waiting,
};
use crate::{Histogram, Kind, Scope, stacks as stack_records};

/// The index of the word of a record at which a field begins; by default of a row's body.
macro_rules! field {
    ($name:ident) => {
        field!(RowBody, $name)
    };
    ($record:ident, $name:ident) => {
        core::mem::offset_of!($record, $name) / 8
    };
}

/// A recording's file, opened by its reader.
#[derive(Debug)]
pub struct Recording {
    file: File,
}

impl Recording {
    /// Creates the file at `path` (its name goes in the program's environment as
    /// [`VARIABLE`](crate::VARIABLE)). The file is sparse; the caller must remove it.
    ///
    /// # Errors
    ///
    /// Those of the file system; a file that already exists is an error.
    pub fn create(path: &Path, scope: Scope) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Self::begin(file, scope)
    }

    /// Makes a recording of an empty file, such as one from `memfd_create`, whose path for the
    /// program is `/proc/PID/fd/N`.
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

    /// Opens an existing recording.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`ErrorKind::InvalidData`] if the file is not a recording of this
    /// version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let recording = Self { file };
        let header = recording.words(HEADER)?;
        if header[..2] != [MAGIC, VERSION] || header[3] != FILE_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "not a recording of this version"));
        }
        Ok(recording)
    }

    /// Reads the recording so far.
    ///
    /// Processes may write meanwhile. So a record is read before the record that it refers to,
    /// which then exists: a row before its lock, a lock before its process. If it does not exist
    /// all the same, the record is left out and counted ([`Snapshot::unfinished`]); nothing is
    /// attributed to a wrong lock.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn read(&self) -> io::Result<Snapshot> {
        if self.file.metadata()?.len() < FILE_BYTES {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the recording was cut off"));
        }
        let edges = self.table(EDGE)?;
        let threads = self.table(THREAD)?;
        let stacks = self.table(STACK)?;
        let bodies = self.bodies()?;
        let (rest, locks) = (self.record(REST, 0)?, self.table(LOCK)?);
        let (sites, modules) = (self.table(SITE)?, self.table(MODULE)?);
        let (processes, programs) = (self.table(PROCESS)?, self.table(PROGRAM)?);
        let header = self.words(HEADER)?;

        let mut left_out = LeftOut(0);
        let modules = read_modules(&modules);
        let (processes, process_at) = read_processes(&processes);
        let (sites, site_at) = read_sites(&sites, &modules, &process_at, &mut left_out);
        let (mut locks, lock_at) = read_locks(&locks, &process_at, &site_at, &mut left_out);
        let (mut rows, row_at) = read_rows(&bodies, &locks, &lock_at, &site_at, &mut left_out);
        let waits_at_rest = |record: &[u64]| record[5] == ROWS as u64 + 1;
        let rest_row = row(locks.len(), Kind::Rest, None, &rest);
        let counted = rest_row.contended != 0 || rest_row.acquisitions != 0;
        let rest_row_at = rows.len();
        if counted || threads.records().any(|(_, record)| waits_at_rest(record)) {
            locks.push(Lock {
                process: 0,
                address: 0,
                kind: Kind::Rest,
                first_site: None,
                made_site: None,
            });
            rows.push(rest_row);
        }
        let row_of = |number: u64| match number.checked_sub(1)? {
            rest if rest == ROWS as u64 => (rest_row_at < rows.len()).then_some(rest_row_at),
            row => row_at.get(row),
        };
        let stack_of = |record: &[u64]| {
            let (row, sites, whole) = stack_records::read(record);
            Some(Stack {
                row: row_of(row)?,
                callers: sites.into_iter().map(|site| site_at.named(site)).collect(),
                whole,
                waits: record[3],
                wait_ns: record[4],
            })
        };
        let (stacks, stack_at) = collect(&stacks, 0, stack_of);
        let found = (&process_at, &stack_at);
        let threads = read_threads(&threads, found, &rows, row_of, &mut left_out);
        let edges = read_edges(&edges, &lock_at, &row_at, &mut left_out);
        let (drops, counts) = header[4..].split_at(DROPS);
        Ok(Snapshot {
            scope: Scope::from_bits(header[2]),
            started: counts[0],
            bypasses: counts[1],
            strangers: Strangers { count: counts[2], lock: counts[3] },
            processes,
            sites,
            locks,
            depths: depths(&bodies, &rest),
            rows,
            stacks,
            threads,
            edges,
            programs: read_programs(&programs.words),
            dropped: Dropped {
                processes: drops[0],
                modules: drops[1],
                sites: drops[2],
                locks: drops[3],
                rows: drops[4],
                threads: drops[5],
                edges: drops[6],
                programs: drops[7],
                stacks: drops[8],
            },
            unfinished: left_out.0,
        })
    }

    /// A table that is searched by keys: its pieces up to the first without a key, because a piece
    /// is used only when the previous one is full.
    pub(crate) fn table(&self, section: Section) -> io::Result<Table> {
        let mut words = Vec::new();
        for (begin, records) in section.pieces() {
            let offset = section.offset + (begin * section.words * 8) as u64;
            let piece = self.words_at(offset, records * section.words)?;
            let used = piece.chunks(section.words).any(|record| record[0] != 0);
            words.extend(piece);
            if !used {
                break;
            }
        }
        Ok(Table { words, width: section.words })
    }

    /// The rows that were created.
    fn bodies(&self) -> io::Result<Table> {
        let made = self.words_at(offset_of!(Header, rows) as u64, 1)?[0];
        let made = usize::try_from(made).map_or(ROWS, |made| made.min(ROWS));
        Ok(Table { words: self.words_at(BODY.offset, made * BODY.words)?, width: BODY.words })
    }

    /// A view of the current state of single threads.
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
        self.consecutive(section, index, 1)
    }

    /// The words of `count` records from `index` on.
    pub(crate) fn consecutive(
        &self,
        section: Section,
        index: usize,
        count: usize,
    ) -> io::Result<Vec<u64>> {
        let offset = section.offset + (index * section.words * 8) as u64;
        self.words_at(offset, count * section.words)
    }

    /// The header's words on ticks: rate, origin, and cost of one reading of the clock.
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

/// The words of a table's records.
pub(crate) struct Table {
    words: Vec<u64>,
    /// Words of a record.
    width: usize,
}

impl Table {
    /// All records, with their numbers; those in use have a first word that is not zero.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, &[u64])> {
        (0..).zip(self.words.chunks(self.width))
    }
}

/// How many records were left out.
struct LeftOut(u64);

impl LeftOut {
    /// Counts a record that is not whole.
    fn count<T>(&mut self, record: Option<T>) -> Option<T> {
        self.0 += u64::from(record.is_none());
        record
    }
}

/// Where the records of a table stand in the vector that was made of those in use.
struct Places(Vec<Option<usize>>);

impl Places {
    fn get(&self, record: u64) -> Option<usize> {
        self.0.get(usize::try_from(record).ok()?).copied().flatten()
    }

    /// The place of a record whose number plus 1 is given: 0 names none.
    fn named(&self, number: u64) -> Option<usize> {
        self.get(number.checked_sub(1)?)
    }
}

/// Calls `make` for the records in use (by the word `key`), and notes the place of each result.
fn collect<T>(
    table: &Table,
    key: usize,
    mut make: impl FnMut(&[u64]) -> Option<T>,
) -> (Vec<T>, Places) {
    let mut all = Vec::new();
    let place = |(_, record): (u64, &[u64])| {
        all.push((record[key] != 0).then(|| make(record)).flatten()?);
        Some(all.len() - 1)
    };
    let places = Places(table.records().map(place).collect());
    (all, places)
}

/// The two numbers of a word.
fn halves(word: u64) -> [u64; 2] {
    [word >> 32, word & u64::from(u32::MAX)]
}

fn read_modules(table: &Table) -> Vec<Option<Module>> {
    table.records().map(|(_, record)| Module::read(record)).collect()
}

fn read_processes(table: &Table) -> (Vec<Process>, Places) {
    let (mut all, places) = collect(table, 0, |record| {
        Some(Process {
            pid: record[0] as u32,
            parent: None,
            began_ns: record[2],
            light: record[3] != 0,
            elsewhere: is_elsewhere(record[4]),
        })
    });
    for (number, record) in table.records() {
        if let Some(at) = places.get(number) {
            all[at].parent = places.named(record[1]);
        }
    }
    (all, places)
}

fn read_sites(
    table: &Table,
    modules: &[Option<Module>],
    process_at: &Places,
    left_out: &mut LeftOut,
) -> (Vec<Site>, Places) {
    collect(table, 0, |record| {
        let (process, _, address) = split_address_key(record[0]);
        let module = (record[1] as usize).checked_sub(1).and_then(|at| modules.get(at));
        let process = left_out.count(process_at.get(process))?;
        let module = module.cloned().flatten();
        Some(Site { process, address, module, offset: record[2] })
    })
}

fn read_locks(
    table: &Table,
    process_at: &Places,
    site_at: &Places,
    left_out: &mut LeftOut,
) -> (Vec<Lock>, Places) {
    collect(table, 0, |record| {
        let (process, kind, address) = split_address_key(record[0]);
        Some(Lock {
            process: left_out.count(process_at.get(process))?,
            address,
            kind: Kind::from_bits(kind),
            first_site: site_at.named(record[1]),
            made_site: site_at.named(record[3]),
        })
    })
}

fn read_rows(
    bodies: &Table,
    locks: &[Lock],
    lock_at: &Places,
    site_at: &Places,
    left_out: &mut LeftOut,
) -> (Vec<Row>, Places) {
    collect(bodies, field!(key), |body| {
        let (lock, reads, site) = split_row_key(body[field!(key)]);
        let lock = left_out.count(lock_at.named(lock))?;
        Some(row(lock, locks[lock].kind.of_row(reads), site_at.named(site), body))
    })
}

/// Acquisitions by the number of locks that were held.
fn depths(bodies: &Table, rest: &[u64]) -> Vec<u64> {
    let mut depths = vec![0_u64; DEPTHS];
    for body in bodies.records().map(|(_, body)| body).chain([rest]) {
        for (depth, more) in depths.iter_mut().zip(&body[field!(depths)..]) {
            // A program may have overwritten its recording.
            *depth = depth.wrapping_add(*more);
        }
    }
    depths
}

fn read_edges(
    table: &Table,
    lock_at: &Places,
    row_at: &Places,
    left_out: &mut LeftOut,
) -> Vec<Edge> {
    let (edges, _) = collect(table, 0, |record| {
        let [held, taken] = halves(record[0]).map(|lock| lock_at.named(lock));
        let guards = &record[field!(EdgeRecord, guards)..][..GUARDS];
        let lives = record[field!(EdgeRecord, lives)];
        // Without lives the rest is not filled in yet.
        (lives != 0).then_some(())?;
        let (held, taken) = left_out.count(held.zip(taken))?;
        Some(Edge {
            held,
            taken,
            count: record[field!(EdgeRecord, count)],
            rows: halves(record[field!(EdgeRecord, rows)]).map(|row| row_at.named(row)),
            lives: halves(lives).map(|life| life as u32),
            guards: guards.iter().filter_map(|&lock| lock_at.named(lock)).collect(),
        })
    });
    edges
}

fn read_threads(
    table: &Table,
    (process_at, stack_at): (&Places, &Places),
    rows: &[Row],
    row_of: impl Fn(u64) -> Option<usize>,
    left_out: &mut LeftOut,
) -> Vec<Thread> {
    let (threads, _) = collect(table, 0, |record| {
        let (process, _, tid) = split_address_key(record[0]);
        let waiting = row_of(record[5]).and_then(|at| rows.get(at).map(|row| (at, row)));
        let waiting = waiting.map(|(at, row)| Waiting {
            row: at,
            lock: row.lock,
            site: row.site,
            since_ns: record[6],
            held: std::array::from_fn(|at| row_of(record[field!(ThreadRecord, held) + at])),
            stack: stack_at.named(record[field!(ThreadRecord, stack)]),
        });
        Some(Thread {
            process: left_out.count(process_at.get(process))?,
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
        })
    });
    threads
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
        refused: body[field!(refused)],
        still_waiting: 0,
        wait: histogram(field!(wait), field!(waits)),
        hold: histogram(field!(hold), field!(holds)),
    }
}
