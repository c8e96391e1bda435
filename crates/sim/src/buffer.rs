//! Store buffers.
//!
//! A store that misses its line is posted: the thread goes on, the line of the word is requested,
//! and when the line has arrived the store is done and becomes visible to others
//! ([`shadow`](crate::shadow)).
//!
//! - BUFFER-1: the stores of a thread are done in their order. Only the first of them requests its
//!   line, and a store that would hit is also posted while others are before it.
//! - BUFFER-2: read-modify-writes, heavy fences, system calls and the end of the thread wait until
//!   the buffer is empty; a store waits while it is full.
//!
//! A thread reads its own stores from memory, which has the new value already; this models the
//! forwarding of a real buffer. Stores belong to a thread and not to its core, so a thread that
//! loses its core is not delayed, and sees its own stores on any core.

use std::collections::VecDeque;

use crate::events::Event;
use crate::line::{By, Kind, LINE, LineId};
use crate::requests::Issued;
use crate::world::{World, suspend, with, with_any};
use crate::{Memory, shadow};

/// The largest number of stores in a buffer: 42 on Haswell and Broadwell (Intel's optimization
/// manual).
const CAPACITY: usize = 42;

/// A pending store.
#[derive(Clone, Copy, Debug)]
struct Posted {
    line: LineId,
    offset: u8,
    core: u32,
    /// `None` if the word is gone.
    value: Option<u64>,
}

/// The pending stores of one thread.
#[derive(Default)]
pub(crate) struct Buffer {
    stores: VecDeque<Posted>,
    /// Number of stores posted so far.
    posted: u64,
    /// The largest number of pending stores that the thread waits for.
    room: Option<usize>,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Number of posted stores that are done.
    fn done(&self) -> u64 {
        self.posted - self.stores.len() as u64
    }
}

/// The result of posting a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Posting {
    /// The caller must write the word in memory, now.
    Write,
    /// The buffer is full: wait and try again.
    Full,
    /// The thread must wait for the line, with its buffer empty.
    Blocks,
}

impl World {
    /// Posts a store of the running thread to the word at `address`, which holds `before` in
    /// memory.
    pub(crate) fn post(&mut self, address: usize, before: u64, value: u64) -> Posting {
        if self.model.memory == Memory::Sc {
            return Posting::Blocks;
        }
        let me = self.me();
        let (core, now_ns) = (self.my_core(), self.now_ns);
        let label = self.label(address);
        let offset = (address % LINE) as u8;
        let line = self.lines.get_mut(label);
        let buffer = &mut self.threads[me].buffer;
        if shadow::seen(&mut line.shadows, offset, me).is_some() {
            // SHADOW-1.
            return Posting::Blocks;
        }
        if buffer.is_empty() && line.hits(core, Kind::Store, now_ns) {
            self.counts.hits += 1;
            self.commit(me, label, Kind::Store, true);
            return Posting::Write;
        }
        if buffer.stores.len() == CAPACITY {
            return Posting::Full;
        }
        shadow::post(&mut line.shadows, offset, me, before);
        buffer.stores.push_back(Posted { line: label, offset, core, value: Some(value) });
        buffer.posted += 1;
        self.posted += 1;
        self.counts.posted += 1;
        if self.threads[me].buffer.stores.len() == 1 {
            self.request_first(me);
        }
        Posting::Write
    }

    /// BUFFER-1: requests the line of the first store.
    fn request_first(&mut self, thread: usize) {
        let Some(&Posted { line, core, .. }) = self.threads[thread].buffer.stores.front() else {
            return;
        };
        let number = thread as u32;
        match self.request(line, core, Kind::Store, By::Buffer(number)) {
            Issued::At(done_ns) => self.events.push(done_ns, Event::Stored { thread: number }),
            Issued::Alone(done_ns) => self.events.push(done_ns, Event::Served { line }),
            Issued::Queued => {}
        }
    }

