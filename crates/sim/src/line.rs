//! Cache lines: their holders, the order of requests for a line, and the costs of transfers.
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
//! A request that takes the line from another core, or from memory, has it exclusively: it is
//! *served*, and others wait in a queue from which the [`Arbitration`](crate::Arbitration) picks.
//! Until the request has reached the holder of the line, up to [`HOLD_FIFTHS`] of its time, the
//! holder still hits. Reads of a shared line overlap: each cluster (the cores that share a
//! last-level cache) fetches the line once from the nearest copy, and its cores then read that copy
//! one [`occupancy_ns`](Machine::occupancy_ns) apart. Capacity is infinite: a line leaves a cache
//! only by invalidation.
//!
//! - LINE-1: a request waits in the queue only while another is served.
//! - LINE-2: `version` changes with each value that is written, hit or not, equal or not. A waiter
//!   sleeps only while the version is the same as when it read the value.
//!
//! This module decides only the time at which an access is done, and never its value: a value
//! changes, and is read, at one instant, the end of the access. So a mistake here only falsifies
//! costs.

use std::collections::VecDeque;

use crate::costs::{Costs, hit_ns};
use crate::distance::Distances;
use crate::random::Random;
use crate::shadow::Shadow;
use crate::sharers::Sharers;

/// Size of a line, in bytes.
pub(crate) const LINE: usize = 64;

/// The largest part of a transfer's time until it reaches the line's holder, in fifths. The part is
/// random up to that, two fifths on average. With a constant, a core that unlocks and locks again
/// would always, or never, be faster than all others.
const HOLD_FIFTHS: u64 = 4;

/// A line's label: lines are counted in the order in which the simulation first touches them, so
/// that nothing depends on their addresses in the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineId(pub(crate) u32);

/// The effect of an access on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    ReadModifyWrite,
}

/// The place where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Hit,
    Local,
    Remote,
    Memory,
}

/// The party for which a line is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A thread's access, for which it waits.
    Access(u32),
    /// The first store in a thread's buffer.
    Buffer(u32),
    /// One of several lines that a thread accesses together.
    Touch(u32),
}

/// A core that wants a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) core: u32,
    pub(crate) kind: Kind,
    pub(crate) by: By,
    /// Number of later requests that were served before this one.
    pub(crate) passed: u32,
}

/// The completion of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Served {
    /// Done at that time, and no other request waits for it.
    At(u64),
    /// Done at that time, if [`Line::serve`] is called then.
    Alone(u64),
}

/// The state of one cache line.
pub(crate) struct Line {
    /// The node whose memory has the line; `None` for the node of the core that reads it.
    home: Option<u32>,
    /// The core that may write the line, which is then the only sharer.
    owner: Option<u32>,
    sharers: Sharers,
    /// The request that is served, and the time at which it reaches the line's holder.
    served: Option<(Request, u64)>,
    pub(crate) queue: VecDeque<Request>,
    /// The end of the last read of a shared copy: a writer waits for it, other readers don't.
    reads_until_ns: u64,
    /// The time at which the copy at home can be read next.
    home_ns: u64,
    /// The time at which the copy in each cluster's cache can be read next.
    ports_ns: Vec<u64>,
    /// Changes with each write (LINE-2).
    pub(crate) version: u64,
    /// Threads that block until the version changes.
    pub(crate) watchers: Vec<usize>,
    /// The thread that wrote the line last.
    pub(crate) writer: Option<usize>,
    /// Words for which other threads see an older value.
    pub(crate) shadows: Vec<Shadow>,
}

impl Line {
    pub(crate) fn new(distances: &Distances, home: Option<u32>) -> Self {
        Self {
            home,
            owner: None,
            sharers: Sharers::new(distances),
            served: None,
            queue: VecDeque::new(),
            reads_until_ns: 0,
            home_ns: 0,
            ports_ns: vec![0; distances.clusters as usize],
            version: 0,
            watchers: Vec::new(),
            writer: None,
            shadows: Vec::new(),
        }
    }

    /// Returns whether an access of `core` hits, now.
    pub(crate) fn hits(&self, core: u32, kind: Kind, now_ns: u64) -> bool {
        let holds = match kind {
            Kind::Load => self.sharers.holds(core),
            Kind::Store | Kind::ReadModifyWrite => self.owner == Some(core),
        };
        let taken = |&(by, reached_ns): &(Request, u64)| {
            now_ns >= reached_ns && (kind != Kind::Load || by.kind != Kind::Load)
        };
        holds && !self.served.as_ref().is_some_and(taken)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.served.is_some()
    }

    /// The core that has the line, or last had it exclusively, for arbitration.
    pub(crate) fn holder(&self) -> Option<u32> {
        self.owner
    }

