//! Routes of lines through the nodes of a machine.

use super::{Tables, Topology};

impl Topology {
    /// The nodes that a line passes from one node to another, including both ends. The route goes
    /// through a third node if the hops to it and on from it add up to the distance.
    pub(crate) fn route(&self, from: u32, to: u32) -> Vec<u32> {
        let nodes = 0..self.nodes();
        let hops = |from: u32, to: u32| self.hops_between_nodes(from, to);
        let between = |&stop: &u32| {
            let (there, on) = (hops(from, stop), hops(stop, to));
            there > 0 && on > 0 && there + on == hops(from, to)
        };
        let stops: Vec<u32> = nodes.filter(between).collect();
        if stops.is_empty() {
            return vec![from, to];
        }
        // Different pairs use different ones of the equally good nodes.
        let stop = stops[(from + to) as usize % stops.len()];
        let mut route = self.route(from, stop);
        route.extend(&self.route(stop, to)[1..]);
        route
    }

    /// Hops between two nodes: 0 from a node to itself; 1 to another node if hops are not counted,
    /// or both nodes are in one unit between which hops are counted.
    fn hops_between_nodes(&self, from: u32, to: u32) -> u32 {
        let Tables { levels, hops, nodes, .. } = &*self.0;
        let unit = |node: u32| {
            let below = levels.len().checked_sub(2)?;
            Some(levels[below].units[nodes[node as usize] as usize] as usize)
        };
        match unit(from).zip(unit(to)) {
            _ if from == to => 0,
            Some((one, other)) if one != other && !hops.is_empty() => hops[one][other],
            _ => 1,
        }
    }
}
