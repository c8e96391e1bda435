//! The tables of a trace: locks and call sites, numbered in the order in which they are first met.

use std::collections::{HashMap, HashSet};
use std::io;

use antiphon_record::{Kind, Recording};
use antiphon_trace::{Lock, LockKind, Site};

use crate::symbols::Symbols;

/// A table of the recording's records, numbered in the order in which they were met.
#[derive(Default)]
struct Met {
    numbers: HashMap<Option<u32>, u32>,
    /// `None` stands for entries that found the recording's own table full.
    records: Vec<Option<u32>>,
}

impl Met {
    fn number(&mut self, record: Option<u32>) -> u32 {
        *self.numbers.entry(record).or_insert_with(|| {
            self.records.push(record);
            self.records.len() as u32 - 1
        })
    }
}

/// The locks and sites of a recording that events have named.
#[derive(Default)]
pub struct Names {
    rows: HashMap<u32, (u32, u32)>,
    locks: Met,
    sites: Met,
    /// Sites that are the beginning of a function, not a call.
    roles: HashSet<Option<u32>>,
    /// The address of each lock, by its number.
    addresses: Vec<u64>,
}

impl Names {
    /// The lock and the site of the row that a note names.
    pub fn row(&mut self, recording: &Recording, object: u32) -> io::Result<(u32, u32)> {
        if let Some(known) = self.rows.get(&object) {
            return Ok(*known);
        }
        let (lock, site) = recording.row_records(object)?;
        let both = (self.locks.number(lock), self.sites.number(site));
        while let Some(record) = self.locks.records.get(self.addresses.len()) {
            let lock = record.map(|record| recording.lock(record)).transpose()?;
            self.addresses.push(lock.map_or(0, |lock| lock.address));
        }
        self.rows.insert(object, both);
        Ok(both)
    }

    /// The address of a lock.
    pub fn address(&self, lock: u32) -> u64 {
        self.addresses.get(lock as usize).copied().unwrap_or(0)
    }

    /// The site of a record that is the function in which a thread begins.
    pub fn role(&mut self, record: u32) -> u32 {
        self.roles.insert(Some(record));
        self.sites.number(Some(record))
    }

    /// The tables for the trace.
    pub fn tables(self, recording: &Recording) -> io::Result<(Vec<Lock>, Vec<Site>)> {
        let mut symbols = Symbols::default();
        let locks = self.locks.records.into_iter().map(|record| match record {
            Some(record) => lock(recording, record),
            None => Ok(Lock { kind: LockKind::Rest, address: 0, process: 0 }),
        });
        let sites = self.sites.records.into_iter().map(|record| match record {
            Some(number) => {
                let begins = self.roles.contains(&record);
                site(recording, number, begins, &mut symbols)
            }
            None => Ok(Site::default()),
        });
        Ok((locks.collect::<io::Result<_>>()?, sites.collect::<io::Result<_>>()?))
    }
}

fn lock(recording: &Recording, record: u32) -> io::Result<Lock> {
    let place = recording.lock(record)?;
    let kind = match place.kind {
        Kind::Condition => LockKind::Condition,
        Kind::Spin => LockKind::Spin,
        Kind::RwLock | Kind::Read | Kind::Write => LockKind::RwLock,
        Kind::Rest => LockKind::Rest,
        Kind::Mutex | Kind::Adaptive | Kind::Recursive | Kind::ErrorCheck | Kind::Foreign => {
            LockKind::Mutex
        }
    };
    Ok(Lock { kind, address: place.address, process: place.process })
}

/// The call site of a record; if `begins`, the function that begins there.
fn site(
    recording: &Recording,
    record: u32,
    begins: bool,
    symbols: &mut Symbols,
) -> io::Result<Site> {
    let (address, place) = recording.site(record)?;
    let (module, offset) = place.unzip();
    let (file, offset) = (module.as_ref(), offset.unwrap_or(address));
    let name = if begins {
        symbols.function_at(file, offset, address)
    } else {
        symbols.site(file, offset, address).label()
    };
    Ok(Site { name, module: module.map(|module| module.path).unwrap_or_default(), offset })
}
