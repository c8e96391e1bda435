//! A recording as a timeline: the trace event format of Chrome ("Trace Event Format", Google), that
//! Perfetto reads. A worker has two tracks, because slices of one track must be nested: its own
//! activity, and below it the recorded tasks. An arrow leads to a task from where it was made
//! ready. A fiber has its own track, from when it was made ready, with its waits.

use std::io::{self, Write};

use antiphon_runtime::flight::{Event, Found, Sample, What};

use super::recording::Recording;
use super::timed::{Part, Span, Timed};

impl Recording {
    /// Writes the recording as JSON for <https://ui.perfetto.dev>, or any other reader of Chrome's
    /// trace events. Times are relative to the first event.
    ///
    /// # Errors
    ///
    /// If `out` can't be written.
    pub fn write_trace(&self, mut out: impl Write) -> io::Result<()> {
        let events = self.workers.iter().flat_map(|worker| &worker.events);
        let fibers = || self.tasks.iter().filter(|task| task.is_fiber);
        let begins = events.map(|event| event.began_ns);
        let begins_ns = begins.chain(fibers().map(|task| task.sample.ready_ns)).min().unwrap_or(0);
        let since = |at_ns: u64| Micros(at_ns.saturating_sub(begins_ns));
        write!(out, r#"{{"displayTimeUnit":"ns","traceEvents":["#)?;
        write!(out, r#"{{"ph":"M","name":"process_name","pid":1,"args":{{"name":"pool"}}}}"#)?;
        let mut arrows = 0;
        for (seat, worker) in self.workers.iter().enumerate() {
            let (own, tasks) = (track(seat), track(seat) + 1);
            name(own, &worker.name, &mut out)?;
            name(tasks, &format!("{} tasks", worker.name), &mut out)?;
            for event in &worker.events {
                let took = Micros(event.ended_ns.saturating_sub(event.began_ns));
                let at = since(event.began_ns);
                let What::Task(Sample { ready_ns, maker, .. }) = event.what else {
                    slice(own, event, (at, took), &mut out)?;
                    continue;
                };
                slice(tasks, event, (at, took), &mut out)?;
                if let Some(maker) = maker.filter(|_| ready_ns >= begins_ns) {
                    arrows += 1;
                    arrow("s", arrows, track(maker as usize), since(ready_ns), &mut out)?;
                    arrow("f", arrows, tasks, since(event.began_ns), &mut out)?;
                }
            }
        }
        fibers().try_for_each(|task| fiber(task, since, &mut out))?;
        writeln!(out, "\n]}}")?;
        out.flush()
    }
}

/// Returns the track of a worker. The next track is that of its tasks.
fn track(seat: usize) -> usize {
    2 * seat + 1
}

fn name(track: usize, name: &str, mut out: impl Write) -> io::Result<()> {
    for (key, value) in
        [("name", format!("\"{}\"", Escaped(name))), ("sort_index", track.to_string())]
    {
        let what = format!(r#""name":"thread_{key}","args":{{"{key}":{value}}}"#);
        write!(out, ",\n{{\"ph\":\"M\",{what},\"pid\":1,\"tid\":{track}}}")?;
    }
    Ok(())
}

fn slice(
    track: usize,
    event: &Event,
    (at, took): (Micros, Micros),
    mut out: impl Write,
) -> io::Result<()> {
    let (name, more) = described(event);
    let head = format!(r#""ph":"X","name":"{name}","cat":"{name}","pid":1,"tid":{track}"#);
    write!(out, ",\n{{{head},\"ts\":{at},\"dur\":{took},\"args\":{{{more}}}}}")
}

/// Writes a fiber: a slice for its whole life, and within it the parts in which it did not run.
fn fiber(task: &Timed, since: impl Fn(u64) -> Micros, mut out: impl Write) -> io::Result<()> {
    let Timed { number, sample, .. } = task;
    let mut part = |name: &str, (from_ns, to_ns): (u64, u64), args: &str| {
        let head = format!(r#""name":"{name}","cat":"fiber","id":{number},"pid":1,"tid":0"#);
        write!(out, ",\n{{\"ph\":\"b\",{head},\"ts\":{},\"args\":{{{args}}}}}", since(from_ns))?;
        write!(out, ",\n{{\"ph\":\"e\",{head},\"ts\":{}}}", since(to_ns))
    };
    let spent = Part::ALL.map(|part| (part.name(), Micros(task.spent_ns(part))));
    let spent = spent.map(|(name, time)| format!(r#""{name}_us":{time},"#)).concat();
    let maker = sample.maker.map_or_else(|| r#""outside""#.into(), |seat| seat.to_string());
    let more = format!(r#""made_ready_by":{maker},"stands_for":{}"#, sample.of);
    let thread = format!(r#""thread":"{}","#, Escaped(&task.thread));
    let args = format!(r#"{spent}{thread}"is_over":{},{more}"#, task.is_over);
    part("fiber", (sample.ready_ns, task.until_ns), &args)?;
    part(Part::Queued.name(), (sample.ready_ns, task.began_ns), "")?;
    task.spans.iter().try_for_each(|&Span { from_ns, to_ns, part: what }| {
        part(what.name(), (from_ns, to_ns), "")
    })
}

/// Writes the beginning (`s`) or the end (`f`) of an arrow, in the slice at that time.
fn arrow(ph: &str, number: u64, track: usize, at: Micros, mut out: impl Write) -> io::Result<()> {
    let head = format!(r#""ph":"{ph}","bp":"e","name":"ready","cat":"ready","id":{number}"#);
    write!(out, ",\n{{{head},\"pid\":1,\"tid\":{track},\"ts\":{at}}}")
}

/// Returns the name of a slice, and its further arguments.
fn described(event: &Event) -> (&'static str, String) {
    match event.what {
        What::Ran { tasks } => ("tasks", format!(r#""tasks":{tasks}"#)),
        What::Kept { tasks } => ("kept", format!(r#""tasks":{tasks}"#)),
        What::Searched { found: Found::Nothing } => ("search", String::new()),
        What::Searched { found: Found::Shared } => ("search", r#""found":"shared""#.into()),
        What::Searched { found: Found::Of(seat) } => ("search", format!(r#""found_of":{seat}"#)),
        What::Rested => ("rest", String::new()),
        What::Task(Sample { ready_ns, maker, of }) => {
            let queued = Micros(event.began_ns.saturating_sub(ready_ns));
            let maker = maker.map_or_else(|| r#""outside""#.into(), |seat| seat.to_string());
            ("task", format!(r#""queued_us":{queued},"made_ready_by":{maker},"stands_for":{of}"#))
        }
    }
}

/// Nanoseconds, displayed as microseconds, the format's unit.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Text, displayed with the escapes of a JSON string.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|one| match one {
            '"' | '\\' => write!(f, "\\{one}"),
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control)),
            other => write!(f, "{other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_times_are_as_json_has_them() {
        assert_eq!(Escaped("a\"b\\\n").to_string(), "a\\\"b\\\\\\u000a");
        assert_eq!(Micros(1_002_003).to_string(), "1002.003");
    }
}
