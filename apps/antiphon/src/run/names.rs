//! Names of processes and call sites of a recording.

use antiphon_record::Snapshot;

use crate::symbols::{CallSite, Symbols};

/// The id of a process of the recording.
pub fn pid(snapshot: &Snapshot, process: usize) -> u32 {
    snapshot.processes.get(process).map_or(0, |process| process.pid)
}

/// A call site of the recording.
pub fn site(snapshot: &Snapshot, site: Option<usize>, symbols: &mut Symbols) -> CallSite {
    match site.and_then(|site| snapshot.sites.get(site)) {
        Some(site) => symbols.site(site.module.as_ref(), site.offset, site.address),
        None => CallSite::named("unknown"),
    }
}
