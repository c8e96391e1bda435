//! A machine's description: its shape and what each thing costs.
//!
//! Costs are whole nanoseconds of simulated time. Two presets carry, beside each number, where it
//! comes from:
//!
//! - **measured**: computed from published core-to-core matrices (nviennot/core-to-core-latency);
//! - **published**: stands in the cited source;
//! - **recalled**: known from the literature, not checked against its text;
//! - **estimated**: derived from numbers of a related machine, or chosen.

/// A machine to simulate. All fields are public: start from a preset and change what differs.
///
/// ```
/// use antiphon_sim::Machine;
/// let machine = Machine { slice_ns: 1_000_000, ..Machine::two_sockets() }.shape(2, 4);
/// assert_eq!(machine.cores(), 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What reports call it.
    pub name: &'static str,
    /// Sockets; cores are numbered socket by socket.
    pub sockets: u32,
    /// Cores on each socket, one hardware thread each.
    pub cores_per_socket: u32,
    /// How many neighbouring cores are close to each other in other ways than by socket: a cache
    /// that some cores of a socket share, a board of some sockets. Told to whoever asks for
    /// distances; prices know two of them, whatever stands here.
    pub levels: &'static [u32],
    /// A load or store of a line that the core holds.
    pub hit_ns: u64,
    /// A read-modify-write of a line that the core owns.
    pub rmw_ns: u64,
    /// A load of a line of which the socket's shared cache has a clean copy.
    pub llc_ns: u64,
    /// A load of a line that no cache holds.
    pub memory_ns: u64,
    /// A line from the cache of another core of the socket, or its invalidation there; whatever
    /// the access does with the line is included.
    pub local_transfer_ns: u64,
    /// The same from another socket.
    pub remote_transfer_ns: u64,
    /// Added for each further socket whose copies must be invalidated.
    pub invalidate_ns: u64,
    /// How long one read of a shared line keeps its home, or its socket's cache, from the next.
    pub occupancy_ns: u64,
    /// A sequentially consistent fence.
    pub fence_ns: u64,
    /// What a heavy fence costs for each running core. One at a time, machine-wide.
    pub heavy_fence_ns_per_cpu: u64,
    /// Reading the clock.
    pub clock_ns: u64,
    /// How long a thread keeps its core while others want it.
    pub slice_ns: u64,
    /// From one thread of a core to another.
    pub switch_ns: u64,
    /// What going to sleep costs the sleeper, before its core is free.
    pub park_ns: u64,
    /// What waking a sleeping thread costs the waker.
    pub wake_ns: u64,
    /// From there until the woken thread wants its core.
    pub wake_latency_ns: u64,
    /// The latency of each wake is that much longer at most, at random.
    pub wake_jitter_ns: u64,
    /// Each thread starts that late at most, at random.
    pub start_jitter_ns: u64,
    /// Whether threads may use `store_unless`, the light half of the asymmetric fence.
    pub light: bool,
}

impl Machine {
    /// `8s-192c`: eight sockets of 24 Broadwell cores, in the manner of the E7-8890 v4 machine of
    /// the ShflLock evaluation.
    #[must_use]
    pub const fn eight_sockets() -> Self {
        Self {
            name: "8s-192c",
            sockets: 8,
            cores_per_socket: 24,
            // Measured on Broadwell, E5-2680 v4 (38 to 51).
            local_transfer_ns: 45,
            // Estimated: three neighbours at one link (130, from the 118 to 127 measured on two-
            // socket Broadwells) and four at two links (195, the ratio of an E7-8867L), averaged.
            remote_transfer_ns: 167,
            // Estimated: two sockets answer in the shadow of the farthest one only in part.
            invalidate_ns: 10,
            ..Self::two_sockets()
        }
    }

    /// `xeon-2s`: two sockets of 14 Broadwell cores, in the manner of two E5-2680 v4.
    #[must_use]
    pub const fn two_sockets() -> Self {
        Self {
            name: "xeon-2s",
            sockets: 2,
            cores_per_socket: 14,
            levels: &[],
            // Estimated: 1.8 for a first-level load, in whole nanoseconds.
            hit_ns: 2,
            // Estimated: 8.4 measured on a later Xeon; 4.7 to 5.6 recalled for Haswell.
            rmw_ns: 9,
            // Estimated: 10.3 recalled for Haswell's shared cache, more on a large die.
            llc_ns: 22,
            // Estimated: 65 recalled for a one-socket Haswell, more with directories.
            memory_ns: 90,
            // Measured on E5-2680 v4: 45 (38 to 51) and 127 (120 to 136).
            local_transfer_ns: 45,
            remote_transfer_ns: 127,
            // Estimated.
            invalidate_ns: 10,
            occupancy_ns: 4,
            fence_ns: 9,
            // Published for an Opteron 6272: 1150 cycles an IPI at the least, 548 ns at 2.1 GHz.
            heavy_fence_ns_per_cpu: 548,
            // Estimated.
            clock_ns: 20,
            // Recalled: the base slice of Linux's EEVDF scheduler on eight CPUs or more.
            slice_ns: 3_000_000,
            // Published (measurements on Linux): 1.3 us voluntary, same core.
            switch_ns: 1_300,
            // Estimated: a system call (121 measured) and the way through the scheduler.
            park_ns: 600,
            wake_ns: 800,
            // Recalled: 2 to 5 us on bare metal, more out of deep idle states.
            wake_latency_ns: 3_000,
            // Estimated: enough to break lockstep.
            wake_jitter_ns: 300,
            start_jitter_ns: 1_000,
            light: true,
        }
    }

    /// The same costs on another number of sockets and cores.
    #[must_use]
    pub const fn shape(mut self, sockets: u32, cores_per_socket: u32) -> Self {
        self.sockets = sockets;
        self.cores_per_socket = cores_per_socket;
        self
    }

    /// The same machine without random delays of the system: for tests of exact costs.
    #[must_use]
    pub const fn without_jitter(mut self) -> Self {
        self.wake_jitter_ns = 0;
        self.start_jitter_ns = 0;
        self
    }

    /// How many cores it has.
    #[must_use]
    pub const fn cores(&self) -> u32 {
        self.sockets * self.cores_per_socket
    }

    pub(crate) const fn socket_of(&self, core: u32) -> u32 {
        core / self.cores_per_socket
    }

    /// On how many levels two cores are apart.
    pub(crate) fn distance(&self, from: u32, to: u32) -> u32 {
        let levels = self.levels.iter().copied().chain([self.cores_per_socket]);
        levels.map(|cores| u32::from(from / cores != to / cores)).sum()
    }

    /// The only place that knows how much it costs that two cores are far from each other.
    pub(crate) const fn transfer_ns(&self, from: u32, to: u32) -> u64 {
        if self.socket_of(from) == self.socket_of(to) {
            self.local_transfer_ns
        } else {
            self.remote_transfer_ns
        }
    }

    /// # Panics
    ///
    /// If simulated time could stand still, or there is no core.
    pub(crate) fn check(&self) {
        assert!(self.sockets > 0 && self.cores_per_socket > 0, "a machine has a core");
        assert!(!self.levels.contains(&0), "a level has a core");
        assert!(self.hit_ns > 0 && self.rmw_ns > 0, "an access takes time");
        assert!(self.clock_ns > 0 && self.fence_ns > 0, "a clock read or a fence takes time");
        assert!(self.slice_ns > 0, "a slice takes time");
    }
}
