//! The summary of a trace that was written.

use std::fmt;
use std::path::PathBuf;

use antiphon_report::table::{count, duration};
use antiphon_report::words::{noun, several};
use serde_json::{Value, json};

/// A trace that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The path of the trace.
    pub path: PathBuf,
    /// The length of the file.
    pub bytes: u64,
    /// Number of events in the trace.
    pub events: u64,
    /// Number of events that are missing, because they came too fast, or from too many threads or
    /// processes.
    pub dropped: u64,
    /// The time that recording took in all threads, in nanoseconds; `None` if nothing was timed.
    pub recorder_ns: Option<u64>,
}

impl Written {
    /// A sentence about missing events, if there are any.
    pub(super) fn unseen(&self) -> Option<String> {
        (self.dropped > 0).then(|| {
            format!(
                "{} are not in the trace: they came faster than they could be written, or from \
                too many threads or processes. A replay of the trace has gaps.",
                several(self.dropped, "event")
            )
        })
    }

    /// The object for scripts.
    pub fn json(&self) -> Value {
        json!({
            "path": self.path, "bytes": self.bytes, "events": self.events,
            "dropped": self.dropped, "recorder_s": self.recorder_ns.map(|ns| ns as f64 / 1e9),
        })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let of = |number, one| format!("{} {}", count(number), noun(number, one));
        let (events, bytes) = (of(self.events, "event"), of(self.bytes, "byte"));
        write!(out, "Trace: {path}, {events}, {bytes}")?;
        if let Some(ns) = self.recorder_ns {
            let (all, each) = (ns as f64, ns as f64 / self.events.max(1) as f64);
            write!(
                out,
                "; recording took {} of the threads' time, {} an event",
                duration(all),
                duration(each)
            )?;
        }
        Ok(())
    }
}
