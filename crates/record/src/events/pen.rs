//! Writing events: three stores to a chunk that the thread has to itself.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use super::{CHUNKS, EVENTS, FREE, FULL, Mapped, Memory, Note, OWNED, RollLayout, Word};

/// A thread that has found no free chunk drops so many events before it looks again.
const PATIENCE: u32 = 255;

/// The thread is in the middle of writing: who finds that is a signal handler on it.
const BUSY: u32 = 1;
/// The thread has said that it ends. What it does after that keeps no chunk.
const ENDED: u32 = 2;

/// What a thread keeps to write with. All zero at first.
#[repr(C)]
pub struct Pen<M: Memory = Mapped> {
    /// 1 + the chunk, 0 for none.
    chunk: M::U32,
    /// How many chunks it has had.
    chunks: M::U32,
    /// Events dropped since the last chunk.
    lost: M::U32,
    /// Events to be dropped before the next look for a chunk.
    patience: M::U32,
    /// The thread's number, 0 for none yet.
    number: M::U32,
    /// [`BUSY`], [`ENDED`].
    state: M::U32,
}

impl<M: Memory> Pen<M> {
    /// That of nobody yet.
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

    /// Makes it what `other` is, which is not in use: as the child of a fork finds it.
    pub fn copy(&self, other: &Self) {
        for (word, other) in self.words().into_iter().zip(other.words()) {
            word.store(other.load(Relaxed), Relaxed);
        }
    }

    /// The number of the thread whose pen it is, 0 for none yet. May be asked of another thread's.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    /// From now on it is that of another thread, with that number; or, with 0, of none yet.
    pub fn hand_over(&self, number: u32) {
        self.words().into_iter().for_each(|word| word.store(0, Relaxed));
        self.number.store(number, Relaxed);
    }

    /// The next event is the thread's last, or nearly: destructors may follow. From then on it
    /// gives its chunk back behind each event.
    pub fn ends(&self) {
        self.state.store(self.state.load(Relaxed) | ENDED, Relaxed);
    }
}

impl<M: Memory<U32: fmt::Debug>> fmt::Debug for Pen<M> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.words()).finish()
    }
}

/// The chunks of a mapped recording, to write to. Never blocks, allocates or makes a system call.
pub struct Roll<M: Memory = Mapped, const COUNT: usize = CHUNKS, const ROOM: usize = EVENTS> {
    pub(super) file: &'static RollLayout<M, COUNT, ROOM>,
}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Clone for Roll<M, COUNT, ROOM> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Copy for Roll<M, COUNT, ROOM> {}

impl<M: Memory, const COUNT: usize, const ROOM: usize> Roll<M, COUNT, ROOM> {
    /// Those that are mapped at `base`.
    ///
    /// # Safety
    ///
    /// `base` is aligned to 8 bytes, and the layout is mapped there, shared, readable and writable,
    /// for as long as the process lives, or nobody uses the roll any more.
    #[must_use]
    pub const unsafe fn new(base: *const RollLayout<M, COUNT, ROOM>) -> Self {
        // SAFETY: mapped and aligned by the contract; any bytes are a layout.
        Self { file: unsafe { &*base } }
    }

    /// A number for a thread: no other has it, of any process.
    #[must_use]
    pub fn number(self) -> u32 {
        self.file.threads.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// How many events found no room so far, of all threads: also of those which never had any.
    #[must_use]
    pub fn dropped(self) -> u64 {
        self.file.dropped.load(Relaxed)
    }

    /// Writes what the calling thread did, which is `tid` of the process with that record, and
    /// whose pen this is. What a signal handler does in the middle of that is dropped and counted.
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
        // CHUNK-3. Relaxed: written by this thread, or by one of another process that it will find
        // to be another.
        if self.file.chunks[at].owner.load(Relaxed) != owner {
            pen.chunk.store(0, Relaxed);
            return self.write_on_new(pen, owner, tid, note);
        }
        self.append(pen, at, note);
    }

    /// Counts an event that has no place: for all, because its thread may never have a chunk in
    /// which to say so.
    #[cold]
    pub fn lost(self) {
        self.file.dropped.fetch_add(1, Relaxed);
    }

    #[cold]
    fn drop(self, pen: &Pen<M>) {
        self.lost();
        pen.lost.store(pen.lost.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// The chunk of that pen is to be read, however much of it is filled.
    #[cold]
    fn give_back(self, pen: &Pen<M>) {
        if let Some(at) = (pen.chunk.load(Relaxed) as usize).checked_sub(1) {
            pen.chunk.store(0, Relaxed);
            // CHUNK-2. Release: as in `append`.
            self.file.states[at].store(FULL, Release);
        }
    }

    #[cold]
    fn write_on_new(self, pen: &Pen<M>, owner: u64, tid: u32, note: Note) {
        let patience = pen.patience.load(Relaxed);
        if patience == 0
            && let Some(at) = self.claim()
        {
            let chunk = &self.file.chunks[at];
            chunk.tid.store(tid, Relaxed);
            chunk.sequence.store(pen.chunks.load(Relaxed), Relaxed);
            chunk.lost.store(pen.lost.load(Relaxed), Relaxed);
            chunk.used.store(0, Relaxed);
            // CHUNK-5. Release: the rest of the head; pairs with the acquire in `head`.
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
        (0..COUNT).map(|step| (first + step) % COUNT).find(|&at| {
            let state = &self.file.states[at];
            // CHUNK-1. Acquire: CHUNK-2, whoever has read it is done with it; pairs with the fence
            // in `free`.
            state.load(Relaxed) == FREE
                && state.compare_exchange(FREE, OWNED, Acquire, Relaxed).is_ok()
        })
    }

    fn append(self, pen: &Pen<M>, at: usize, note: Note) {
        let chunk = &self.file.chunks[at];
        let used = chunk.used.load(Relaxed);
        let Some(record) = chunk.events.get(used as usize) else { return self.drop(pen) };
        record.time.store(note.time, Relaxed);
        record.word.store(note.word(), Relaxed);
        // CHUNK-5. Release: the event; pairs with the acquire in `head`.
        chunk.used.store(used + 1, Release);
        if used as usize + 1 == ROOM {
            pen.chunk.store(0, Relaxed);
            // CHUNK-2. Release: what was written; pairs with the fence in `states`.
            self.file.states[at].store(FULL, Release);
        }
    }
}
