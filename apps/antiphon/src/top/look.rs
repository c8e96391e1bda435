//! The state of a recording now, and what has changed after the previous look.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_record::{Scope, Snapshot};
use serde_json::{Value, json};

use super::find::Source;
use crate::run::callers::Callers;
use crate::run::names;
use crate::run::summary::{self, LockRow};
use crate::symbols::{CallSite, Symbols};

/// Reads one recording repeatedly.
pub struct Lookout {
    source: Source,
    symbols: Symbols,
    /// Nanoseconds waited and number of waits at the previous look, by call site and kind.
    before: HashMap<(String, &'static str), (u64, u64)>,
    /// The time of the previous look.
    then: Option<Instant>,
}

/// The result of one look at a recording.
pub struct Look {
    /// The command that runs, or the path of the file.
    pub name: String,
    /// The process of `antiphon run`; `None` if the recording is a file.
    pub runner: Option<u32>,
    /// Whether the process of `antiphon run` still exists.
    pub runs: bool,
    /// Nanoseconds from the moment when the first process began to record.
    pub age_ns: u64,
    /// Processes that have recorded something.
    pub processes: usize,
    /// Threads that have recorded something.
    pub threads: usize,
    /// Whether all acquisitions are recorded.
    pub profile: bool,
    /// Rows by lock and site.
    pub locks: Vec<LockRow>,
    /// Rows by site.
    pub sites: Vec<SiteRow>,
    /// The threads that wait now.
    pub waiting: Vec<Waiting>,
}

/// The waits at one call site.
pub struct SiteRow {
    /// All that was recorded at the site. Waits that have not ended count up to now.
    pub row: LockRow,
    /// The mean number of threads that waited here: after the previous look, or from the beginning.
    pub blocked: f64,
    /// Waits that ended or began, per second: after the previous look, or from the beginning.
    pub waits_per_s: f64,
}

/// A thread that waits.
pub struct Waiting {
    pid: u32,
    tid: u32,
    site: CallSite,
    kind: &'static str,
    since_ns: u64,
}

impl Lookout {
    /// A lookout that has not looked yet.
    pub fn new(source: Source) -> Self {
        Self { source, symbols: Symbols::default(), before: HashMap::new(), then: None }
    }

    /// Reads the recording.
    ///
    /// # Errors
    ///
    /// Those of reading the recording.
    pub fn look(&mut self) -> io::Result<Look> {
        // Checked before the recording is read: nothing is recorded after the program's end.
        let runs = self
            .source
            .runner
            .is_none_or(|pid| std::fs::exists(format!("/proc/{pid}")).unwrap_or(false));
        let mut snapshot = self.source.recording.read()?;
        let (now, now_ns) = (Instant::now(), Linux::now(Clock::Monotonic));
        let waiting = self.waiting(&snapshot, now_ns);
        snapshot.close_waits(|_, _, _| now_ns);
        let began_ns = snapshot.processes.iter().map(|process| process.began_ns).min();
        let age_ns = now_ns.saturating_sub(began_ns.unwrap_or(now_ns));
        let variables = names::Variables::of(&snapshot, &mut self.symbols);
        let callers = Callers::of(&snapshot, &mut self.symbols);
        let locks = summary::lock_rows(&snapshot, &variables, &callers, &mut self.symbols);
        let span_ns = self.then.map_or(age_ns, |then| (now - then).as_nanos() as u64).max(1);
        let sites = summary::by_site(&locks);
        let sites = sites.into_iter().map(|row| self.changed(row, span_ns as f64)).collect();
        self.then = Some(now);
        Ok(Look {
            name: self.source.name.clone(),
            runner: self.source.runner,
            runs,
            age_ns,
            processes: snapshot.processes.len(),
            threads: snapshot.threads.len(),
            profile: snapshot.scope == Some(Scope::Full),
            locks,
            sites,
            waiting,
        })
    }

    /// The row of a site, with its changes in the last `span_ns` nanoseconds.
    fn changed(&mut self, row: LockRow, span_ns: f64) -> SiteRow {
        let before = self.before.entry((row.site.label(), row.kind)).or_default();
        let now = (row.wait.sum_ns, row.contended);
        let blocked = now.0.saturating_sub(before.0) as f64 / span_ns;
        let waits_per_s = now.1.saturating_sub(before.1) as f64 / (span_ns / 1e9);
        *before = now;
        SiteRow { row, blocked, waits_per_s }
    }

    fn waiting(&mut self, snapshot: &Snapshot, now_ns: u64) -> Vec<Waiting> {
        let symbols = &mut self.symbols;
        let of = |thread: &antiphon_record::Thread| {
            let waiting = thread.waiting?;
            Some(Waiting {
                pid: names::pid(snapshot, thread.process),
                tid: thread.tid,
                site: names::site(snapshot, waiting.site, symbols),
                kind: snapshot.locks[waiting.lock].kind.name(),
                since_ns: now_ns.saturating_sub(waiting.since_ns),
            })
        };
        let mut waiting: Vec<_> = snapshot.threads.iter().filter_map(of).collect();
        waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.since_ns));
        waiting
    }
}

impl Look {
    /// The body of the JSON report.
    pub fn json(&self) -> Value {
        let waiting = self.waiting.iter().map(|waiting| {
            json!({
                "pid": waiting.pid, "tid": waiting.tid, "site": waiting.site.name,
                "kind": waiting.kind, "waited_s": waiting.since_ns as f64 / 1e9,
            })
        });
        let locks = self.locks.iter().map(|row| summary::lock_object(row, self.profile));
        json!({
            "program": self.name,
            "pid": self.runner,
            "runs": self.runs,
            "profile": self.profile,
            "wall_s": self.age_ns as f64 / 1e9,
            "processes": self.processes,
            "threads": self.threads,
            "waiting": waiting.collect::<Vec<_>>(),
            "locks": locks.collect::<Vec<_>>(),
        })
    }
}
