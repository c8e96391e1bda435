//! Memory of waiter nodes, reused from simulation to simulation.
//!
//! The platform interface promises `&'static` nodes, but each simulation needs its own, all zero.
//! So node memory is leaked once, kept here when its simulation ends, and wiped for the next
//! simulation. The arena can't be wiped from outside, so each simulation leaks a new arena and the
//! other state that its threads share: two lines.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use antiphon_platform::{Arena, Atomic, Indicator, Waiter};

use crate::{OwnLine, Sim, SimU32};

/// One more than the largest number of nodes of a simulation.
pub(crate) const NODES: u32 = 1 << 16;
/// Number of locks of a simulation that can count their readers by socket at a time.
const INDICATORS: usize = 8;
/// Number of nodes that are allocated together.
const BLOCK: u32 = 256;

type Block = [Waiter<Sim>; BLOCK as usize];

/// The nodes of one simulation at a time.
pub(crate) struct Nodes {
    blocks: Box<[OnceLock<&'static Block>]>,
}

/// Node memory that no simulation uses.
static IDLE: Mutex<Vec<Nodes>> = Mutex::new(Vec::new());

impl Nodes {
    /// Takes node memory that reads as zero.
    pub(crate) fn take() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let nodes = idle.unwrap_or_else(|| Self {
            blocks: (0..NODES / BLOCK).map(|_| OnceLock::new()).collect(),
        });
        nodes.blocks.iter().filter_map(OnceLock::get).flat_map(|block| block.iter()).for_each(wipe);
        nodes
    }

    /// Keeps the memory for a later simulation.
    pub(crate) fn give(self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    pub(crate) fn get(&self, index: u32) -> &'static Waiter<Sim> {
        let block = self.blocks[(index / BLOCK) as usize]
            .get_or_init(|| Box::leak(Box::new([const { Waiter::NEW }; BLOCK as usize])));
        &block[(index % BLOCK) as usize]
    }
}

/// The state that the threads of a simulation share, like those of a process.
pub(crate) struct Process {
    pub(crate) arena: OwnLine<Arena<Sim>>,
    /// Number of threads that have announced that they spin.
    pub(crate) spinners: OwnLine<SimU32>,
    /// The reader indicators, made when the first lock requests one.
    readers: OnceLock<&'static [Indicator<Sim>]>,
}

impl Process {
    /// Creates a process whose arena has handed out nothing.
    pub(crate) fn new() -> &'static Self {
        // SAFETY: the only arena of a simulation, whose nodes no other simulation uses.
        let arena = OwnLine(unsafe { Arena::new() });
        let spinners = OwnLine(SimU32::ZERO);
        Box::leak(Box::new(Self { arena, spinners, readers: OnceLock::new() }))
    }
}

/// Makes a count of announced spinners, as a process has one: for each virtual machine.
pub(crate) fn no_spinners() -> &'static OwnLine<SimU32> {
    Box::leak(Box::new(OwnLine(SimU32::ZERO)))
}

impl Process {
    /// The reader indicators of the process.
    pub(crate) fn indicators(&self) -> &'static [Indicator<Sim>] {
        self.readers.get_or_init(|| Box::leak(Box::new([const { Indicator::NEW }; INDICATORS])))
    }
}

fn wipe(node: &Waiter<Sim>) {
    // Every field by name: a new one must not be forgotten.
    let Waiter {
        generation,
        owner,
        next,
        status,
        batch,
        resume,
        socket,
        cpu,
        wants,
        called,
        due,
        token,
        rank,
        passed,
        handle,
        queue,
    } = node;
    // Relaxed: the list's mutex orders this after the last simulation and before the next.
    let words = [generation, owner, next, status, batch, resume, wants, called, due, token];
    for word in words {
        word.0.store(0, Relaxed);
    }
    for half in [socket, cpu, rank, passed] {
        half.0.store(0, Relaxed);
    }
    handle.0.store(0, Relaxed);
    queue.0.store(0, Relaxed);
}
