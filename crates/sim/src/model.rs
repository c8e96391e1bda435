//! The assumptions of a simulation beyond its machine, where machines differ or it is not known.

/// When a store is seen by others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Stores are posted: a thread goes on at once, and its stores become visible one after the
    /// other, each when its line has come. Read-modify-writes, fences and calls of the system wait
    /// for all of them. This is x86-TSO (P. Sewell and others, CACM 53(7), 2010).
    #[default]
    Tso,
    /// A store waits for its line, so memory is sequentially consistent.
    Sc,
}

/// The order in which the requests for a contended line are served. No manual says it, and the
/// advantage of NUMA-aware locks depends on it more than on anything else: report results for more
/// than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// First come, first served.
    #[default]
    Fifo,
    /// Any, by the simulation's seed.
    Random,
    /// The one nearest to the line's holder, but none is passed by more than `bypass`.
    Nearest {
        /// How many that came later may be served before one.
        bypass: u32,
    },
}

impl Arbitration {
    /// Nearest first, with a bound.
    pub const NEAREST: Self = Self::Nearest { bypass: 16 };
    /// Nearest first, without one.
    pub const UNBOUNDED: Self = Self::Nearest { bypass: u32::MAX };
}

/// Which node's memory a page is in: the home of its lines. A line that no cache has comes from
/// there, and one that goes from one last cache to another is asked for there, which is a detour if
/// the home is neither where the line is nor where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the node of the core that asks: memory is always near, and nothing goes a detour. That is
    /// what published costs of a line say, whose home is where one of the two is.
    #[default]
    Near,
    /// On the node of the thread that touches it first, as Linux does by default.
    FirstTouch,
    /// On one node after the other (`numactl --interleave=all`).
    Interleaved,
    /// On that node, all of them (`numactl --membind`).
    On(u32),
}

/// The assumptions of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// When stores are seen.
    pub memory: Memory,
    /// The order in which requests have a contended line.
    pub arbitration: Arbitration,
    /// Where memory is.
    pub placement: Placement,
    /// Whether the scheduler moves threads that were not put on a core to cores that are idle. If
    /// not, all stay where they are, as benchmarks pin their threads.
    pub balance: bool,
    /// Whether a core's queue is in the order of what its threads have had, and not in that of
    /// their arrival; and a thread that is woken from its own core is in it at once, without the
    /// latency of a wake. For threads that stay where they are.
    pub fair: bool,
    /// Whether threads wait as fibers do: none may sleep on a word, for that would block the thread
    /// under it.
    pub fibers: bool,
    /// Whether each word is a line by itself, wherever it is. Then nothing depends on which words
    /// the host's allocator puts side by side, or where others were: for programs that allocate
    /// while they run, and are asked what they do and not what it costs.
    pub apart: bool,
}
