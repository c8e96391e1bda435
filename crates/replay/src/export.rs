//! Exports traces as a timeline in the trace event format of Chrome ("Trace Event Format", Google),
//! which Perfetto reads. A process is a group, a thread a track, and a hold or a wait a slice. Each
//! trace has its own groups, one below the other, and all begin at the same time.

use std::io::{self, Write};

use antiphon_trace::{Trace, What};
use serde_json::{Value, json};

/// Writes the timeline of traces, each with the names of its groups. Times count from the first
/// event of each.
///
/// # Errors
///
/// If `out` can't be written.
pub fn timeline(traces: &[(&str, &Trace)], out: impl Write) -> io::Result<()> {
    let mut lines = Lines { out, first: true };
    lines.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut groups = 0;
    for (called, trace) in traces {
        // For a part of a recording: only the threads that have events in it.
        let threads = trace.threads.iter().filter(|thread| !thread.events.is_empty());
        let mut processes: Vec<u32> = threads.map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        for (at, process) in processes.iter().enumerate() {
            groups += 1;
            let number = if at == 0 { String::new() } else { format!(", process {}", at + 1) };
            lines.put(&json!({
                "ph": "M", "name": "process_name", "pid": groups,
                "args": { "name": format!("{called}{number}") },
            }))?;
            lines.put(&json!({
                "ph": "M", "name": "process_sort_index", "pid": groups,
                "args": { "sort_index": groups },
            }))?;
            let is_in = |&number: &usize| {
                let thread = &trace.threads[number];
                thread.process == *process && !thread.events.is_empty()
            };
            for number in (0..trace.threads.len()).filter(is_in) {
                track(trace, number, groups, &mut lines)?;
            }
        }
    }
    lines.out.write_all(b"\n]}\n")?;
    lines.out.flush()
}

/// Events, with commas between them.
struct Lines<W> {
    out: W,
    first: bool,
}

impl<W: Write> Lines<W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::replace(&mut self.first, false) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
    }
}

/// A lock that the thread holds.
struct Held {
    lock: u32,
    site: u32,
    from_ns: u64,
}

fn track(
    trace: &Trace,
    number: usize,
    process: u32,
    lines: &mut Lines<impl Write>,
) -> io::Result<()> {
    let thread = &trace.threads[number];
    // Not the kernel's thread id, which may be reused.
    let track = number + 1;
    let begins_ns = trace.begins_ns();
    // The format's unit is the microsecond, with a fraction.
    let micros = |ns: u64| ns as f64 / 1e3;
    let since = |ns: u64| micros(ns - begins_ns);
    let role = (thread.role as usize).checked_sub(1).map_or("", |site| name(trace, site as u32));
    let called = format!("{role} {}", thread.id);
    lines.put(&json!({
        "ph": "M", "name": "thread_name", "pid": process, "tid": track,
        "args": { "name": called.trim() },
    }))?;
    let slice = |what: &str, of: &str, from_ns: u64, to_ns: u64| {
        json!({
            "ph": "X", "name": format!("{what} {of}").trim(), "cat": what, "pid": process,
            "tid": track, "ts": since(from_ns), "dur": micros(to_ns - from_ns),
        })
    };
    let mut held: Vec<Held> = Vec::new();
    let mut waits: Option<(&str, &str, u64)> = None;
    for event in &thread.events {
        let at_ns = event.at_ns;
        if !matches!(event.what, What::Off { .. } | What::Asked { .. })
            && let Some((what, of, from_ns)) = waits.take()
        {
            lines.put(&slice(what, of, from_ns, at_ns))?;
        }
        match event.what {
            What::Waits { site, .. } => waits = Some(("wait", name(trace, site), at_ns)),
            What::Sleeps { site, .. } => waits = Some(("condition", name(trace, site), at_ns)),
            What::Joins { .. } => waits = Some(("join", "", at_ns)),
            What::Takes { lock, site, .. } => held.push(Held { lock, site, from_ns: at_ns }),
            What::Releases { lock } => {
                let Some(at) = held.iter().rposition(|held| held.lock == lock) else { continue };
                let innermost = at + 1 == held.len();
                let Held { site, from_ns, .. } = held.remove(at);
                let of = name(trace, site);
                if innermost {
                    lines.put(&slice("hold", of, from_ns, at_ns))?;
                } else {
                    // Slices of a track must nest: this one overlaps the next.
                    for (ph, ns) in [("b", from_ns), ("e", at_ns)] {
                        lines.put(&json!({
                            "ph": ph, "name": format!("hold {of}"), "cat": "hold",
                            "id": format!("{process}-{track}-{from_ns}"), "pid": process,
                            "tid": track,
                            "ts": since(ns),
                        }))?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn name(trace: &Trace, site: u32) -> &str {
    trace.sites.get(site as usize).map_or("", |site| &site.name)
}
