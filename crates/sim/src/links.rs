//! The interconnect: links that lines pass between nodes.
//!
//! If a machine's links are unknown, there is a link from each node to each other one, on which
//! lines leave one [`occupancy_ns`](crate::Machine::occupancy_ns) apart. With a
//! [`Link`](crate::Link), there are links only between adjacent nodes, longer routes share the
//! links on their way, and a link has a bounded number of concurrent transfers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Machine;

/// A link, in one direction.
#[derive(Default)]
struct Way {
    /// The time at which the next line can leave.
    free_ns: u64,
    /// The end times of the last transfers, as many as may be concurrent.
    ends_ns: BinaryHeap<Reverse<u64>>,
}

impl Way {
    /// The time at which one more transfer may begin.
    fn begin_ns(&self, most: usize) -> u64 {
        let full = self.ends_ns.len() >= most;
        let first_ns = self.ends_ns.peek().filter(|_| full).map_or(0, |&Reverse(end_ns)| end_ns);
        self.free_ns.max(first_ns)
    }
}

/// The links of a machine.
pub(crate) struct Links {
    ways: Vec<Way>,
    /// The links of each route, by source node and then by destination node.
    routes: Vec<Box<[u32]>>,
    nodes: u32,
    line_ns: u64,
    /// The largest number of concurrent transfers on a link; `None` for no limit.
    most: Option<usize>,
}

impl Links {
    pub(crate) fn new(machine: &Machine) -> Self {
        let nodes = machine.topology.nodes();
        let number = |from: u32, to: u32| from * nodes + to;
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let routes = pairs.map(|(from, to)| match machine.link {
            None => Box::from([number(from, to)]),
            Some(_) => {
                let stops = machine.topology.route(from, to);
                stops.windows(2).map(|stop| number(stop[0], stop[1])).collect()
            }
        });
        let line_ns = machine.link.map_or(machine.occupancy_ns, |link| link.line_ns);
        let most = machine.link.map(|link| link.transfers as usize);
        let ways = (0..nodes * nodes).map(|_| Way::default()).collect();
        Self { ways, routes: routes.collect(), nodes, line_ns, most }
    }

    /// Sends a line from one node to another, not before `begin_ns`, for a transfer of `takes_ns`;
    /// returns the time at which it begins. `None` if the line stays on its node, which has no
    /// limit.
    pub(crate) fn pass(&mut self, from: u32, to: u32, begin_ns: u64, takes_ns: u64) -> Option<u64> {
        if from == to {
            return None;
        }
        let Self { ways, routes, nodes, line_ns, most } = self;
        let route = &routes[(from * *nodes + to) as usize];
        let free_ns = |&way: &u32| ways[way as usize].begin_ns(most.unwrap_or(usize::MAX));
        let begin_ns = route.iter().map(free_ns).fold(begin_ns, u64::max);
        for &way in route {
            let way = &mut ways[way as usize];
            way.free_ns = begin_ns + *line_ns;
            if let Some(most) = *most {
                if way.ends_ns.len() >= most {
                    way.ends_ns.pop();
                }
                way.ends_ns.push(Reverse(begin_ns + takes_ns));
            }
        }
        Some(begin_ns)
    }
}
