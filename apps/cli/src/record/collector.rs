//! Takes events out of the recording while CMD writes them, and writes them to the trace.

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
use antiphon_record::events::{Batch, Head};
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

/// Whether the thread whose chunk that is, is no more (CHUNK-6). Of one in another process
/// namespace than ours that can't be said by its id: it keeps its chunk, and what then finds none
/// is counted.
fn is_gone(recording: &Recording, head: &Head) -> bool {
    let is_ours = || {
        let theirs = recording.namespace(head.process).ok().filter(|theirs| *theirs != 0);
        theirs.is_some() && theirs == antiphon_record::namespace()
    };
    // Not by a look at `/proc`, which may hide what other users run.
    // SAFETY: signal 0 is none: who may be signalled is asked for, and nothing else.
    let lives = || unsafe { libc::kill(head.tid.cast_signed(), 0) } == 0
        || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_ours() && !lives()
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use antiphon_record::events::{Code, Note, Pen, ROLL_BYTES, Roll};
    use antiphon_record::layout::Layout;
    use antiphon_record::{FILE_BYTES, Scope};

    use super::*;

    /// A recording, and what writes to it.
    fn recording() -> io::Result<(Recording, antiphon_record::Writer, Roll)> {
        let path = std::env::temp_dir().join(format!("antiphon-gone-{}", std::process::id()));
        let recording = Recording::create(&path, Scope::Events)?;
        let file = File::options().read(true).write(true).open(&path)?;
        std::fs::remove_file(&path)?;
        let length = (FILE_BYTES + ROLL_BYTES) as usize;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let (at, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping wherever the kernel likes; it outlives the descriptor.
        let base = unsafe { libc::mmap(at, length, access, shared, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mapped above in all its length, and never unmapped.
        let writer = unsafe { antiphon_record::Writer::new(base.cast::<Layout>()) };
        // SAFETY: as above.
        let roll = unsafe { Roll::new(base.byte_add(FILE_BYTES as usize).cast()) };
        Ok((recording, writer.map_err(|_| io::Error::other("no recording"))?, roll))
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
            // It could not say.
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
