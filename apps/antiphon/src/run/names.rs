//! Names of processes and call sites of a recording.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_record::{Module, Snapshot};

use crate::symbols::{CallSite, Symbols};

/// The id of a process of the recording.
pub fn pid(snapshot: &Snapshot, process: usize) -> u32 {
    snapshot.processes.get(process).map_or(0, |process| process.pid)
}

/// A caller of a call site of the recording.
pub fn caller(snapshot: &Snapshot, site: Option<usize>, symbols: &mut Symbols) -> CallSite {
    match site.and_then(|site| snapshot.sites.get(site)) {
        Some(site) => symbols.caller(site.module.as_ref(), site.offset, site.address),
        None => CallSite::named("unknown"),
    }
}

/// A call site of the recording.
pub fn site(snapshot: &Snapshot, site: Option<usize>, symbols: &mut Symbols) -> CallSite {
    match site.and_then(|site| snapshot.sites.get(site)) {
        Some(site) => symbols.site(site.module.as_ref(), site.offset, site.address),
        None => CallSite::named("unknown"),
    }
}

/// The global variables of a recording's processes, which name the locks in them.
///
/// A lock is searched in the files that contain call sites of its process: a lock in a variable is
/// mostly taken by the file that has the variable.
pub struct Variables {
    /// The files of each process, with their load bias.
    files: BTreeMap<usize, Vec<(u64, Module)>>,
}

impl Variables {
    /// Finds the files of a recording.
    pub fn of(snapshot: &Snapshot, symbols: &mut Symbols) -> Self {
        let mut files: BTreeMap<usize, Vec<(u64, Module)>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        for site in &snapshot.sites {
            let Some(module) = &site.module else { continue };
            if !known.insert((site.process, &module.path)) {
                continue;
            }
            if let Some(bias) = symbols.load_bias(module, site.offset, site.address) {
                files.entry(site.process).or_default().push((bias, module.clone()));
            }
        }
        Self { files }
    }

    /// The variable at an address of that process; `None` for an address on a stack or in a heap,
    /// or without symbols.
    pub fn name(&self, process: usize, address: u64, symbols: &mut Symbols) -> Option<String> {
        let files = self.files.get(&process)?;
        files
            .iter()
            .find_map(|(bias, module)| symbols.variable(module, address.checked_sub(*bias)?))
    }
}