    /// Completes the first store in a thread's buffer.
    pub(crate) fn stored(&mut self, thread: usize) {
        let buffer = &mut self.threads[thread].buffer;
        let store = buffer.stores.pop_front().expect("a store was under way");
        self.posted -= 1;
        if let Some(value) = store.value {
            shadow::commit(&mut self.lines.get_mut(store.line).shadows, store.offset, value);
        }
        self.commit(thread, store.line, Kind::Store, true);
        self.request_first(thread);
        let buffer = &mut self.threads[thread].buffer;
        if buffer.room.is_some_and(|room| buffer.stores.len() <= room) {
            buffer.room = None;
            self.resume_at(thread, self.now_ns);
        }
        self.answer_fences();
    }

    /// Returns whether the running thread must wait until at most `room` of its stores are pending.
    /// It must then suspend.
    #[must_use]
    pub(crate) fn drains(&mut self, room: usize) -> bool {
        let me = self.me();
        let buffer = &mut self.threads[me].buffer;
        let waits = buffer.stores.len() > room;
        if waits {
            buffer.room = Some(room);
        }
        waits
    }

    /// Like [`drains`](Self::drains), until there is room for one more store.
    #[must_use]
    pub(crate) fn drains_for_one(&mut self) -> bool {
        self.drains(CAPACITY - 1)
    }
}

/// The stores of all threads for which a heavy fence waits.
pub(crate) struct Fence {
    thread: usize,
    /// Threads, and for each the number of stores that must be done.
    left: Vec<(usize, u64)>,
}

impl World {
    /// The pending stores of all threads, for [`awaits`](Self::awaits).
    pub(crate) fn under_way(&self) -> Fence {
        let threads = self.threads.iter().enumerate();
        let busy = threads.filter(|(_, thread)| !thread.buffer.is_empty());
        let left = busy.map(|(number, thread)| (number, thread.buffer.posted)).collect();
        Fence { thread: self.me(), left }
    }

    /// Returns whether some of these stores are still pending. The running thread must then
    /// suspend.
    #[must_use]
    pub(crate) fn awaits(&mut self, mut fence: Fence) -> bool {
        self.shorten(&mut fence);
        let waits = !fence.left.is_empty();
        if waits {
            self.fences.push(fence);
        }
        waits
    }

    fn shorten(&self, fence: &mut Fence) {
        fence.left.retain(|&(thread, posted)| self.threads[thread].buffer.done() < posted);
    }

    fn answer_fences(&mut self) {
        if self.fences.is_empty() {
            return;
        }
        let mut fences = std::mem::take(&mut self.fences);
        fences.retain_mut(|fence| {
            self.shorten(fence);
            if fence.left.is_empty() {
                self.resume_at(fence.thread, self.now_ns);
            }
            !fence.left.is_empty()
        });
        self.fences = fences;
    }

    /// Forgets the word at `address`, which is dropped: no thread will see the stores to it, and
    /// the next word there is a different one.
    fn forget(&mut self, address: usize) {
        let offset = (address % LINE) as u8;
        let Some(label) = self.lines.find(address) else { return };
        let shadows = &mut self.lines.get_mut(label).shadows;
        let Some(place) = shadows.iter().position(|shadow| shadow.offset == offset) else { return };
        let by = shadows.swap_remove(place).by;
        for store in &mut self.threads[by as usize].buffer.stores {
            if (store.line, store.offset) == (label, offset) {
                store.value = None;
            }
        }
    }
}

/// Notes that the word at `address` is dropped.
pub(crate) fn dropped(address: usize) {
    with_any(|world| {
        if world.posted > 0 {
            world.forget(address);
        }
        world.lines.forget(address);
    });
}

/// Waits until all stores of the calling thread are done.
pub(crate) fn drain() {
    if !std::thread::panicking() && with(|world| world.drains(0)) {
        suspend();
    }
}
