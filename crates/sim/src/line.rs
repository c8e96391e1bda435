//! Cache lines: who holds one, and what an access to it costs.
//!
//! ```text
//!              first access by a
//!       cold ────────────────────► owned by a ◄───┐
//!                                    │     ▲      │ write by b ≠ a:
//!                      read by b ≠ a │     │      │ owned by b
//!                                    ▼     └──────┘
//!                        shared by {a, b, …} ──► owned by c
//!                                    write by c: all other copies are invalidated
//! ```
//!
//! Arbitration is first come, first served: requests are issued in order of simulated time, and a
//! request begins when the one before it is done. So the state that a request finds is the one that
//! the last *issued* request leaves, and its end can be computed when it is issued.
//!
//! - LINE-1: of two accesses to a line of which one takes it away from somebody, the one that was
//!   issued first takes effect first.
//! - LINE-2: `version` changes with each value that is written, hit or not, equal or not. A waiter
//!   sleeps only while the version is the one that it read.
//!
//! Reads of a shared line overlap: each last cache fetches it once from the nearest that has it,
//! and its cores then read from there one [`occupancy_ns`](Machine::occupancy_ns) apart; from the
//! nearest core that has it, if the cache need not hold what cores hold. Capacity is infinite: a
//! line leaves a cache by invalidation only.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::Machine;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// A line's label: lines are counted in the order in which the simulation first touches them, so
/// that nothing depends on where the host put them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(pub(crate) u32);

/// What an access does to its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    ReadModifyWrite,
}

/// Where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Hit,
    Local,
    Remote,
    Memory,
}

/// One line.
pub(crate) struct Line {
    /// The core that may write it, and is then the only sharer.
    owner: Option<u32>,
    sharers: Sharers,
    /// The end of the last request that keeps all others out.
    busy_until_ns: u64,
    /// The end of the last read of a shared copy: a writer waits for it, other readers don't.
    reads_until_ns: u64,
    /// When the copy in each last cache can be read next.
    ports_ns: Vec<u64>,
    /// LINE-2.
    pub(crate) version: u64,
    /// Threads that block until the version changes.
    pub(crate) watchers: Vec<usize>,
    /// Who wrote last.
    pub(crate) writer: Option<usize>,
}

impl Line {
    fn new(machine: &Machine) -> Self {
        Self {
            owner: None,
            sharers: Sharers::new(machine),
            busy_until_ns: 0,
            reads_until_ns: 0,
            ports_ns: vec![0; machine.topology.caches() as usize],
            version: 0,
            watchers: Vec::new(),
            writer: None,
        }
    }

    /// Takes the request of `core`, issued now, into the line's order. Returns when it is done.
    pub(crate) fn issue(
        &mut self,
        machine: &Machine,
        core: u32,
        kind: Kind,
        now_ns: u64,
    ) -> (u64, Source) {
        let done = match kind {
            Kind::Load => self.issue_read(machine, core, now_ns),
            Kind::Store | Kind::ReadModifyWrite => self.issue_write(machine, core, kind, now_ns),
        };
        self.sharers.add(machine, core);
        done
    }

    fn issue_read(&mut self, machine: &Machine, core: u32, now_ns: u64) -> (u64, Source) {
        if self.sharers.holds(core) {
            return (now_ns + machine.hit_ns, Source::Hit);
        }
        let begin_ns = now_ns.max(self.busy_until_ns);
        let cache = machine.topology.cache_of(core);
        let port = cache as usize;
        if let Some(owner) = self.owner.take() {
            let cost_ns = machine.transfer_ns(owner, core);
            self.busy_until_ns = begin_ns + cost_ns;
            self.ports_ns[port] = self.busy_until_ns;
            return (self.busy_until_ns, source_of(machine, owner, core));
        }
        if self.sharers.is_empty() {
            self.owner = Some(core);
            self.busy_until_ns = begin_ns + machine.memory_ns(core);
            return (self.busy_until_ns, Source::Memory);
        }
        let (done_ns, source) = if self.sharers.on(cache) > 0 {
            let begin_ns = begin_ns.max(self.ports_ns[port]);
            self.ports_ns[port] = begin_ns + machine.occupancy_ns;
            (begin_ns + self.near_read_ns(machine, core), Source::Local)
        } else {
            let from = self.sharers.nearest(machine, core);
            self.busy_until_ns = begin_ns + machine.occupancy_ns;
            self.ports_ns[port] = begin_ns + machine.transfer_ns(from, core);
            (self.ports_ns[port], source_of(machine, from, core))
        };
        self.reads_until_ns = self.reads_until_ns.max(done_ns);
        (done_ns, source)
    }

    /// A read of a clean copy that the last cache of `core` holds, or somebody behind it.
    fn near_read_ns(&self, machine: &Machine, core: u32) -> u64 {
        if machine.topology.inclusive() {
            machine.cache_ns()
        } else {
            machine.transfer_ns(self.sharers.nearest(machine, core), core)
        }
    }

