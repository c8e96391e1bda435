//! The description of a machine: its shape and its costs.
//!
//! Machines are data: `machines/*.toml` in this crate, or a user's file. Each number there has its
//! source and its reliability:
//!
//! - **measured**: computed from measurements that are cited;
//! - **published**: stated in the cited source;
//! - **recalled**: known from the literature, not checked against its text;
//! - **estimated**: derived from numbers of a related machine, or chosen.
//!
//! Costs are whole nanoseconds of simulated time; values in a file are rounded to them. For an
//! access that hits, the remainder is kept, because it is a large part of such a short time.

mod delivery;
mod file;
mod kernel;
mod part;
mod paths;
mod presets;
mod topology;

pub use delivery::{Delivery, Entry};
pub use file::{Description, Kind, Number, Unit, Wrong};
pub use kernel::Kernel;
pub use part::Part;
pub use paths::Paths;
pub use presets::{Known, PRESETS, known};
pub use topology::{BadShape, CPUS, Class, Level, Topology};

/// A machine to simulate. All fields are public: start from a preset and change what differs.
///
/// ```
/// use antiphon_sim::Machine;
/// let machine = Machine { slice_ns: 1_000_000, ..Machine::two_sockets() }.shape(2, 4);
/// assert_eq!(machine.cores(), 8);
/// assert!(machine.transfer_ns(0, 4) > machine.transfer_ns(0, 3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name that reports use.
    pub name: String,
    /// The CPUs, and the cost of a line between any two of them.
    pub topology: Topology,
    /// Cost of a load or store of a line that the core holds.
    pub hit_ns: u64,
    /// Correction of `hit_ns`, in picoseconds; negative if `hit_ns` is too large. Each thread adds
    /// up the difference and corrects its time occasionally.
    pub hit_rest_ps: i64,
    /// The pause between two loads of a spinning waiter. With 0, it loads as soon as its line has
    /// changed.
    pub look_ns: u64,
    /// Cost of a read-modify-write of a line that the core owns.
    pub rmw_ns: u64,
    /// Correction of `rmw_ns`, in picoseconds, as `hit_rest_ps` for `hit_ns`.
    pub rmw_rest_ps: i64,
    /// Extra cost for each further last-level cache whose copies must be invalidated.
    pub invalidate_ns: u64,
    /// The least cost of a write of a line of which others have copies, however near they are:
    /// without a directory, all caches are asked. 0 with a directory.
    pub shared_write_ns: u64,
    /// Time for which one read of a shared line occupies its home, or a shared cache.
    pub occupancy_ns: u64,
    /// The links between nodes, as far as they are known.
    pub link: Option<Link>,
    /// Cost of a sequentially consistent fence.
    pub fence_ns: u64,
    /// The cost of a heavy fence for each running core.
    pub heavy_fence_ns_per_cpu: u64,
    /// Costs of an interrupt from one CPU to another.
    pub interrupt: Interrupt,
    /// Costs of the other ways in which an interrupt is delivered, as far as they are known.
    pub entries: Vec<Entry>,
    /// Time of an instruction of a kernel that is simulated by the lengths of its paths, in
    /// picoseconds, if that is known.
    pub instruction_ps: Option<u64>,
    /// The number of lines of a CPU's run queue that a wake from another CPU moves, there and back,
    /// at the cost of their distance. 0: [`wake_ns`](Self::wake_ns) and
    /// [`wake_latency_ns`](Self::wake_latency_ns) include them.
    pub wake_lines: u32,
    /// What threads are told that a sleep costs; `None`: what a wake costs.
    pub sleep_cost_ns: Option<u64>,
    /// The cost of threads to a program that is the kernel, if that is known.
    pub kernel: Option<Kernel>,
    /// Cost of reading the clock, or the counter of a CPU.
    pub clock_ns: u64,
    /// The largest difference between the counters of two nodes.
    pub clock_offset_ns: u64,
    /// The offset of each node's counters; if empty, chosen by the simulation's seed.
    pub clock_offsets_ns: Vec<u64>,
    /// Counters are multiples of this. 0 counts as 1.
    pub clock_tick_ns: u64,
    /// The idle states of a CPU, the deepest last.
    pub idle: Vec<Idle>,
    /// The time slice: how long a thread keeps its core while others want it.
    pub slice_ns: u64,
    /// Cost of a switch from one thread of a core to another.
    pub switch_ns: u64,
    /// The cost of a yield if no other thread wants the core; if one does, it is a switch.
    pub yield_ns: u64,
    /// The cost of a system call by itself, as part of going to sleep and waking. A call that wakes
    /// several threads pays it once.
    pub call_ns: u64,
    /// The cost of going to sleep to the sleeper, before its core is free.
    pub park_ns: u64,
    /// The cost to the waker of waking a sleeping thread.
    pub wake_ns: u64,
    /// The time from the wake until the woken thread wants its core, if that is not in an idle
    /// state.
    pub wake_latency_ns: u64,
    /// The largest random addition to the latency of each wake.
    pub wake_jitter_ns: u64,
    /// The largest random delay of each thread's start.
    pub start_jitter_ns: u64,
    /// The cost to a thread of continuing on another CPU, besides its cache misses there.
    pub migrate_ns: u64,
    /// The period at which the system balances its run queues.
    pub balance_ns: u64,
    /// Whether threads may use `store_unless`, the light half of the asymmetric fence.
    pub light: bool,
}

