//! The interconnect: lines between nodes pass the links on their way.
//!
//! Where nothing is known of a machine's links, there is one from each node to each, and lines
//! leave on it one [`occupancy_ns`](crate::Machine::occupancy_ns) apart. A [`Link`](crate::Link)
//! says more: then there is one only where nothing lies between, further ways share those of which
//! they are made, and a link has a bounded number of transfers under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Machine;

/// A link, in one direction.
#[derive(Default)]
struct Way {
    /// When the next line can leave.
    free_ns: u64,
    /// When the transfers end that were under way last, as many as there may be at a time.
    ends_ns: BinaryHeap<Reverse<u64>>,
}

impl Way {
    /// When one more transfer may begin.
    fn begin_ns(&self, most: usize) -> u64 {
        let full = self.ends_ns.len() >= most;
        let first_ns = self.ends_ns.peek().filter(|_| full).map_or(0, |&Reverse(end_ns)| end_ns);
        self.free_ns.max(first_ns)
    }
}

/// The links of a machine.
pub(crate) struct Links {
    ways: Vec<Way>,
    /// By node of departure, then of arrival: the links that are passed.
    routes: Vec<Box<[u32]>>,
    nodes: u32,
    line_ns: u64,
    /// Transfers on a link at a time; `None`: any number.
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

    /// Sends a line from a node to another, not before `begin_ns`, for a transfer of `takes_ns`;
    /// returns when it begins. `None`: it stays on its node, which has room for many at a time.
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
