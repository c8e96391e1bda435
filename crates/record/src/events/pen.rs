//! Writing events: three stores to a chunk that belongs to the thread.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use super::{CHUNKS, Chunk, EVENTS, FREE, FULL, Mapped, Memory, Note, OWNED, RollHead, Word};
use crate::column::Column;

/// Number of events that a thread without a chunk drops before it searches for a free one again.
const PATIENCE: u32 = 255;

/// The thread is writing an event: only a signal handler on the thread sees this state.
const BUSY: u32 = 1;
/// The thread has announced its end. Later events keep no chunk.
const ENDED: u32 = 2;

/// The state of a thread that writes. All zero at first.
#[repr(C)]
pub struct Pen<M: Memory = Mapped> {
    /// 1 + the chunk, 0 for none.
    chunk: M::U32,
    /// Number of chunks that the thread has had.
    chunks: M::U32,
    /// Number of events dropped since the last chunk.
    lost: M::U32,
    /// Number of events to drop before the next search for a chunk.
    patience: M::U32,
    /// The thread's number, 0 for none yet.
    number: M::U32,
    /// Bits [`BUSY`] and [`ENDED`].
    state: M::U32,
}

impl<M: Memory> Pen<M> {
    /// A pen that belongs to no thread yet.
    pub const NEW: Self = Self {
        chunk: M::U32::ZERO,
        chunks: M::U32::ZERO,
        lost: M::U32::ZERO,
        patience: M::U32::ZERO,
        number: M::U32::ZERO,
        state: M::U32::ZERO,
    };

    fn words(&self) -> [&M::U32; 6] {
        [&self.chunk, &self.chunks, &self.lost, &self.patience, &self.state, &self.number]
    }

    /// Copies the state of `other`, which is not in use: as the child of a fork finds it.
    pub fn copy(&self, other: &Self) {
        for (word, other) in self.words().into_iter().zip(other.words()) {
            word.store(other.load(Relaxed), Relaxed);
        }
    }

    /// The number of the pen's thread, 0 for none yet. Other threads may call this.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    /// Gives the pen to another thread, with that number; 0 for no thread yet.
    pub fn hand_over(&self, number: u32) {
        self.words().into_iter().for_each(|word| word.store(0, Relaxed));
        self.number.store(number, Relaxed);
    }

    /// Announces the end of the thread: the next event is the last, unless destructors follow. From
    /// then on the thread gives its chunk back after each event.
    pub fn ends(&self) {
        self.state.store(self.state.load(Relaxed) | ENDED, Relaxed);
    }
}

impl<M: Memory<U32: fmt::Debug>> fmt::Debug for Pen<M> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.words()).finish()
    }
}

