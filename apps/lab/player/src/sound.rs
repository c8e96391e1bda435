//! Sound: chunks that are due every ten or twenty milliseconds, and must not be missed.
//!
//! A chunk is prepared ahead (best effort, essential), and passed to its sink when it is due (a
//! timer). A chunk that is not ready then is an underrun: silence.

use std::collections::BTreeMap;

use crate::importance::{Rank, Scale};
use crate::program::{Act, Job, Program, Timeline};
use crate::{Error, Tardiness};

/// A device that plays samples.
pub trait Sink {
    /// Plays a chunk. Runs in a timer, so it must not block.
    fn play(&mut self, samples: &[i16]);
}

/// A sink that plays nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Sink for Silent {
    fn play(&mut self, _: &[i16]) {}
}

/// The chunks that a [`Sound`] has played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Chunks that were played.
    pub chunks: u64,
    /// Chunks that were not ready when they were due.
    pub underruns: u64,
    /// Tardiness of the chunks, underruns included.
    pub tardiness: Tardiness,
}

/// Plays samples repeatedly, after processing each chunk.
pub struct Sound<W, S> {
    samples: Vec<i16>,
    /// Samples per chunk.
    chunk: usize,
    chunk_ns: u64,
    chunks: Option<u64>,
    scale: Scale,
    work: W,
    sink: S,
    start_ns: u64,
    ready: BTreeMap<u64, Vec<i16>>,
    played: Played,
}

impl<W: FnMut(&mut [i16]), S: Sink> Sound<W, S> {
    /// Plays `samples` at `rate` per second, in chunks of `chunk_ms` milliseconds. `work` processes
    /// each chunk (a filter, a mix). `chunks` are played, or without end if it is `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are fewer samples than a chunk, or a chunk is empty.
    pub fn new(
        samples: Vec<i16>,
        rate: u32,
        chunk_ms: u32,
        chunks: Option<u64>,
        scale: Scale,
        work: W,
        sink: S,
    ) -> Result<Self, Error> {
        let chunk = (u64::from(rate) * u64::from(chunk_ms) / 1000) as usize;
        if chunk == 0 || samples.len() < chunk {
            return Err(Error::Parameter("a sound has at least one chunk of samples"));
        }
        let chunk_ns = u64::from(chunk_ms) * 1_000_000;
        let (start_ns, ready, played) = (0, BTreeMap::new(), Played::default());
        Ok(Self { samples, chunk, chunk_ns, chunks, scale, work, sink, start_ns, ready, played })
    }

    /// The chunks played so far.
    pub fn played(&self) -> &Played {
        &self.played
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    fn due_ns(&self, number: u64) -> u64 {
        self.start_ns + self.scale.look_ahead_ns + number * self.chunk_ns
    }

    /// Number of chunks in flight.
    fn ahead(&self) -> u64 {
        (self.scale.look_ahead_ns / self.chunk_ns).max(1)
    }

    fn submit(&self, number: u64, timeline: &mut dyn Timeline) {
        if self.chunks.is_none_or(|chunks| number < chunks) {
            let due_ns = self.due_ns(number);
            let importance = self.scale.importance(due_ns, Rank::Essential(0));
            timeline.best_effort(importance, Job { act: Act::Prepare, number });
            timeline.timer(due_ns, Job { act: Act::Present, number });
        }
    }

    fn prepare(&mut self, number: u64) {
        let whole = self.samples.len() / self.chunk;
        let first = (number % whole as u64) as usize * self.chunk;
        let mut chunk = self.samples[first..first + self.chunk].to_vec();
        (self.work)(&mut chunk);
        self.ready.insert(number, chunk);
    }

    fn present(&mut self, number: u64, timeline: &mut dyn Timeline) {
        self.played.tardiness.note(self.due_ns(number), timeline.now_ns());
        match self.ready.remove(&number) {
            Some(chunk) => {
                self.sink.play(&chunk);
                self.played.chunks += 1;
            }
            None => {
                timeline.cancel(Job { act: Act::Prepare, number });
                self.sink.play(&vec![0; self.chunk]);
                self.played.underruns += 1;
            }
        }
        self.submit(number + self.ahead(), timeline);
    }
}

impl<W: FnMut(&mut [i16]), S: Sink> Program for Sound<W, S> {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.start_ns = timeline.now_ns();
        for number in 0..self.ahead() {
            self.submit(number, timeline);
        }
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        match job.act {
            Act::Prepare => self.prepare(job.number),
            Act::Present => self.present(job.number, timeline),
            Act::Receive | Act::Expire => {}
        }
    }
}