    /// Begins to serve a request. The line must not be busy.
    pub(crate) fn begin(&mut self, request: Request, costs: &mut Costs<'_>) -> (Served, Source) {
        if self.hits(request.core, request.kind, costs.now_ns) {
            let at_ns = costs.now_ns + hit_ns(costs.machine, request.kind);
            return self.alone(costs.random, request, costs.now_ns, at_ns, Source::Hit);
        }
        match request.kind {
            Kind::Load => self.begin_read(request, costs),
            Kind::Store | Kind::ReadModifyWrite => self.begin_write(request, costs),
        }
    }

    fn alone(
        &mut self,
        random: &mut Random,
        request: Request,
        begin_ns: u64,
        done_ns: u64,
        source: Source,
    ) -> (Served, Source) {
        let most_ns = (done_ns - begin_ns) * HOLD_FIFTHS / 5;
        self.served = Some((request, begin_ns + random.up_to(most_ns)));
        (Served::Alone(done_ns), source)
    }

    fn begin_read(&mut self, request: Request, costs: &mut Costs<'_>) -> (Served, Source) {
        let now_ns = costs.now_ns;
        if let Some(owner) = self.owner {
            let (begin_ns, cost_ns, source) = costs.between_cores(owner, request.core, self.home);
            return self.alone(costs.random, request, begin_ns, begin_ns + cost_ns, source);
        }
        if self.sharers.is_empty() {
            let (begin_ns, cost_ns) = costs.memory_way(request.core, self.home, now_ns);
            return self.alone(costs.random, request, begin_ns, begin_ns + cost_ns, Source::Memory);
        }
        let cluster = costs.distances.cluster_of(request.core);
        let port_ns = &mut self.ports_ns[cluster as usize];
        let (done_ns, source) = if self.sharers.on(cluster) > 0 {
            let begin_ns = now_ns.max(*port_ns);
            *port_ns = begin_ns + costs.machine.occupancy_ns;
            (begin_ns + costs.near_ns(cluster), Source::Local)
        } else {
            // From the nearest copy, through the line's home.
            let elsewhere = self.sharers.elsewhere(cluster);
            let nearest = elsewhere.min_by_key(|&from| costs.way_ns(from, cluster, self.home));
            let nearest = nearest.expect("there are copies, and none is here");
            let begin_ns = now_ns.max(self.home_ns);
            self.home_ns = begin_ns + costs.machine.occupancy_ns;
            let (begin_ns, cost_ns, source) = costs.between(nearest, cluster, self.home, begin_ns);
            *port_ns = begin_ns + cost_ns;
            (*port_ns, source)
        };
        self.reads_until_ns = self.reads_until_ns.max(done_ns);
        self.sharers.add(costs.distances, request.core);
        (Served::At(done_ns), source)
    }

    fn begin_write(&mut self, request: Request, costs: &mut Costs<'_>) -> (Served, Source) {
        let core = request.core;
        let begin_ns = costs.now_ns.max(self.reads_until_ns).max(self.home_ns);
        if let Some(owner) = self.owner {
            let (begin_ns, cost_ns, source) = costs.between_cores(owner, core, self.home);
            return self.alone(costs.random, request, begin_ns, begin_ns + cost_ns, source);
        }
        if self.sharers.is_empty() {
            let (begin_ns, cost_ns) = costs.memory_way(core, self.home, begin_ns);
            let done_ns = begin_ns + cost_ns + hit_ns(costs.machine, request.kind);
            return self.alone(costs.random, request, begin_ns, done_ns, Source::Memory);
        }
        let cluster = costs.distances.cluster_of(core);
        // The farthest copy decides, and receiving each cluster's answer takes time.
        let mut farthest = None;
        let mut clusters = 0;
        for from in self.sharers.elsewhere(cluster) {
            clusters += 1;
            farthest = farthest.max(Some((costs.way_ns(from, cluster, self.home), from)));
        }
        let Some((_, farthest)) = farthest else {
            let cost_ns = costs.distances.within_ns(cluster);
            let done_ns = begin_ns + cost_ns.max(costs.machine.shared_write_ns);
            return self.alone(costs.random, request, begin_ns, done_ns, Source::Local);
        };
        let (begin_ns, cost_ns, source) = costs.between(farthest, cluster, self.home, begin_ns);
        let further_ns = (clusters - 1) * costs.machine.invalidate_ns;
        let cost_ns = (cost_ns + further_ns).max(costs.machine.shared_write_ns);
        self.alone(costs.random, request, begin_ns, begin_ns + cost_ns, source)
    }

    /// Ends the request that is served, and returns it.
    pub(crate) fn end(&mut self, distances: &Distances, now_ns: u64) -> Request {
        let (request, _) = self.served.take().expect("a request is served");
        if request.kind == Kind::Load {
            let cluster = distances.cluster_of(request.core);
            let fresh = self.sharers.is_empty();
            self.owner =
                if fresh || self.owner == Some(request.core) { Some(request.core) } else { None };
            self.sharers.add(distances, request.core);
            self.ports_ns[cluster as usize] = now_ns;
        } else {
            self.owner = Some(request.core);
            self.sharers.leave(distances, request.core);
        }
        request
    }
}
