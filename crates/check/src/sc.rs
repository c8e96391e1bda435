//! Sequentially consistent fences: is there a total order of them?
//!
//! RC11's axiom *psc*, for fences alone: fence F comes before fence G if F happens before G, or if
//! F happens before an access A, A is ordered before an access B of the same location by
//! coherence (reads-from, modification order, from-read), and B happens before G. This relation
//! must have no cycle.
//!
//! A `heavy_fence` is such a fence. A `store_unless` section is one node too, whose accesses count
//! as after it *and* before it, and which is ordered with heavy fences only: either the fence
//! comes first and the section's test sees the flag, or the section comes first and its store is
//! seen after the fence. So is a `light_fence`, without accesses of its own.

use std::sync::atomic::Ordering;

use crate::clock::Id;
use crate::graph::{Event, Graph, Index, Kind, Meta};

#[derive(Clone, Copy, PartialEq)]
enum Strength {
    Light,
    Fence,
    Heavy,
}

struct Node {
    strength: Strength,
    /// What happens after this happens after the node.
    first: Id,
    /// What happens before this happens before the node. A stamp.
    last: usize,
}

/// What matters of the accesses of one location on one side of a node: the earliest place after
/// it, or the latest place before it, and whether a write takes or a read reads from that place.
#[derive(Clone, Copy)]
struct Edge {
    place: u16,
    write: bool,
    read: bool,
}

impl Edge {
    /// Of no access, after a node.
    const LATE: Self = Self { place: u16::MAX, write: false, read: false };
    /// Of no access, before a node.
    const EARLY: Self = Self { place: 0, write: false, read: false };

    /// Takes in an access; one that is `closer` to the edge than all so far moves it.
    fn add(&mut self, place: u16, event: &Event, closer: bool) {
        if closer {
            *self = Self { place, write: false, read: false };
        }
        if place == self.place {
            self.write |= event.is_write();
            self.read |= event.is_read();
        }
    }

    /// Whether an access at this edge, after a node, is ordered before one at the other edge,
    /// before a node.
    fn precedes(self, before: Self) -> bool {
        self.place < before.place || (self.place == before.place && self.write && before.read)
    }
}

/// Whether `event` takes part in the total order.
pub(crate) fn is_node(event: &Event) -> bool {
    match event.kind {
        Kind::Fence => event.order == Ordering::SeqCst,
        Kind::Heavy | Kind::Light => true,
        Kind::Read => event.section,
        _ => false,
    }
}

fn nodes(graph: &Graph, index: &Index) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (stamp, event) in graph.events.iter().enumerate().filter(|(_, event)| is_node(event)) {
        let (strength, last) = match event.kind {
            Kind::Heavy => (Strength::Heavy, stamp),
            Kind::Fence => (Strength::Fence, stamp),
            Kind::Light => (Strength::Light, stamp),
            _ => {
                let write = Id { index: event.id.index + 1, ..event.id };
                let last =
                    index.get(write).filter(|&last| graph.events[last].section).unwrap_or(stamp);
                (Strength::Light, last)
            }
        };
        nodes.push(Node { strength, first: event.id, last });
    }
    nodes
}

/// The place in modification order that an access takes or reads from.
fn place(graph: &Graph, index: &Index, event: &Event) -> u16 {
    if event.is_write() {
        event.rank
    } else {
        index.get(event.from).map_or(0, |stamp| graph.events[stamp].rank)
    }
}

/// Whether the fences of `graph` can be put in one order.
pub(crate) fn consistent(graph: &Graph, index: &Index, meta: &[Meta]) -> bool {
    let nodes = nodes(graph, index);
    if nodes.len() < 2 {
        return true;
    }
    let accesses = graph.events.iter().filter(|event| event.is_access());
    let locations = accesses.map(|event| usize::from(event.location) + 1).max().unwrap_or(0);
    let mut after = vec![Edge::LATE; nodes.len() * locations];
    let mut before = vec![Edge::EARLY; nodes.len() * locations];
    for (stamp, event) in graph.events.iter().enumerate().filter(|(_, event)| event.is_access()) {
        let place = place(graph, index, event);
        for (n, node) in nodes.iter().enumerate() {
            let at = n * locations + usize::from(event.location);
            if meta[stamp].before.covers(node.first) {
                let closer = place < after[at].place;
                after[at].add(place, event, closer);
            }
            if meta[node.last].before.covers(event.id) {
                let closer = place > before[at].place;
                before[at].add(place, event, closer);
            }
        }
    }
    let mut edges = vec![vec![false; nodes.len()]; nodes.len()];
    for (f, from) in nodes.iter().enumerate() {
        for (t, to) in nodes.iter().enumerate() {
            let ordered = match (from.strength, to.strength) {
                (Strength::Light, other) | (other, Strength::Light) => other == Strength::Heavy,
                _ => true,
            };
            if f != t && ordered {
                let by_location =
                    |l: usize| after[f * locations + l].precedes(before[t * locations + l]);
                edges[f][t] =
                    meta[to.last].before.covers(from.first) || (0..locations).any(by_location);
            }
        }
    }
    acyclic(&mut edges)
}

/// Whether no node reaches itself. `edges` becomes the relation's transitive closure.
fn acyclic(edges: &mut [Vec<bool>]) -> bool {
    for via in 0..edges.len() {
        let onward = edges[via].clone();
        for from in edges.iter_mut().filter(|from| from[via]) {
            from.iter_mut().zip(&onward).for_each(|(to, on)| *to |= on);
        }
    }
    (0..edges.len()).all(|node| !edges[node][node])
}
