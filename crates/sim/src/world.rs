//! The state of one simulation, and the thread-local through which its threads find it.
//!
//! A simulation runs on one host thread. Its threads are coroutines, and exactly one runs at a
//! time, at the simulated instant [`World::now_ns`]. A thread whose next step is due before any
//! scheduled event takes it without switching (it *runs ahead*); otherwise it suspends until its
//! turn.
//!
//! Nothing here is borrowed while a coroutine switches or foreign code runs: each borrow lasts for
//! one call of [`with`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::thread::panicking;

use antiphon_platform::Local;
use corosensei::Yielder;

use crate::buffer::Fence;
use crate::clocks::Clocks;
use crate::distance::Distances;
use crate::events::{Event, Events};
use crate::guests::Hosting;
use crate::line::{Kind, Line, LineId};
use crate::lines::{AddressHasher, Lines};
use crate::links::Links;
use crate::nodes::{Nodes, Process};
use crate::os::Core;
use crate::outcome::{Account, Counts};
use crate::pages::Pages;
use crate::random::{Random, mix};
use crate::simulation::LAST_NS;
use crate::thread::Thread;
use crate::words::Words;
use crate::{Machine, Model, OwnLine, Owns, Sim, SimU32};

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The whole state of one simulation, except its coroutines.
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) model: Model,
    pub(crate) distances: Distances,
    pub(crate) links: Links,
    pub(crate) now_ns: u64,
    /// The time at which throughput workloads must stop.
    pub(crate) limit_ns: u64,
    /// The time at which running threads are given up.
    pub(crate) end_ns: u64,
    pub(crate) events: Events,
    pub(crate) lines: Lines,
    pages: Pages,
    pub(crate) clocks: Clocks,
    pub(crate) threads: Vec<Thread>,
    pub(crate) cores: Vec<Core>,
    /// The thread whose coroutine runs now.
    pub(crate) running: Option<usize>,
    /// The thread that runs next, or that none does, if the suspending coroutine has already
    /// determined it.
    pub(crate) handed: Option<Option<usize>>,
    /// The threads that sleep on a node, by its address. Only looked up, never iterated.
    pub(crate) sleepers: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
    pub(crate) words: Words,
    /// Number of pending stores.
    pub(crate) posted: u64,
    /// Number of interrupts that programs have sent and that have not arrived.
    pub(crate) interrupts_under_way: u32,
    /// Heavy fences that wait for pending stores.
    pub(crate) fences: Vec<Fence>,
    /// The time at which the last heavy fence is done.
    fences_until_ns: u64,
    /// Always `Some` until the world is dropped.
    nodes: Option<Nodes>,
    pub(crate) process: &'static Process,
    pub(crate) random: Random,
    pub(crate) counts: Counts,
    /// The socket of the thread that last released the lock.
    pub(crate) last_owner: Option<u32>,
    pub(crate) trace: u64,
    /// The times at which usage must be recorded, the latest first; the next field has the records.
    pub(crate) accounts_ns: Vec<u64>,
    pub(crate) accounts: Vec<Account>,
    /// The host of virtual machines, if the threads run in such.
    pub(crate) hosting: Option<Hosting<Core>>,
    /// The number of announced spinners of each virtual machine.
    pub(crate) spinners: Vec<&'static OwnLine<SimU32>>,
}