/// Writer to the chunks of a mapped recording. Never blocks or allocates; makes no system call
/// except to map more chunks.
pub struct Roll<M: Memory = Mapped, const COUNT: usize = CHUNKS, const ROOM: usize = EVENTS> {
    pub(super) head: &'static RollHead<M, COUNT>,
    pub(super) chunks: &'static Column<Chunk<M, ROOM>>,
}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Clone for Roll<M, COUNT, ROOM> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Copy for Roll<M, COUNT, ROOM> {}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Roll<M, COUNT, ROOM> {
    /// A writer to the chunks of that head.
    #[must_use]
    pub const fn new(
        head: &'static RollHead<M, COUNT>,
        chunks: &'static Column<Chunk<M, ROOM>>,
    ) -> Self {
        Self { head, chunks }
    }

    /// A new number for a thread, unique in all processes of the recording.
    #[must_use]
    pub fn number(self) -> u32 {
        self.head.threads.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Number of events of all threads that found no room so far, including threads that never had
    /// a chunk.
    #[must_use]
    pub fn dropped(self) -> u64 {
        self.head.dropped.load(Relaxed)
    }

    /// Writes an event of the calling thread, which is `tid` of the process with the record
    /// `process`, with its own pen. Events of signal handlers that interrupt this are dropped and
    /// counted.
    #[inline]
    pub fn write(self, pen: &Pen<M>, process: u32, tid: u32, note: Note) {
        let state = pen.state.load(Relaxed);
        if state & BUSY != 0 {
            return self.drop(pen);
        }
        // CHUNK-4. The fences are for signal handlers on this thread, which see its stores in the
        // order of the program.
        pen.state.store(state | BUSY, Relaxed);
        compiler_fence(SeqCst);
        let owner = (u64::from(process) + 1) << 32 | u64::from(pen.number());
        self.write_alone(pen, owner, tid, note);
        if state & ENDED != 0 {
            self.give_back(pen);
        }
        compiler_fence(SeqCst);
        pen.state.store(state, Relaxed);
    }

    #[inline]
    fn write_alone(self, pen: &Pen<M>, owner: u64, tid: u32, note: Note) {
        let Some(at) = (pen.chunk.load(Relaxed) as usize).checked_sub(1) else {
            return self.write_on_new(pen, owner, tid, note);
        };
        // CHUNK-3. Relaxed: written by this thread, or by one of another process, which the
        // comparison detects.
        match self.chunks.get(at) {
            Some(chunk) if chunk.owner.load(Relaxed) == owner => {
                self.append(pen, at, chunk, note);
            }
            _ => {
                pen.chunk.store(0, Relaxed);
                self.write_on_new(pen, owner, tid, note);
            }
        }
    }

    /// Counts an event without room: in the total, because its thread may never have a chunk to
    /// store the count in.
    #[cold]
    pub fn lost(self) {
        self.head.dropped.fetch_add(1, Relaxed);
    }

    #[cold]
    fn drop(self, pen: &Pen<M>) {
        self.lost();
        pen.lost.store(pen.lost.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Gives the chunk of that pen to the reader, however much of it is filled.
    #[cold]
    fn give_back(self, pen: &Pen<M>) {
        if let Some(at) = (pen.chunk.load(Relaxed) as usize).checked_sub(1) {
            pen.chunk.store(0, Relaxed);
            // CHUNK-2. Release: as in `append`.
            self.head.states[at].store(FULL, Release);
        }
    }

    #[cold]
    fn write_on_new(self, pen: &Pen<M>, owner: u64, tid: u32, note: Note) {
        let patience = pen.patience.load(Relaxed);
        if patience == 0
            && let Some((at, chunk)) = self.claim()
        {
            chunk.tid.store(tid, Relaxed);
            chunk.sequence.store(pen.chunks.load(Relaxed), Relaxed);
            chunk.lost.store(pen.lost.load(Relaxed), Relaxed);
            chunk.used.store(0, Relaxed);
            // CHUNK-5. Release: publishes the rest of the head; pairs with the acquire in `head`.
            chunk.owner.store(owner, Release);
            pen.lost.store(0, Relaxed);
            pen.chunks.store(pen.chunks.load(Relaxed).wrapping_add(1), Relaxed);
            pen.chunk.store(at as u32 + 1, Relaxed);
            return self.append(pen, at, chunk, note);
        }
        pen.patience.store(patience.checked_sub(1).unwrap_or(PATIENCE), Relaxed);
        self.drop(pen);
    }

    /// Claims the first free chunk for the caller, so that few are mapped.
    fn claim(self) -> Option<(usize, &'static Chunk<M, ROOM>)> {
        let at = self.head.states.iter().position(|state| {
            // CHUNK-1. Acquire: CHUNK-2, the reader has finished with the chunk; pairs with the
            // fence in `free`.
            state.load(Relaxed) == FREE
                && state.compare_exchange(FREE, OWNED, Acquire, Relaxed).is_ok()
        })?;
        let chunk = self.chunks.get(at);
        if chunk.is_none() {
            // The chunk can't be mapped. Nothing was written, so there is nothing to order.
            self.head.states[at].store(FREE, Relaxed);
        }
        Some((at, chunk?))
    }

    fn append(self, pen: &Pen<M>, at: usize, chunk: &Chunk<M, ROOM>, note: Note) {
        let used = chunk.used.load(Relaxed);
        let Some(record) = chunk.events.get(used as usize) else { return self.drop(pen) };
        record.time.store(note.time, Relaxed);
        record.word.store(note.word(), Relaxed);
        // CHUNK-5. Release: publishes the event; pairs with the acquire in `head`.
        chunk.used.store(used + 1, Release);
        if used as usize + 1 == ROOM {
            pen.chunk.store(0, Relaxed);
            // CHUNK-2. Release: publishes the events; pairs with the fence in `states`.
            self.head.states[at].store(FULL, Release);
        }
    }
}
