//! The counters of CPUs: all count at one rate, and those of each node have a constant offset.
//!
//! Published figures of machines give only the largest difference of two counters. So if a
//! machine's file doesn't have each node's offset, the seed chooses it within that bound.

use crate::Machine;
use crate::random::Random;

/// A random sequence separate from those of the world and the threads, so that no run depends on
/// offsets that it doesn't read.
const STREAM: u64 = u64::MAX;

/// The counters of a machine.
pub(crate) struct Clocks {
    /// The offset of each node's counters from simulated time.
    ahead_ns: Vec<u64>,
    tick_ns: u64,
}

impl Clocks {
    pub(crate) fn new(machine: &Machine, seed: u64) -> Self {
        let mut random = Random::new(seed, STREAM);
        let any = |_| random.up_to(machine.clock_offset_ns);
        let ahead_ns = match &machine.clock_offsets_ns[..] {
            [] => (0..machine.topology.nodes()).map(any).collect(),
            offsets_ns => offsets_ns.to_vec(),
        };
        Self { ahead_ns, tick_ns: machine.clock_tick_ns.max(1) }
    }

    /// The counter of a CPU of that node, in nanoseconds.
    pub(crate) fn read_ns(&self, node: u32, now_ns: u64) -> u64 {
        let ns = now_ns + self.ahead_ns[node as usize];
        ns - ns % self.tick_ns
    }
}
