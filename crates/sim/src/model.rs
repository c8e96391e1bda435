//! The assumptions of a simulation beyond its machine, on which machines differ or nothing is
//! known.

/// When a store becomes visible to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Stores are posted: a thread goes on at once, and its stores become visible one after the
    /// other, each when its line has come. Read-modify-writes, fences and system calls wait for all
    /// of them. This is x86-TSO (P. Sewell and others, CACM 53(7), 2010).
    #[default]
    Tso,
    /// A store waits for its line, so memory is sequentially consistent.
    Sc,
}

/// The order in which the requests for a contended line are served. No manual documents it, and the
/// advantage of NUMA-aware locks depends on it more than on anything else: report results for more
/// than one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// First come, first served.
    #[default]
    Fifo,
    /// At random, by the simulation's seed.
    Random,
    /// The request nearest to the line's holder, but none is passed by more than `bypass` others.
    Nearest {
        /// The largest number of later requests that may be served before a request.
        bypass: u32,
    },
}

impl Arbitration {
    /// Nearest first, with a bound.
    pub const NEAREST: Self = Self::Nearest { bypass: 16 };
    /// Nearest first, without a bound.
    pub const UNBOUNDED: Self = Self::Nearest { bypass: u32::MAX };
}

/// The node in whose memory a page is: the home of its lines. A line that no cache has comes from
/// its home, and a transfer from one last-level cache to another is requested at the home, which is
/// a detour if the home is neither the source nor the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the node of the requesting core: memory is always near, and there are no detours.
    /// Published costs of a line are of this kind: its home is on the node of one of the two cores.
    #[default]
    Near,
    /// On the node of the thread that accesses it first, as Linux does by default.
    FirstTouch,
    /// On one node after the other (`numactl --interleave=all`).
    Interleaved,
    /// All pages on that node (`numactl --membind`).
    On(u32),
}

/// The assumptions of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// When stores become visible.
    pub memory: Memory,
    /// The order in which requests for a contended line are served.
    pub arbitration: Arbitration,
    /// The nodes of memory pages.
    pub placement: Placement,
    /// Whether the scheduler moves threads that were not pinned to idle cores. If not, all threads
    /// stay on their cores, as in benchmarks that pin their threads.
    pub balance: bool,
    /// Whether a core's queue is ordered by its threads' virtual time instead of arrival; then a
    /// thread that is woken from its own core is also queued at once, without the latency of a
    /// wake. For threads that stay on their cores.
    pub fair: bool,
    /// Whether threads wait like fibers: none may sleep on a word, because that would block the
    /// thread under it.
    pub fibers: bool,
    /// Whether each word has its own line, whatever its address. Then nothing depends on the
    /// placement of words by the host's allocator. For programs that allocate while they run, and
    /// are examined for their behaviour and not for their costs.
    pub apart: bool,
}
