//! Where the caller runs, and what lies near it. The defaults are those of one CPU.

use crate::{CpuId, SocketId};

/// The CPUs of a platform.
pub trait Topology {
    /// How many CPUs the threads of the process can run on at the same time, as far as this
    /// platform can tell; at least 1.
    fn cpus() -> u32 {
        1
    }

    /// The CPU that the caller runs on. May be stale at once.
    fn cpu() -> CpuId {
        CpuId(0)
    }

    /// The socket (NUMA node) that the caller runs on. May change between lock and unlock.
    fn socket() -> SocketId {
        SocketId(0)
    }

    /// Whether this machine has more than one socket: where it has not, no algorithm sorts by
    /// socket.
    fn numa() -> bool {
        false
    }

    /// How far the caches of two CPUs are from each other: 0 is as near as can be, and larger is
    /// farther. The unit is the platform's; a guess, 0 where nothing is known.
    fn distance(_: CpuId, _: CpuId) -> u32 {
        0
    }

    /// Whether there are distances to sort by on this machine.
    fn tiered() -> bool {
        Self::numa()
    }
}
