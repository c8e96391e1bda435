//! The interconnect: between two nodes, one line at a time.

use crate::Machine;

/// When each way between two nodes is free.
pub(crate) struct Links {
    /// By node of departure, then of arrival.
    free_ns: Vec<u64>,
    nodes: u32,
    line_ns: u64,
}

impl Links {
    pub(crate) fn new(machine: &Machine) -> Self {
        let nodes = machine.topology.nodes();
        let free_ns = vec![0; (nodes * nodes) as usize];
        Self { free_ns, nodes, line_ns: machine.occupancy_ns }
    }

    /// Sends a line from a node to another, not before `begin_ns`; returns when it leaves.
    /// `None`: it stays on its node, which has room for many at a time.
    pub(crate) fn pass(&mut self, from: u32, to: u32, begin_ns: u64) -> Option<u64> {
        if from == to {
            return None;
        }
        let free_ns = &mut self.free_ns[(from * self.nodes + to) as usize];
        let begin_ns = begin_ns.max(*free_ns);
        *free_ns = begin_ns + self.line_ns;
        Some(begin_ns)
    }
}
