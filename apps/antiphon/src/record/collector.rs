//! Drains events from the recording while CMD writes them, and writes them to the trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use antiphon_record::Recording;
use antiphon_record::events::{Batch, Code, Head};
use antiphon_trace::{Cost, Error, Event, Tables, Thread, What, Writer};

use super::names::Names;
use super::story::{Shared, Story};
use super::written::Written;

/// The pause between two searches for full chunks. In that time two busy threads fill a tenth of
/// all chunks.
const PERIOD: Duration = Duration::from_millis(2);

/// The least time between two checks for threads that have ended without saying so.
const RECLAIM_PERIOD: Duration = Duration::from_millis(20);

/// A thread of this process that writes the trace.
pub struct Collector {
    recording: Arc<Recording>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<Trace, Error>>,
}

impl Collector {
    /// Starts to write everything that `recording` receives to `writer`.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub fn start(recording: &Arc<Recording>, writer: Writer<BufWriter<File>>) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let trace = Trace {
            writer,
            threads: Threads::default(),
            names: Names::default(),
            told: Told::NONE,
        };
        let thread = std::thread::Builder::new().spawn({
            let (recording, ends) = (Arc::clone(recording), Arc::clone(&ends));
            move || collect(&recording, &ends, trace)
        })?;
        Ok(Self { recording: Arc::clone(recording), ends, thread })
    }

    /// Writes the remaining events. CMD has ended.
    ///
    /// # Errors
    ///
    /// If the trace could not be written.
    pub fn finish(self, path: &Path) -> Result<Written, Error> {
        // Relaxed: the flag publishes nothing but itself.
        self.ends.store(true, Relaxed);
        let panicked = |_| {
            Err(io::Error::other("the recording is damaged: CMD may have written to it").into())
        };
        let trace = self.thread.join().unwrap_or_else(panicked)?;
        trace.finish(&self.recording, path)
    }
}

fn collect(recording: &Recording, ends: &AtomicBool, mut trace: Trace) -> Result<Trace, Error> {
    let mut looked = Instant::now();
    while !ends.load(Relaxed) {
        let mut batches = recording.drain(false)?;
        if looked.elapsed() >= RECLAIM_PERIOD {
            batches.extend(recording.reclaim(|head| is_gone(recording, head))?);
            looked = Instant::now();
        }
        if batches.is_empty() {
            std::thread::sleep(PERIOD);
        }
        trace.take(recording, batches, false)?;
    }
    Ok(trace)
}

/// Whether the thread that owns a chunk has ended (CHUNK-6). For a thread in another process
/// namespace, its id does not tell: such a thread keeps its chunk, and events that then find no
/// chunk are counted.
fn is_gone(recording: &Recording, head: &Head) -> bool {
    let is_ours = || {
        let theirs = recording.namespace(head.process).ok().filter(|theirs| *theirs != 0);
        theirs.is_some() && theirs == antiphon_record::namespace()
    };
    // `/proc` is not read: it may hide other users' processes. SAFETY: signal 0 is no signal: the
    // call only checks whether the thread may be signalled.
    let lives = || unsafe { libc::kill(head.tid.cast_signed(), 0) } == 0
        || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_ours() && !lives()
}

/// The trace while it is written.
struct Trace {
    writer: Writer<BufWriter<File>>,
    threads: Threads,
    names: Names,
    told: Told,
}

/// Counts of the events written so far.
struct Told {
    events: u64,
    /// Number of events, by code.
    codes: [u64; 256],
    /// Time spent asking the kernel, in nanoseconds.
    asked_ns: u64,
}

impl Told {
    const NONE: Self = Self { events: 0, codes: [0; 256], asked_ns: 0 };

    fn add(&mut self, events: &[Event]) {
        self.events += events.len() as u64;
        for event in events {
            self.codes[usize::from(event.what.code())] += 1;
            if let What::Asked { ns } = event.what {
                self.asked_ns += ns;
            }
        }
    }

    /// The time that recording took in all threads together, in nanoseconds; `None` if nothing was
    /// timed.
    fn recorder_ns(&self, costs: &[Cost]) -> Option<u64> {
        let ns = |cost: &Cost| {
            let each_ps = u128::from(cost.before_ps) + u128::from(cost.after_ps);
            (u128::from(self.codes[usize::from(cost.code)]) * each_ps / 1000) as u64
        };
        (!costs.is_empty()).then(|| costs.iter().map(ns).sum::<u64>() + self.asked_ns)
    }
}

