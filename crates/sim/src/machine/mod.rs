//! A machine's description: its shape and what each thing costs.
//!
//! Machines are data: `machines/*.toml` in this crate, or a file of any user. Each number there
//! says where it comes from, and how well it is known:
//!
//! - **measured**: computed from measurements that are cited;
//! - **published**: stands in the cited source;
//! - **recalled**: known from the literature, not checked against its text;
//! - **estimated**: derived from numbers of a related machine, or chosen.
//!
//! Costs are whole nanoseconds of simulated time; what stands in a file is rounded to them. Of an
//! access that hits the rest is kept: it is a large part of so short a time.

mod file;
mod kernel;
mod presets;
mod topology;

pub use file::{Description, Kind, Number, Unit, Wrong};
pub use kernel::Kernel;
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
    /// The CPUs, and what a line costs between any two of them.
    pub topology: Topology,
    /// A load or store of a line that the core holds.
    pub hit_ns: u64,
    /// Correction of `hit_ns`, in picoseconds; negative if `hit_ns` is too large. Each thread adds
    /// up the difference and corrects its time now and then.
    pub hit_rest_ps: i64,
    /// From one look of a spinning waiter to the next: what it pauses. 0: it looks as soon as its
    /// line has changed.
    pub look_ns: u64,
    /// A read-modify-write of a line that the core owns.
    pub rmw_ns: u64,
    /// See `hit_rest_ps`.
    pub rmw_rest_ps: i64,
    /// Added for each further last cache whose copies must be invalidated.
    pub invalidate_ns: u64,
    /// The least that a write of a line costs of which others have copies, however near they are:
    /// where no directory knows which caches have them, all are asked. 0 where one does.
    pub shared_write_ns: u64,
    /// How long one read of a shared line keeps its home, or a shared cache, from the next.
    pub occupancy_ns: u64,
    /// The links between nodes, as far as they are known.
    pub link: Option<Link>,
    /// A sequentially consistent fence.
    pub fence_ns: u64,
    /// The cost of a heavy fence for each running core.
    pub heavy_fence_ns_per_cpu: u64,
    /// An interrupt that one CPU sends to another.
    pub interrupt: Interrupt,
    /// The cost of threads to a program that is the kernel, if that is known.
    pub kernel: Option<Kernel>,
    /// Reading the clock, or the counter of a CPU.
    pub clock_ns: u64,
    /// The counters of two nodes differ by that much at most.
    pub clock_offset_ns: u64,
    /// How far each node's counters are ahead; empty: any, by the simulation's seed.
    pub clock_offsets_ns: Vec<u64>,
    /// Counters are multiples of this. 0 counts as 1.
    pub clock_tick_ns: u64,
    /// How deep an idle CPU sleeps, the longest idle last.
    pub idle: Vec<Idle>,
    /// How long a thread keeps its core while others want it.
    pub slice_ns: u64,
    /// From one thread of a core to another.
    pub switch_ns: u64,
    /// The cost of a yield if no other thread wants the core; if one does, it is a switch.
    pub yield_ns: u64,
    /// The cost of a call of the system by itself: the part of it in going to sleep and waking. A
    /// call that wakes several pays that once.
    pub call_ns: u64,
    /// The cost of going to sleep to the sleeper, before its core is free.
    pub park_ns: u64,
    /// The cost to the waker of waking a sleeping thread.
    pub wake_ns: u64,
    /// From there until the woken thread wants its core, if that is not in an idle state.
    pub wake_latency_ns: u64,
    /// The latency of each wake is longer by at most this, at random.
    pub wake_jitter_ns: u64,
    /// Each thread starts late by at most this, at random.
    pub start_jitter_ns: u64,
    /// The cost to a thread of continuing on another CPU, beside the lines that it misses there.
    pub migrate_ns: u64,
    /// How often the system evens out its run queues.
    pub balance_ns: u64,
    /// Whether threads may use `store_unless`, the light half of the asymmetric fence.
    pub light: bool,
}

/// A link between two nodes, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// How long a line keeps it from the next, in nanoseconds: 64 bytes by its bandwidth.
    pub line_ns: u64,
    /// Transfers under way on it at a time.
    pub transfers: u32,
}

