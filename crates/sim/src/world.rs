//! The state of one simulation, and the thread-local through which its threads find it.
//!
//! A simulation runs on one host thread. Its threads are coroutines, and exactly one runs at a
//! time, at the simulated instant [`World::now_ns`]. A thread whose next step is due before any
//! foreseen event takes it without switching (it *runs ahead*); else it suspends until its turn.
//!
//! Nothing here is borrowed while a coroutine switches or foreign code runs: each borrow lasts for
//! one call of [`with`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::thread::panicking;

use antiphon_platform::{Arena, Local};
use corosensei::Yielder;

use crate::events::{Event, Events};
use crate::line::{AddressHasher, Kind, LineId, Lines, Source};
use crate::nodes::{Nodes, new_arena};
use crate::os::{Core, Thread};
use crate::outcome::Counts;
use crate::random::{Random, mix};
use crate::{Machine, OwnLine, Owns, Sim};

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Everything that one simulation consists of, but for its coroutines.
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) now_ns: u64,
    /// When throughput workloads are to stop.
    pub(crate) limit_ns: u64,
    /// When threads that still run are given up.
    pub(crate) end_ns: u64,
    pub(crate) events: Events,
    pub(crate) lines: Lines,
    pub(crate) threads: Vec<Thread>,
    pub(crate) cores: Vec<Core>,
    /// The thread whose coroutine runs now.
    pub(crate) running: Option<usize>,
    /// Who sleeps, by the address of the node. Looked up only, never iterated.
    pub(crate) sleepers: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
    /// Threads that wait by spinning, on their cores or preempted.
    pub(crate) spinners: u32,
    /// When the last heavy fence is done.
    fences_until_ns: u64,
    /// Always there until the world is dropped.
    nodes: Option<Nodes>,
    pub(crate) arena: &'static Arena<Sim>,
    pub(crate) random: Random,
    pub(crate) counts: Counts,
    /// The socket of who gave the lock back last.
    pub(crate) last_owner: Option<u32>,
    pub(crate) trace: u64,
}

impl World {
    pub(crate) fn new(machine: Machine, seed: u64, limit_ns: u64, grace_ns: u64) -> Self {
        let cores = (0..machine.cores()).map(|_| Core::default()).collect();
        Self {
            machine,
            now_ns: 0,
            limit_ns,
            end_ns: limit_ns.saturating_add(grace_ns),
            events: Events::default(),
            lines: Lines::default(),
            threads: Vec::new(),
            cores,
            running: None,
            sleepers: HashMap::default(),
            spinners: 0,
            fences_until_ns: 0,
            nodes: Some(Nodes::take()),
            arena: new_arena(),
            random: Random::new(seed, 0),
            counts: Counts::default(),
            last_owner: None,
            trace: 0,
        }
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        self.nodes.as_ref().expect("there until the world is dropped")
    }

    /// The thread whose coroutine runs now.
    pub(crate) fn me(&self) -> usize {
        self.running.expect("called from a simulated thread")
    }

    /// The core of the thread that runs now.
    pub(crate) fn my_core(&self) -> u32 {
        self.threads[self.me()].core
    }

    /// Moves the running thread to `at_ns` if neither an event nor the end comes before. If one
    /// does, foresees the thread's turn, and the caller must suspend.
    #[must_use]
    pub(crate) fn runs_ahead(&mut self, at_ns: u64) -> bool {
        if at_ns <= self.events.next_ns().min(self.end_ns) {
            self.now_ns = at_ns;
            return true;
        }
        self.resume_at(self.me(), at_ns);
        false
    }

    /// Foresees that `thread` goes on at `at_ns`; voids what was foreseen for it before.
    pub(crate) fn resume_at(&mut self, thread: usize, at_ns: u64) {
        let state = &mut self.threads[thread];
        state.turn += 1;
        self.events.push(at_ns, Event::Resume { thread, turn: state.turn });
    }