/// The threads of a trace, numbered in the order in which they were met.
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
        // The process that wrote the first event has published the clock before.
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
            self.told.add(&events);
            self.writer.events(number, &events)?;
        }
        Ok(())
    }

    fn finish(mut self, recording: &Recording, path: &Path) -> Result<Written, Error> {
        let mut rest = recording.drain(true)?;
        // In order, because at the end no batch is held back.
        rest.sort_by_key(|batch| (batch.of.thread, batch.of.sequence));
        self.take(recording, rest, true)?;
        for (thread, story) in self.threads.stories.iter_mut().enumerate() {
            let last = story.ends();
            self.told.add(last.as_slice());
            self.writer.events(thread as u32, last.as_slice())?;
        }
        let (locks, sites) = self.names.tables(recording)?;
        let threads: Vec<Thread> = self.threads.stories.iter().map(thread).collect();
        // This includes threads that never had a chunk and so could not report what they lost.
        let dropped = recording.dropped()?;
        let costs = costs(recording)?;
        let recorder_ns = self.told.recorder_ns(&costs);
        let bytes = self.writer.finish(&Tables { locks, sites, threads, costs, dropped })?;
        let events = self.told.events;
        Ok(Written { path: path.to_owned(), bytes, events, dropped, recorder_ns })
    }
}

impl Threads {
    /// Makes a story for each number.
    fn grow(&mut self) {
        let threads = self.numbers.len().max(self.stories.len());
        self.stories.resize_with(threads, Story::default);
    }
}

fn number(numbers: &mut HashMap<u32, u32>, thread: u32) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(thread).or_insert(next)
}

/// The cost of recording in CMD's time, by kind of event.
fn costs(recording: &Recording) -> io::Result<Vec<Cost>> {
    let code = |code| {
        Some(match code {
            Code::Takes => What::Takes { lock: 0, site: 0, shared: false, tried: false },
            Code::Releases => What::Releases { lock: 0 },
            Code::Waits => What::Waits { lock: 0, site: 0 },
            Code::Sleeps => What::Sleeps { condition: 0, site: 0 },
            Code::Wakes => What::Wakes { condition: 0, notified: true },
            Code::Notifies => What::Notifies { condition: 0, all: false },
            _ => return None,
        })
    };
    let costs = recording.costs()?.into_iter().filter_map(|cost| {
        let antiphon_record::Cost { before_ps, after_ps, timed, .. } = cost;
        Some(Cost { code: code(cost.code)?.code(), before_ps, after_ps, timed })
    });
    Ok(costs.collect())
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use antiphon_record::events::{Code, Note, Pen, Roll};
    use antiphon_record::{Mapping, Scope};

    use super::*;

    /// A recording, a writer to it, and its roll.
    fn recording() -> io::Result<(Recording, antiphon_record::Writer, Roll)> {
        let path = std::env::temp_dir().join(format!("antiphon-gone-{}", std::process::id()));
        let recording = Recording::create(&path, Scope::Events)?;
        let file = File::options().read(true).write(true).open(&path)?;
        std::fs::remove_file(&path)?;
        let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
        let writer = mapping.open(file.as_raw_fd());
        let writer = writer.map_err(|why| io::Error::other(format!("{why:?}")))?;
        let roll = mapping.roll().ok_or_else(|| io::Error::other("no events"))?;
        Ok((recording, writer, roll))
    }

    #[test]
    fn a_thread_is_gone_if_its_id_is_one_of_ours_and_nobodys() -> io::Result<()> {
        let (recording, writer, roll) = recording()?;
        let mut child = std::process::Command::new("true").spawn()?;
        child.wait()?;
        let ours = antiphon_record::namespace().expect("a namespace");
        let mut gone = Vec::new();
        for (tid, namespace) in [
            (std::process::id(), ours),
            (child.id(), ours),
            (child.id(), ours + 1),
            // A process that could not record its namespace.
            (child.id(), 0),
        ] {
            let process = writer.process(tid, None, namespace << 20, false).expect("there is room");
            writer.lives_in(process, namespace);
            let pen = Pen::NEW;
            pen.hand_over(roll.number());
            roll.write(
                &pen,
                process,
                tid,
                Note { time: 1, code: Code::Begins, flags: 0, object: 0 },
            );
        }
        for batch in recording.drain(true)? {
            gone.push(is_gone(&recording, &batch.of));
        }
        assert_eq!(gone, [false, true, false, false]);
        Ok(())
    }
}