/// Cost of an interrupt between CPUs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Time that the sender is busy with it.
    pub send_ns: u64,
    /// Time from then until the receiver is interrupted, unless the distance has a time of its own.
    pub deliver_ns: u64,
    /// Time that the receiver spends on it before it resumes its work.
    pub handle_ns: u64,
    /// Which wakes of threads on other CPUs send an interrupt.
    pub wakes: Wakes,
}

/// Which wakes send an interrupt to the CPU of the woken thread, on top of what wakes cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakes {
    /// None: what [`Machine::wake_ns`] and [`Machine::wake_latency_ns`] say contains it, as
    /// measured latencies do.
    #[default]
    Contained,
    /// Wakes to CPUs that run a thread. An idle CPU watches a word for wakes, as with MWAIT.
    Busy,
    /// All.
    All,
}

/// An idle state of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// A CPU that is idle for that long is in it.
    pub after_ns: u64,
    /// How long it then takes to run again.
    pub exit_ns: u64,
}

impl Machine {
    /// `8s-192c`: eight sockets of 24 Broadwell cores, in the manner of the E7-8890 v4 machine of
    /// the ShflLock evaluation.
    #[must_use]
    pub fn eight_sockets() -> Self {
        presets::machine("8s-192c")
    }

    /// `xeon-2s`: two sockets of 14 Broadwell cores, in the manner of two E5-2680 v4.
    #[must_use]
    pub fn two_sockets() -> Self {
        presets::machine("xeon-2s")
    }

    /// The same costs on another number of sockets and cores, one hardware thread each. A socket is
    /// a NUMA node of the machine; what lies within it is as far apart as the node's CPUs. Hops are
    /// kept if the number of sockets is; otherwise all sockets are one hop apart.
    ///
    /// # Panics
    ///
    /// If there is no core then, or too many.
    #[must_use]
    pub fn shape(self, sockets: u32, cores_per_socket: u32) -> Self {
        self.nested(&[("socket", cores_per_socket), ("machine", sockets)])
    }

    /// Like [`shape`](Self::shape), with levels inside and between sockets: how many units of the
    /// level before each has, innermost first. `socket` and `machine` must be among them. Levels
    /// inside a socket cost what it does, those outside what the machine does.
    ///
    /// # Panics
    ///
    /// See `shape`.
    #[must_use]
    pub fn nested(self, sizes: &[(&str, u32)]) -> Self {
        let topology = self.topology.nested(sizes);
        Self { topology, clock_offsets_ns: vec![], ..self }
    }

    /// The same machine without random delays of the system, and in whole nanoseconds: for tests of
    /// exact costs.
    #[must_use]
    pub fn without_jitter(self) -> Self {
        let whole = Self { hit_rest_ps: 0, rmw_rest_ps: 0, ..self };
        Self { wake_jitter_ns: 0, start_jitter_ns: 0, ..whole }
    }

    /// How many CPUs it has; hardware threads, if its cores have several.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.topology.cpus()
    }

    /// Cost of a line from the cache of one CPU to another's, in nanoseconds.
    #[must_use]
    pub fn transfer_ns(&self, from: u32, to: u32) -> u64 {
        self.topology.transfer_ns(from, to)
    }

    /// How long an interrupt is on its way from one CPU to another, in nanoseconds.
    #[must_use]
    pub fn deliver_ns(&self, from: u32, to: u32) -> u64 {
        let class = &self.topology.classes()[self.topology.class(from, to)];
        class.interrupt_ns.unwrap_or(self.interrupt.deliver_ns)
    }

    /// The NUMA node of a CPU: what the seam calls its socket.
    #[must_use]
    pub fn socket_of(&self, core: u32) -> u32 {
        self.topology.node_of(core)
    }

    /// A load by a CPU from the memory of its own node, in nanoseconds.
    #[must_use]
    pub fn memory_ns(&self, core: u32) -> u64 {
        self.topology.memory_ns(core, self.topology.node_of(core))
    }

    /// A load that the last cache answers; where none is shared, a hit: nothing asks.
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