impl World {
    pub(crate) fn new(
        machine: Machine,
        model: Model,
        seed: u64,
        limit_ns: u64,
        grace_ns: u64,
    ) -> Self {
        let cores = (0..machine.cores()).map(|_| Core::default()).collect();
        let (distances, links) = (Distances::new(&machine), Links::new(&machine));
        let pages = Pages::new(model.placement, machine.topology.nodes());
        let clocks = Clocks::new(&machine, seed);
        Self {
            machine,
            model,
            distances,
            links,
            now_ns: 0,
            limit_ns,
            end_ns: limit_ns.saturating_add(grace_ns).min(LAST_NS),
            events: Events::default(),
            lines: Lines::new(model.apart),
            pages,
            clocks,
            threads: Vec::new(),
            cores,
            running: None,
            handed: None,
            sleepers: HashMap::default(),
            words: Words::default(),
            posted: 0,
            interrupts_under_way: 0,
            fences: Vec::new(),
            fences_until_ns: 0,
            nodes: Some(Nodes::take()),
            process: Process::new(),
            random: Random::new(seed, 0),
            counts: Counts::default(),
            last_owner: None,
            trace: 0,
            accounts_ns: Vec::new(),
            accounts: Vec::new(),
            hosting: None,
            spinners: Vec::new(),
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

    /// The line of a host address; its home is set at its first access.
    pub(crate) fn label(&mut self, address: usize) -> LineId {
        let Self { lines, pages, distances, machine, threads, running, .. } = self;
        lines.label(address, |label| {
            let core = running.map_or(0, |thread| threads[thread].core);
            Line::new(distances, pages.home(label, machine.socket_of(core)))
        })
    }

    /// Advances time to `at_ns`; nothing has happened since the previous time.
    #[inline]
    pub(crate) fn advance(&mut self, at_ns: u64) {
        while let Some(&account_ns) = self.accounts_ns.last()
            && account_ns < at_ns
        {
            self.accounts_ns.pop();
            self.write_down(account_ns);
        }
        self.now_ns = at_ns;
    }

    /// Moves the running thread to `at_ns` if neither an event nor the end comes before. Otherwise
    /// schedules the thread's turn, and the caller must suspend.
    #[must_use]
    pub(crate) fn runs_ahead(&mut self, at_ns: u64) -> bool {
        let next = self.is_next(at_ns);
        if next {
            self.advance(at_ns);
        } else {
            self.resume_at(self.me(), at_ns);
        }
        next
    }

    /// Returns whether no event is scheduled before `at_ns`, and it is not past the end.
    pub(crate) fn is_next(&self, at_ns: u64) -> bool {
        at_ns <= self.events.next_ns().min(self.end_ns)
    }

    /// Schedules `thread` to continue at `at_ns`; voids its earlier scheduled turns.
    pub(crate) fn resume_at(&mut self, thread: usize, at_ns: u64) {
        let state = &mut self.threads[thread];
        state.turn = state.turn.wrapping_add(1);
        let event = Event::Resume { thread: thread as u32, turn: state.turn };
        self.events.push(at_ns, event);
    }

    pub(crate) fn count_atomic(&mut self) {
        let me = self.me();
        let thread = &self.threads[me];
        match thread.owns {
            _ if thread.uncounted => {}
            Owns::Yes => self.counts.owner_atomics += 1,
            Owns::GivesBack if !thread.wakes => self.counts.owner_atomics += 1,
            _ => self.counts.other_atomics += 1,
        }
    }

    /// Makes an access of `thread` to `label` take effect now; returns the line's version.
    pub(crate) fn commit(&mut self, thread: usize, label: LineId, kind: Kind, wrote: bool) -> u64 {
        self.record(thread, 1 + kind as u64, u64::from(label.0) << 1 | u64::from(wrote));
        let line = self.lines.get_mut(label);
        if wrote {
            // LINE-2: for every write, even if it was a hit.
            line.version += 1;
            line.writer = Some(thread);
            let mut watchers = std::mem::take(&mut line.watchers);
            for watcher in watchers.drain(..) {
                self.line_changed(watcher, label);
            }
            // No thread has begun to watch meanwhile; this reuses the memory.
            self.lines.get_mut(label).watchers = watchers;
        }
        self.lines.get(label).version
    }

    /// Adds a step to the trace hash.
    pub(crate) fn record(&mut self, thread: usize, what: u64, detail: u64) {
        let step = self.now_ns ^ (thread as u64) << 44 ^ what << 60 ^ detail.rotate_left(24);
        self.trace = mix(self.trace.rotate_left(5) ^ step);
    }

    /// Interrupts each running core in turn; returns the time at which the last has answered.
    pub(crate) fn issue_heavy_fence(&mut self) -> u64 {
        self.counts.heavy_fences += 1;
        let running = self.fence_others() + 1;
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
    /// If this host thread already runs a simulation.
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
        // Ends the borrow first: the world's drop may run foreign code.
        drop(WORLD.with_borrow_mut(Option::take));
    }
}

/// Runs `f` on the world of this host thread.
///
/// # Panics
///
/// If there is no world: the caller is not part of a simulation.
pub(crate) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|slot| f(slot.as_mut().expect("called inside a simulation")))
}

/// Like [`with`], but does nothing if this host thread has no world or is about to end.
pub(crate) fn with_any(f: impl FnOnce(&mut World)) {
    // If the world is borrowed, it drops one of its own values, which belongs to no simulated
    // thread.
    let _gone = WORLD.try_with(|slot| {
        if let Ok(mut slot) = slot.try_borrow_mut()
            && let Some(world) = &mut *slot
        {
            f(world);
        }
    });
}

/// Returns whether the caller is a simulated thread whose accesses have costs. A panicking thread
/// is not: its destructors run at once, without cost, so that the panic propagates.
pub(crate) fn simulated() -> bool {
    !panicking()
        && WORLD.with_borrow(|slot| slot.as_ref().is_some_and(|world| world.running.is_some()))
}

/// Waits for the caller's scheduled turn. Handles events on the caller's stack: if its turn is the
/// next event, there is no switch.
///
/// # Panics
///
/// If the caller is already panicking: its destructors can't wait. That ends the host process.
pub(crate) fn suspend() {
    assert!(!panicking(), "a destructor waits, in a simulated thread that panics");
    let yielder: *const Yielder<(), ()> = with(|world| {
        let me = world.running.take().expect("called from a simulated thread");
        let next = world.next_thread();
        if next == Some(me) {
            world.running = next;
            return std::ptr::null();
        }
        world.handed = Some(next);
        world.threads[me].yielder
    });
    if !yielder.is_null() {
        // SAFETY: the pointer was set by this coroutine's body to its own yielder, which lives as
        // long as the body runs; this is called from within that body, and from no other coroutine,
        // because `running` named it.
        unsafe { (*yielder).suspend(()) }
    }
}

/// The local state of the running thread.
pub(crate) fn local() -> Rc<OwnLine<Local<Sim>>> {
    with(|world| {
        let me = world.me();
        Rc::clone(&world.threads[me].local)
    })
}
