//! The CPU and the NUMA node of the caller, and the number of nodes.
//!
//! Neither query enters the kernel: the C library answers `sched_getcpu` from the thread's rseq
//! area where it has registered one (glibc 2.35 and later), otherwise by the vDSO; `getcpu`, which
//! also returns the node, always uses the vDSO. The rseq area is not read directly: only a symbol
//! of glibc 2.35 gives its location, and a library that must load on 2.31 can't refer to that
//! symbol, not even weakly, because linkers mark the version as required all the same.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{CpuId, SocketId};

use crate::{pretend, sys, thread};

// SAFETY: the signature of `getcpu(3)`.
unsafe extern "C" {
    /// glibc 2.29 and later.
    fn getcpu(cpu: *mut c_uint, node: *mut c_uint) -> c_int;
}

const UNKNOWN: u32 = 0;
const ONE: u32 = 1;
const SEVERAL: u32 = 2;

static NODES: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The CPU that the caller runs on. May be stale at once.
pub(crate) fn cpu() -> CpuId {
    // SAFETY: takes no arguments. It fails only on kernels without the call; then -1 becomes 0
    // here.
    CpuId(sys::errno_kept(|| unsafe { libc::sched_getcpu() }).max(0).cast_unsigned())
}

/// The NUMA node that the caller runs on; always 0 on a machine with one node. May be stale at
/// once.
pub(crate) fn socket() -> SocketId {
    SocketId(if numa() { node() } else { 0 })
}

/// Returns whether this machine has several NUMA nodes with CPUs. Reads sysfs once; `false` without
/// it.
#[inline]
pub(crate) fn numa() -> bool {
    if let Some(machine) = pretend::machine() {
        return machine.sockets > 1;
    }
    // Relaxed: all threads find the same answer.
    match NODES.load(Relaxed) {
        UNKNOWN => count(),
        nodes => nodes != ONE,
    }
}

fn node() -> u32 {
    if let Some(machine) = pretend::machine() {
        return thread::current().0 % u32::from(machine.sockets);
    }
    let (mut cpu, mut node) = (0, 0);
    // SAFETY: both are writable locals. The call fails only on kernels without it; then both stay
    // 0.
    sys::errno_kept(|| unsafe { getcpu(&raw mut cpu, &raw mut node) });
    node
}

/// Reads sysfs and keeps the answer; returns whether there are several nodes.
#[cold]
#[inline(never)]
pub(crate) fn count() -> bool {
    let mut buffer = [0; 128];
    let list = sys::read_file(c"/sys/devices/system/node/has_cpu", &mut buffer);
    let several = list.is_some_and(more_than_one);
    let nodes = if several { SEVERAL } else { ONE };
    // The first answer is kept: a lock that counts its readers by socket relies on all threads
    // having the same answer, and the file may fail to open for one of them. Relaxed, as in `numa`.
    match NODES.compare_exchange(UNKNOWN, nodes, Relaxed, Relaxed) {
        Ok(_) => several,
        Err(known) => known != ONE,
    }
}

/// Returns whether a list such as `0-3,8` has more than one number. A single number has no
/// separator.
fn more_than_one(list: &[u8]) -> bool {
    list.iter().any(|byte| matches!(byte, b'-' | b','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_list() {
        assert!(!more_than_one(b"") && !more_than_one(b"0\n") && !more_than_one(b"12\n"));
        assert!(more_than_one(b"0-1\n") && more_than_one(b"0,2\n"));
    }

    #[test]
    fn one_node_is_node_zero() {
        assert!(numa() || socket() == SocketId(0));
    }
}