    fn issue_write(
        &mut self,
        machine: &Machine,
        core: u32,
        kind: Kind,
        now_ns: u64,
    ) -> (u64, Source) {
        let begin_ns = now_ns.max(self.busy_until_ns).max(self.reads_until_ns);
        let hit_ns = if kind == Kind::Store { machine.hit_ns } else { machine.rmw_ns };
        let (cost_ns, source) = if let Some(from) = self.sharers.farthest(machine, core) {
            let caches = self.sharers.other_caches(machine.topology.cache_of(core));
            let further = u64::from(caches.saturating_sub(1)) * machine.invalidate_ns;
            let asked_ns = if self.owner.is_none() { machine.shared_write_ns } else { 0 };
            let cost_ns = (machine.transfer_ns(from, core) + further).max(asked_ns);
            (cost_ns, source_of(machine, from, core))
        } else if self.sharers.holds(core) {
            (hit_ns, Source::Hit)
        } else {
            (machine.memory_ns(core) + hit_ns, Source::Memory)
        };
        self.owner = Some(core);
        self.sharers.clear();
        self.busy_until_ns = begin_ns + cost_ns;
        (self.busy_until_ns, source)
    }
}

fn source_of(machine: &Machine, from: u32, to: u32) -> Source {
    if machine.socket_of(from) == machine.socket_of(to) { Source::Local } else { Source::Remote }
}

/// A set of cores, counted by last cache.
struct Sharers {
    cores: Vec<u64>,
    by_cache: Vec<u32>,
}

impl Sharers {
    fn new(machine: &Machine) -> Self {
        let words = machine.cores().div_ceil(64) as usize;
        Self { cores: vec![0; words], by_cache: vec![0; machine.topology.caches() as usize] }
    }

    fn holds(&self, core: u32) -> bool {
        self.cores[core as usize / 64] & (1 << (core % 64)) != 0
    }

    fn add(&mut self, machine: &Machine, core: u32) {
        if !self.holds(core) {
            self.cores[core as usize / 64] |= 1 << (core % 64);
            self.by_cache[machine.topology.cache_of(core) as usize] += 1;
        }
    }

    fn clear(&mut self) {
        self.cores.fill(0);
        self.by_cache.fill(0);
    }

    fn on(&self, cache: u32) -> u32 {
        self.by_cache[cache as usize]
    }

    fn is_empty(&self) -> bool {
        self.by_cache.iter().all(|&count| count == 0)
    }

    /// How many last caches other than this one have a copy.
    fn other_caches(&self, cache: u32) -> u32 {
        let held = self.by_cache.iter().filter(|&&count| count > 0).count() as u32;
        held - u32::from(self.on(cache) > 0)
    }

    /// Those other than `core`.
    fn others(&self, core: u32) -> impl Iterator<Item = u32> {
        let words = (0..).zip(&self.cores);
        let of = |(number, &word): (u32, &u64)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(number * 64 + bit)
            })
        };
        words.flat_map(of).filter(move |&other| other != core)
    }

    /// The core nearest to `core` that has a copy; `core` itself if none has.
    fn nearest(&self, machine: &Machine, core: u32) -> u32 {
        self.others(core).min_by_key(|&from| machine.transfer_ns(from, core)).unwrap_or(core)
    }

    /// The core farthest from `core` that has a copy, if another has.
    fn farthest(&self, machine: &Machine, core: u32) -> Option<u32> {
        self.others(core).max_by_key(|&from| machine.transfer_ns(from, core))
    }
}

/// All lines of a machine that were ever touched.
#[derive(Default)]
pub(crate) struct Lines {
    /// From host address to label. Looked up only, never iterated: its order is the host's.
    labels: HashMap<usize, LineId, BuildHasherDefault<AddressHasher>>,
    lines: Vec<Line>,
    names: HashMap<u32, &'static str>,
}

impl Lines {
    /// The line of a host address, labelled now if this is its first touch.
    pub(crate) fn label(&mut self, machine: &Machine, address: usize) -> LineId {
        let fresh = LineId(self.lines.len() as u32);
        let label = *self.labels.entry(address / LINE).or_insert(fresh);
        if label == fresh {
            self.lines.push(Line::new(machine));
        }
        label
    }

    pub(crate) fn get(&self, label: LineId) -> &Line {
        &self.lines[label.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, label: LineId) -> &mut Line {
        &mut self.lines[label.0 as usize]
    }

    pub(crate) fn set_name(&mut self, label: LineId, name: &'static str) {
        self.names.insert(label.0, name);
    }

    pub(crate) fn name(&self, label: LineId) -> Option<&'static str> {
        self.names.get(&label.0).copied()
    }
}

/// Spreads addresses; the default hasher would be most of the simulator's time.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        // Fibonacci hashing; the rotation brings the good high bits to where the table looks.
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}