    /// Takes a request of the running thread into the order of the line at `address`.
    pub(crate) fn issue(&mut self, address: usize, kind: Kind) -> (LineId, u64) {
        let core = self.my_core();
        let label = self.lines.label(&self.machine, address);
        if kind == Kind::ReadModifyWrite {
            self.count_atomic();
        }
        let line = self.lines.get_mut(label);
        let (done_ns, source) = line.issue(&self.machine, core, kind, self.now_ns);
        match source {
            Source::Hit => self.counts.hits += 1,
            Source::Local => self.counts.local_transfers += 1,
            Source::Remote => self.counts.remote_transfers += 1,
            Source::Memory => self.counts.memory_reads += 1,
        }
        (label, done_ns)
    }

    fn count_atomic(&mut self) {
        let me = self.me();
        let thread = &self.threads[me];
        match thread.owns {
            Owns::Yes => self.counts.owner_atomics += 1,
            Owns::GivesBack if !thread.wakes => self.counts.owner_atomics += 1,
            _ => self.counts.other_atomics += 1,
        }
    }

    /// An access of the running thread to `label` takes effect now.
    pub(crate) fn commit(&mut self, label: LineId, kind: Kind, wrote: bool) -> u64 {
        let me = self.me();
        self.record(me, 1 + kind as u64, u64::from(label.0) << 1 | u64::from(wrote));
        let line = self.lines.get_mut(label);
        if wrote {
            // LINE-2: whatever the write cost, even if it was a hit.
            line.version += 1;
            line.writer = Some(me);
            for watcher in std::mem::take(&mut line.watchers) {
                self.line_changed(watcher, label);
            }
        }
        self.lines.get(label).version
    }

    /// Adds a step to the trace hash.
    pub(crate) fn record(&mut self, thread: usize, what: u64, detail: u64) {
        for part in [self.now_ns, thread as u64, what, detail] {
            self.trace = mix(self.trace.rotate_left(5) ^ part);
        }
    }

    /// Interrupts each running core in turn; returns when the last has answered.
    pub(crate) fn issue_heavy_fence(&mut self) -> u64 {
        self.counts.heavy_fences += 1;
        let running = self.cores.iter().filter(|core| core.current.is_some()).count() as u64;
        let begin_ns = self.now_ns.max(self.fences_until_ns);
        self.fences_until_ns = begin_ns + running * self.machine.heavy_fence_ns_per_cpu;
        self.fences_until_ns
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(nodes) = self.nodes.take() {
            nodes.give();
        }
    }
}

/// The world of a host thread, from `new` to drop.
pub(crate) struct Installed(());

impl Installed {
    /// # Panics
    ///
    /// If this host thread runs a simulation already.
    pub(crate) fn new(world: World) -> Self {
        WORLD.with_borrow_mut(|slot| {
            assert!(slot.is_none(), "a simulation inside a simulation");
            *slot = Some(world);
        });
        Self(())
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // Out of the borrow first: what a world drops may be foreign.
        drop(WORLD.with_borrow_mut(Option::take));
    }
}

/// Runs `f` on the world of this host thread.
///
/// # Panics
///
/// If there is none: the caller is not part of a simulation.
pub(crate) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|slot| f(slot.as_mut().expect("called inside a simulation")))
}

/// Whether the caller is a simulated thread whose accesses are priced. One that panics is not: its
/// destructors run at once, at no cost, so that the panic gets out.
pub(crate) fn simulated() -> bool {
    !panicking()
        && WORLD.with_borrow(|slot| slot.as_ref().is_some_and(|world| world.running.is_some()))
}

/// Gives the host thread back to the event loop until the caller's turn.
///
/// # Panics
///
/// If the caller panics already: its destructors can't wait. That ends the host process.
pub(crate) fn suspend() {
    assert!(!panicking(), "a destructor waits, in a simulated thread that panics");
    let yielder: *const Yielder<(), ()> = with(|world| {
        let me = world.me();
        world.threads[me].yielder
    });
    // SAFETY: the pointer was set by this coroutine's body to its own yielder, which lives as long
    // as the body runs; this is called from within the body, and from no other coroutine, because
    // `running` is the one that runs.
    unsafe { (*yielder).suspend(()) }
}

/// The local state of the running thread.
pub(crate) fn local() -> Rc<OwnLine<Local<Sim>>> {
    with(|world| {
        let me = world.me();
        Rc::clone(&world.threads[me].local)
    })
}
