//! Takes events out of the recording while CMD writes them, and writes them to the trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use antiphon_record::Recording;
use antiphon_record::events::Batch;
use antiphon_trace::{Error, Tables, Thread, Writer};

use super::Written;
use super::names::Names;
use super::story::{Shared, Story};

/// How often is looked for full chunks. In that time two busy threads fill a tenth of all.
const PERIOD: Duration = Duration::from_millis(2);

/// How often at most is looked whether threads are gone that have not said so.
const RECLAIM_PERIOD: Duration = Duration::from_millis(20);

/// A thread of ours that writes the trace.
pub struct Collector {
    recording: Arc<Recording>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<Trace, Error>>,
}

impl Collector {
    /// Writes what `recording` gets to `writer` from now on.
    pub fn start(recording: &Arc<Recording>, writer: Writer<BufWriter<File>>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let trace =
            Trace { writer, threads: Threads::default(), names: Names::default(), events: 0 };
        let thread = std::thread::spawn({
            let (recording, ends) = (Arc::clone(recording), Arc::clone(&ends));
            move || collect(&recording, &ends, trace)
        });
        Self { recording: Arc::clone(recording), ends, thread }
    }

    /// Writes what is left. CMD has ended.
    ///
    /// # Errors
    ///
    /// If the trace could not be written.
    pub fn finish(self, path: &Path) -> Result<Written, Error> {
        // Relaxed: says nothing but itself.
        self.ends.store(true, Relaxed);
        let trace = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        trace.finish(&self.recording, path)
    }
}

fn collect(recording: &Recording, ends: &AtomicBool, mut trace: Trace) -> Result<Trace, Error> {
    let mut looked = Instant::now();
    while !ends.load(Relaxed) {
        let mut batches = recording.drain(false)?;
        if looked.elapsed() >= RECLAIM_PERIOD {
            batches.extend(recording.reclaim(|head| is_gone(head.tid))?);
            looked = Instant::now();
        }
        if batches.is_empty() {
            std::thread::sleep(PERIOD);
        }
        trace.take(recording, batches, false)?;
    }
    Ok(trace)
}

/// Whether there is no thread of that id. One that lives in a process namespace of its own looks as
/// if it were gone: it finds that its chunk is no longer its own, and claims another.
fn is_gone(tid: u32) -> bool {
    matches!(Path::new(&format!("/proc/{tid}")).try_exists(), Ok(false))
}

/// The trace as it is written.
struct Trace {
    writer: Writer<BufWriter<File>>,
    threads: Threads,
    names: Names,
    events: u64,
}

/// The threads of a trace, by the order in which they were met.
#[derive(Default)]
struct Threads {
    numbers: HashMap<u32, u32>,
    stories: Vec<Story>,
}

impl Trace {
    fn take(&mut self, recording: &Recording, batches: Vec<Batch>, end: bool) -> Result<(), Error> {
        if batches.is_empty() {
            return Ok(());
        }
        // The process that wrote the first event has said so before.
        let Some(clock) = recording.clock()? else { return Ok(()) };
        for batch in batches {
            let number = number(&mut self.threads.numbers, batch.of.thread);
            self.threads.grow();
            let mut story = std::mem::take(&mut self.threads.stories[number as usize]);
            let numbers = &mut self.threads.numbers;
            let mut thread = |thread| self::number(numbers, thread);
            let names = &mut self.names;
            let mut shared = Shared { recording, clock, names, thread: &mut thread };
            let events = story.takes(batch, &mut shared, end)?;
            self.threads.grow();
            self.threads.stories[number as usize] = story;
            self.events += events.len() as u64;
            self.writer.events(number, &events)?;
        }
        Ok(())
    }

    fn finish(mut self, recording: &Recording, path: &Path) -> Result<Written, Error> {
        let mut rest = recording.drain(true)?;
        // In their order, because at the end nothing is held back.
        rest.sort_by_key(|batch| (batch.of.thread, batch.of.sequence));
        self.take(recording, rest, true)?;
        for (thread, story) in self.threads.stories.iter_mut().enumerate() {
            let last = story.ends();
            self.events += u64::from(last.is_some());
            self.writer.events(thread as u32, last.as_slice())?;
        }
        let (locks, sites) = self.names.tables(recording)?;
        let threads: Vec<Thread> = self.threads.stories.iter().map(thread).collect();
        // More than those which the threads told of: one that never had a chunk tells nothing.
        let dropped = recording.dropped()?;
        let tables = Tables { locks, sites, threads, dropped };
        let bytes = self.writer.finish(&tables)?;
        Ok(Written { path: path.to_owned(), bytes, events: self.events, dropped })
    }
}

impl Threads {
    /// There is a story for each number.
    fn grow(&mut self) {
        let threads = self.numbers.len().max(self.stories.len());
        self.stories.resize_with(threads, Story::default);
    }
}

fn number(numbers: &mut HashMap<u32, u32>, thread: u32) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(thread).or_insert(next)
}

fn thread(story: &Story) -> Thread {
    Thread {
        id: story.tid,
        process: story.process,
        role: story.role,
        dropped: story.dropped,
        events: Vec::new(),
    }
}
