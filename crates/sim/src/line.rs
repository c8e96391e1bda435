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
//! Reads of a shared line overlap: each socket fetches it once from afar, and its cores then read
//! from the socket's cache one [`occupancy_ns`](Machine::occupancy_ns) apart. Capacity is infinite:
//! a line leaves a cache by invalidation only.

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
    /// When the copy in each socket's cache can be read next.
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
            ports_ns: vec![0; machine.sockets as usize],
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
        let socket = machine.socket_of(core) as usize;
        if let Some(owner) = self.owner.take() {
            let cost_ns = machine.transfer_ns(owner, core);
            self.busy_until_ns = begin_ns + cost_ns;
            self.ports_ns[socket] = self.busy_until_ns;
            return (self.busy_until_ns, source_of(machine, owner, core));
        }
        if self.sharers.is_empty() {
            self.owner = Some(core);
            self.busy_until_ns = begin_ns + machine.memory_ns;
            return (self.busy_until_ns, Source::Memory);
        }
        let (done_ns, source) = if self.sharers.on(socket) > 0 {
            let begin_ns = begin_ns.max(self.ports_ns[socket]);
            self.ports_ns[socket] = begin_ns + machine.occupancy_ns;
            (begin_ns + machine.llc_ns, Source::Local)
        } else {
            self.busy_until_ns = begin_ns + machine.occupancy_ns;
            self.ports_ns[socket] = begin_ns + machine.remote_transfer_ns;
            (self.ports_ns[socket], Source::Remote)
        };
        self.reads_until_ns = self.reads_until_ns.max(done_ns);
        (done_ns, source)
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
        let socket = machine.socket_of(core) as usize;
        let far = self.sharers.other_sockets(socket);
        let near = self.sharers.on(socket) - u32::from(self.sharers.holds(core));
        let (cost_ns, source) = if far > 0 {
            let further = u64::from(far - 1) * machine.invalidate_ns;
            (machine.remote_transfer_ns + further, Source::Remote)
        } else if near > 0 {
            (machine.local_transfer_ns, Source::Local)
        } else if self.sharers.holds(core) {
            (hit_ns, Source::Hit)
        } else {
            (machine.memory_ns + hit_ns, Source::Memory)
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

/// A set of cores, counted by socket.
struct Sharers {
    cores: Vec<u64>,
    by_socket: Vec<u32>,
}

impl Sharers {
    fn new(machine: &Machine) -> Self {
        let words = machine.cores().div_ceil(64) as usize;
        Self { cores: vec![0; words], by_socket: vec![0; machine.sockets as usize] }
    }

    fn holds(&self, core: u32) -> bool {
        self.cores[core as usize / 64] & (1 << (core % 64)) != 0
    }

    fn add(&mut self, machine: &Machine, core: u32) {
        if !self.holds(core) {
            self.cores[core as usize / 64] |= 1 << (core % 64);
            self.by_socket[machine.socket_of(core) as usize] += 1;
        }
    }

    fn clear(&mut self) {
        self.cores.fill(0);
        self.by_socket.fill(0);
    }

    fn on(&self, socket: usize) -> u32 {
        self.by_socket[socket]
    }

    fn is_empty(&self) -> bool {
        self.by_socket.iter().all(|&count| count == 0)
    }

    /// How many sockets other than this one have a copy.
    fn other_sockets(&self, socket: usize) -> u32 {
        let held = self.by_socket.iter().filter(|&&count| count > 0).count() as u32;
        held - u32::from(self.by_socket[socket] > 0)
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
