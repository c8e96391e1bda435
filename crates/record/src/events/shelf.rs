//! Reading events while the program writes others: the reader's side of the protocol.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{FREE, FULL, Memory, Note, OWNED, Roll, Word};

/// The reader's access to the chunks: word by word, each read and written as a whole, and ordered
/// by fences only. Suits files as well as mappings.
pub trait Shelf {
    /// The memory whose fences order the words.
    type Memory: Memory;
    /// Error of reading or writing a word.
    type Error;

    /// The states of all chunks.
    ///
    /// # Errors
    ///
    /// If they can't be read.
    fn states(&self) -> Result<Vec<u32>, Self::Error>;

    /// Writes the state of a chunk.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    fn set_state(&self, chunk: usize, state: u32) -> Result<(), Self::Error>;

    /// The word of a chunk that names its owner.
    ///
    /// # Errors
    ///
    /// If it can't be read.
    fn owner(&self, chunk: usize) -> Result<u64, Self::Error>;

    /// Writes the word of a chunk that names its owner.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    fn set_owner(&self, chunk: usize, owner: u64) -> Result<(), Self::Error>;

    /// The rest of a chunk's head: its number among its thread's chunks, the events dropped before,
    /// the number of events in it, and the kernel's id of the thread.
    ///
    /// # Errors
    ///
    /// If they can't be read.
    fn numbers(&self, chunk: usize) -> Result<[u32; 4], Self::Error>;

    /// The first `count` events of a chunk, or as many as it has room for, as two words each.
    ///
    /// # Errors
    ///
    /// If they can't be read.
    fn events(&self, chunk: usize, count: usize) -> Result<Vec<[u64; 2]>, Self::Error>;
}

/// The owner of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The record of its process.
    pub process: u32,
    /// The number of the thread.
    pub thread: u32,
    /// The kernel's id of the thread, as its process knows it.
    pub tid: u32,
    /// Number of earlier batches of this thread.
    pub sequence: u32,
    /// Number of events dropped between the previous batch and this one.
    pub lost: u32,
    used: u32,
}

/// Consecutive events of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The owner of the events.
    pub of: Head,
    /// Its events, in the order of time, except those of signal handlers.
    pub notes: Vec<Note>,
}

/// Takes the full chunks, and frees them. With `all`, takes those that are not full, too: only when
/// no thread writes any more.
///
/// # Errors
///
/// Those of the shelf.
pub fn drain<S: Shelf>(shelf: &S, all: bool) -> Result<Vec<Batch>, S::Error> {
    let mut batches = Vec::new();
    for (chunk, state) in states(shelf)?.into_iter().enumerate() {
        if state == FULL || (all && state == OWNED) {
            batches.extend(batch(shelf, chunk)?);
        }
        if state == FULL {
            free(shelf, chunk)?;
        }
    }
    Ok(batches)
}

/// Takes the chunks of threads that were killed, or whose end was not noted, if over three quarters
/// of the chunks are owned. `gone` returns whether a thread no longer exists; what the thread did
/// must happen before `gone` returns that.
///
/// # Errors
///
/// Those of the shelf.
pub fn reclaim<S: Shelf>(
    shelf: &S,
    mut gone: impl FnMut(&Head) -> bool,
) -> Result<Vec<Batch>, S::Error> {
    let states = states(shelf)?;
    let owned = |state: &u32| *state == OWNED;
    let mut batches = Vec::new();
    if states.iter().filter(|state| owned(state)).count() < states.len() / 4 * 3 {
        return Ok(batches);
    }
    for (chunk, _) in states.iter().enumerate().filter(|(_, state)| owned(state)) {
        // CHUNK-6.
        if let Some(head) = head(shelf, chunk)?
            && gone(&head)
        {
            batches.extend(batch(shelf, chunk)?);
            free(shelf, chunk)?;
        }
    }
    Ok(batches)
}

/// The states of all chunks.
fn states<S: Shelf>(shelf: &S) -> Result<Vec<u32>, S::Error> {
    let states = shelf.states()?;
    // CHUNK-2. Acquire: pairs with the release of `FULL` in `append` and `give_back`.
    S::Memory::fence(Acquire);
    Ok(states)
}

/// Makes a chunk that has been read free to be claimed.
fn free<S: Shelf>(shelf: &S, chunk: usize) -> Result<(), S::Error> {
    // CHUNK-5. A thread that claims it and is killed at once leaves it without an owner.
    shelf.set_owner(chunk, 0)?;
    // CHUNK-2. Release: the reader has finished with the chunk; pairs with the acquire in `claim`.
    S::Memory::fence(Release);
    shelf.set_state(chunk, FREE)
}

/// The head of a chunk; `None` if it has no owner.
fn head<S: Shelf>(shelf: &S, chunk: usize) -> Result<Option<Head>, S::Error> {
    let owner = shelf.owner(chunk)?;
    // CHUNK-5. Acquire: pairs with the release of the owner in `write_on_new`.
    S::Memory::fence(Acquire);
    let [sequence, lost, used, tid] = shelf.numbers(chunk)?;
    // CHUNK-5. Acquire: pairs with the release of the count in `append`.
    S::Memory::fence(Acquire);
    let Some(process) = ((owner >> 32) as u32).checked_sub(1) else { return Ok(None) };
    Ok(Some(Head { process, thread: owner as u32, tid, sequence, lost, used }))
}

/// The events of a chunk; `None` if it has no owner.
fn batch<S: Shelf>(shelf: &S, chunk: usize) -> Result<Option<Batch>, S::Error> {
    let Some(of) = head(shelf, chunk)? else { return Ok(None) };
    let records = shelf.events(chunk, of.used as usize)?;
    let notes = records.into_iter().filter_map(|[time, word]| Note::of(time, word));
    Ok(Some(Batch { of, notes: notes.collect() }))
}

// Relaxed everywhere: the fences above order the accesses.
impl<M: Memory, const COUNT: usize, const ROOM: usize> Shelf for Roll<M, COUNT, ROOM> {
    type Memory = M;
    type Error = core::convert::Infallible;

    fn states(&self) -> Result<Vec<u32>, Self::Error> {
        Ok(self.head.states.iter().map(|state| state.load(Relaxed)).collect())
    }

    fn set_state(&self, chunk: usize, state: u32) -> Result<(), Self::Error> {
        self.head.states[chunk].store(state, Relaxed);
        Ok(())
    }

    fn owner(&self, chunk: usize) -> Result<u64, Self::Error> {
        Ok(self.chunks.get(chunk).map_or(0, |chunk| chunk.owner.load(Relaxed)))
    }

    fn set_owner(&self, chunk: usize, owner: u64) -> Result<(), Self::Error> {
        if let Some(chunk) = self.chunks.get(chunk) {
            chunk.owner.store(owner, Relaxed);
        }
        Ok(())
    }

    fn numbers(&self, chunk: usize) -> Result<[u32; 4], Self::Error> {
        let Some(chunk) = self.chunks.get(chunk) else { return Ok([0; 4]) };
        let words = [&chunk.sequence, &chunk.lost, &chunk.used, &chunk.tid];
        Ok(words.map(|word| word.load(Relaxed)))
    }

    fn events(&self, chunk: usize, count: usize) -> Result<Vec<[u64; 2]>, Self::Error> {
        let events = self.chunks.get(chunk).into_iter().flat_map(|chunk| &chunk.events).take(count);
        Ok(events.map(|event| [event.time.load(Relaxed), event.word.load(Relaxed)]).collect())
    }
}