/// A link between two nodes, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The time for which a line occupies the link, in nanoseconds: 64 bytes divided by the
    /// bandwidth.
    pub line_ns: u64,
    /// The largest number of concurrent transfers.
    pub transfers: u32,
}

/// Cost of an interrupt between CPUs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Time that the sender is busy with the interrupt.
    pub send_ns: u64,
    /// Time from then until the receiver is interrupted, unless the topology has a time for the
    /// distance.
    pub deliver_ns: u64,
    /// Time that the receiver spends on the interrupt before it resumes its work.
    pub handle_ns: u64,
    /// The wakes of threads on other CPUs that send an interrupt.
    pub wakes: Wakes,
}

/// The wakes that send an interrupt to the CPU of the woken thread, in addition to the cost of a
/// wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakes {
    /// None: [`Machine::wake_ns`] and [`Machine::wake_latency_ns`] include it, as measured
    /// latencies do.
    #[default]
    Contained,
    /// Wakes to CPUs that run a thread. An idle CPU watches a word for wakes, as with MWAIT.
    Busy,
    /// All wakes.
    All,
}

/// An idle state of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// A CPU that has been idle for this long is in the state.
    pub after_ns: u64,
    /// The time to leave the state.
    pub exit_ns: u64,
}

impl Machine {
    /// `8s-192c`: eight sockets of 24 Broadwell cores, modelled on the E7-8890 v4 machine of the
    /// ShflLock evaluation.
    #[must_use]
    pub fn eight_sockets() -> Self {
        presets::machine("8s-192c")
    }

    /// `xeon-2s`: two sockets of 14 Broadwell cores, modelled on two E5-2680 v4.
    #[must_use]
    pub fn two_sockets() -> Self {
        presets::machine("xeon-2s")
    }

    /// The same costs with another number of sockets and cores, one hardware thread each. A socket
    /// is a NUMA node of the machine; its CPUs have the distances within a node. Hops are kept if
    /// the number of sockets is the same; otherwise all sockets are one hop apart.
    ///
    /// # Panics
    ///
    /// If the result has no core, or too many.
    #[must_use]
    pub fn shape(self, sockets: u32, cores_per_socket: u32) -> Self {
        self.nested(&[("socket", cores_per_socket), ("machine", sockets)])
    }

    /// Like [`shape`](Self::shape), with levels inside and between sockets. Each size is the number
    /// of units of the previous level, innermost first; `socket` and `machine` must be among the
    /// levels. Levels inside a socket have the costs of the socket, those outside the costs of the
    /// machine.
    ///
    /// # Panics
    ///
    /// See [`shape`](Self::shape).
    #[must_use]
    pub fn nested(self, sizes: &[(&str, u32)]) -> Self {
        let topology = self.topology.nested(sizes);
        Self { topology, clock_offsets_ns: vec![], ..self }
    }

    /// The same machine without random delays of the system, and in whole nanoseconds, for tests of
    /// exact costs.
    #[must_use]
    pub fn without_jitter(self) -> Self {
        let whole = Self { hit_rest_ps: 0, rmw_rest_ps: 0, ..self };
        Self { wake_jitter_ns: 0, start_jitter_ns: 0, ..whole }
    }

    /// The number of CPUs; hardware threads, if cores have several.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.topology.cpus()
    }

    /// The cost of a line from the cache of one CPU to that of another, in nanoseconds.
    #[must_use]
    pub fn transfer_ns(&self, from: u32, to: u32) -> u64 {
        self.topology.transfer_ns(from, to)
    }

    /// The delivery time of an interrupt from one CPU to another, in nanoseconds.
    #[must_use]
    pub fn deliver_ns(&self, from: u32, to: u32) -> u64 {
        let class = &self.topology.classes()[self.topology.class(from, to)];
        class.interrupt_ns.unwrap_or(self.interrupt.deliver_ns)
    }

    /// The NUMA node of a CPU, which the platform interface calls its socket.
    #[must_use]
    pub fn socket_of(&self, core: u32) -> u32 {
        self.topology.node_of(core)
    }

    /// The cost of a load by a CPU from the memory of its own node, in nanoseconds.
    #[must_use]
    pub fn memory_ns(&self, core: u32) -> u64 {
        self.topology.memory_ns(core, self.topology.node_of(core))
    }

    /// The cost of a load that the last-level cache serves, in nanoseconds; without a shared cache,
    /// that of a hit, which is then never used.
    #[must_use]
    pub fn cache_ns(&self) -> u64 {
        self.topology.cache_ns().unwrap_or(self.hit_ns)
    }

    /// # Panics
    ///
    /// If simulated time could stand still.
    pub(crate) fn check(&self) {
        assert!(self.hit_ns > 0 && self.rmw_ns > 0, "an access takes time");
        assert!(self.clock_ns > 0 && self.fence_ns > 0, "a clock read or a fence takes time");
        assert!(self.slice_ns > 0, "a slice takes time");
    }
}
