//! Writing events: three stores to a chunk that the thread has to itself.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use super::{CHUNKS, Chunk, EVENTS, FREE, FULL, Note, OWNED, RollLayout};

/// A thread that has found no free chunk drops so many events before it looks again.
const PATIENCE: u32 = 255;

/// The thread is in the middle of writing: who finds that is a signal handler on it.
const BUSY: u32 = 1;
/// The thread has said that it ends. What it does after that keeps no chunk.
const ENDED: u32 = 2;

/// What a thread keeps to write with. All zero at first.
#[repr(C)]
#[derive(Debug)]
pub struct Pen {
    /// 1 + the chunk, 0 for none.
    chunk: AtomicU32,
    /// How many chunks it has had.
    chunks: AtomicU32,
    /// Events dropped since the last chunk.
    lost: AtomicU32,
    /// Events to be dropped before the next look for a chunk.
    patience: AtomicU32,
    /// The thread's number, 0 for none yet.
    number: AtomicU32,
    /// [`BUSY`], [`ENDED`].
    state: AtomicU32,
}

impl Pen {
    /// The number of the thread whose pen it is, 0 for none yet. May be asked of another thread's.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    /// From now on it is that of another thread, with that number; or, with 0, of none yet.
    pub fn hand_over(&self, number: u32) {
        for word in [&self.chunk, &self.chunks, &self.lost, &self.patience, &self.state] {
            word.store(0, Relaxed);
        }
        self.number.store(number, Relaxed);
    }

    /// The next event is the thread's last, or nearly: destructors may follow. From then on it
    /// gives its chunk back behind each event.
    pub fn ends(&self) {
        self.state.store(self.state.load(Relaxed) | ENDED, Relaxed);
    }
}

/// The chunks of a mapped recording, to write to. Never blocks, allocates or makes a system call.
#[derive(Clone, Copy)]
pub struct Roll {
    file: &'static RollLayout,
}

impl Roll {
    /// Those that are mapped at `base`.
    ///
    /// # Safety
    ///
    /// `base` is aligned to 8 bytes, and [`ROLL_BYTES`](super::ROLL_BYTES) are mapped there,
    /// shared, readable and writable, for as long as the process lives.
    #[must_use]
    pub const unsafe fn new(base: *const RollLayout) -> Self {
        // SAFETY: mapped and aligned by the contract; any bytes are a `RollLayout`.
        Self { file: unsafe { &*base } }
    }

    /// A number for a thread: no other has it, of any process.
    #[must_use]
    pub fn number(self) -> u32 {
        self.file.threads.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// Writes what the calling thread did, which is `tid` of the process with that record, and
    /// whose pen this is. What a signal handler does in the middle of that is dropped and counted.
    #[inline]
    pub fn write(self, pen: &Pen, process: u32, tid: u32, note: Note) {
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
    fn write_alone(self, pen: &Pen, owner: u64, tid: u32, note: Note) {
        let Some(at) = (pen.chunk.load(Relaxed) as usize).checked_sub(1) else {
            return self.write_on_new(pen, owner, tid, note);
        };
        // CHUNK-3. Relaxed: written by this thread, or by one of another process that it will find
        // to be another.
        if self.file.chunks[at].owner.load(Relaxed) != owner {
            pen.chunk.store(0, Relaxed);
            return self.write_on_new(pen, owner, tid, note);
        }
        self.append(pen, at, note);
    }

    /// An event has no place. Counted for all, because this thread may never have a chunk in which
    /// to say so.
    #[cold]
    fn drop(self, pen: &Pen) {
        self.file.dropped.fetch_add(1, Relaxed);
        pen.lost.store(pen.lost.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// The chunk of that pen is to be read, however much of it is filled.
    #[cold]
    fn give_back(self, pen: &Pen) {
        if let Some(at) = (pen.chunk.swap(0, Relaxed) as usize).checked_sub(1) {
            // CHUNK-2. Release: as in `append`.
            self.file.states[at].store(FULL, Release);
        }
    }

    #[cold]
    fn write_on_new(self, pen: &Pen, owner: u64, tid: u32, note: Note) {
        let patience = pen.patience.load(Relaxed);
        if patience == 0
            && let Some(at) = self.claim()
        {
            let chunk = &self.file.chunks[at];
            chunk.tid.store(tid, Relaxed);
            chunk.sequence.store(pen.chunks.load(Relaxed), Relaxed);
            chunk.lost.store(pen.lost.load(Relaxed), Relaxed);
            chunk.used.store(0, Relaxed);
            // CHUNK-5. Release: the rest of the head; pairs with the acquire in `batch`.
            chunk.owner.store(owner, Release);
            pen.lost.store(0, Relaxed);
            pen.chunks.store(pen.chunks.load(Relaxed).wrapping_add(1), Relaxed);
            pen.chunk.store(at as u32 + 1, Relaxed);
            return self.append(pen, at, note);
        }
        pen.patience.store(patience.checked_sub(1).unwrap_or(PATIENCE), Relaxed);
        self.drop(pen);
    }

    /// Makes a free chunk the caller's.
    fn claim(self) -> Option<usize> {
        let first = self.file.next.fetch_add(1, Relaxed) as usize;
        (0..CHUNKS).map(|step| (first + step) % CHUNKS).find(|&at| {
            let state = &self.file.states[at];
            // CHUNK-1. Acquire: whoever has read it is done with it; pairs with its making it free,
            // which is a system call.
            state.load(Relaxed) == FREE
                && state.compare_exchange(FREE, OWNED, Acquire, Relaxed).is_ok()
        })
    }

    fn append(self, pen: &Pen, at: usize, note: Note) {
        let chunk: &Chunk = &self.file.chunks[at];
        let used = chunk.used.load(Relaxed);
        let Some(record) = chunk.events.get(used as usize) else { return self.drop(pen) };
        record.time.store(note.time, Relaxed);
        record.word.store(note.word(), Relaxed);
        // CHUNK-5. Release: the event; pairs with the acquire in `batch`.
        chunk.used.store(used + 1, Release);
        if used as usize + 1 == EVENTS {
            pen.chunk.store(0, Relaxed);
            // CHUNK-2. Release: what was written; pairs with the acquire of who reads, in `drain`.
            self.file.states[at].store(FULL, Release);
        }
    }
}
