//! The topology of a platform: CPUs, sockets and distances. The defaults describe one CPU.

use crate::{CpuId, SocketId};

/// The CPUs of a platform.
pub trait Topology {
    /// The number of CPUs on which threads of the process can run at the same time, as far as this
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

    /// Returns whether this machine has more than one socket. If not, no algorithm sorts by socket.
    fn numa() -> bool {
        false
    }

    /// The distance between the caches of two CPUs, in a unit of the platform; 0 is the nearest. A
    /// guess; 0 where nothing is known.
    fn distance(_: CpuId, _: CpuId) -> u32 {
        0
    }

    /// Returns whether this machine has distances to sort by.
    fn tiered() -> bool {
        Self::numa()
    }
}
