//! Names of threads, CPUs and sockets.

/// A thread of this process (on Linux the kernel's thread id). Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(pub u32);

/// A CPU, counted from 0 as the system counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpuId(pub u32);

/// A socket: CPUs whose caches are close to each other. On Linux a NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);
