//! The counters of CPUs: all count at one rate, and those of a node are ahead by a constant.
//!
//! The published figures of machines say only by how much two counters differ at most, so where a
//! machine's file doesn't have each node's offset, the seed chooses it within that bound.

use crate::Machine;
use crate::random::Random;

/// Apart from the world's and the threads' sequences, so that no run depends on offsets that it
/// doesn't read.
const STREAM: u64 = u64::MAX;

/// The counters of a machine.
pub(crate) struct Clocks {
    /// How far each node's counters are ahead of simulated time.
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

    /// The reading of a CPU of that node.
    pub(crate) fn read_ns(&self, node: u32, now_ns: u64) -> u64 {
        let ns = now_ns + self.ahead_ns[node as usize];
        ns - ns % self.tick_ns
    }
}
