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

impl Node {
    /// Whether there is an order of the two: light ones are ordered with heavy ones only.
    fn ordered(&self, other: &Self) -> bool {
        match (self.strength, other.strength) {
            _ if self.first == other.first => false,
            (Strength::Light, other) | (other, Strength::Light) => other == Strength::Heavy,
            _ => true,
        }
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

/// The nodes of the graph: those of a thread side by side, in its order.
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
    nodes.sort_unstable_by_key(|node| node.first);
    nodes
}

/// Where an access is in the coherence order of its location: after those with smaller ones. Each
/// write is followed by those that read it.
fn coherence(graph: &Graph, index: &Index, event: &Event) -> u32 {
    if event.is_write() {
        2 * u32::from(event.rank)
    } else {
        let rank = index.get(event.from).map_or(0, |stamp| graph.events[stamp].rank);
        2 * u32::from(rank) + 1
    }
}

/// Whether the last event, an access that nothing happens after, leaves the fences in one order, as
/// they were before it came.
///
/// It orders the fences that happen before it before those that happen after a later access of its
/// location. Mostly there are none of these, or one is known to be the other way round: then there
/// is no need to look at all the others.
pub(crate) fn admits(graph: &Graph, index: &Index, meta: &[Meta]) -> bool {
    let (event, known) = (graph.events.last(), meta.last().map(|meta| &meta.before));
    let (event, known) = event.zip(known).expect("there is an event");
    if event.section {
        return consistent(graph, index, meta);
    }
    let place = coherence(graph, index, event);
    let is_later = |other: &&Event| {
        let is_there = other.is_access() && other.location == event.location;
        is_there && place < coherence(graph, index, other)
    };
    let later: Vec<Id> = graph.events.iter().filter(is_later).map(|other| other.id).collect();
    let nodes = if later.is_empty() { Vec::new() } else { nodes(graph, index) };
    let follows = |node: &&Node| later.iter().any(|&id| meta[node.last].before.covers(id));
    let mut is_known = true;
    for to in nodes.iter().filter(follows) {
        for from in nodes.iter().filter(|from| known.covers(from.first) && from.ordered(to)) {
            if meta[from.last].before.covers(to.first) {
                return false;
            }
            is_known = false;
        }
    }
    is_known || consistent(graph, index, meta)
}

/// The first access after each node to each location, and the last before it.
struct Sides {
    locations: usize,
    after: Vec<u32>,
    before: Vec<u32>,
}

impl Sides {
    /// What happens after a node happens after all earlier ones of its thread, too, and what
    /// happens before it before all later ones. So each access is told to one node of each of the
    /// `threads`, and by that to the others.
    fn of(
        graph: &Graph,
        index: &Index,
        meta: &[Meta],
        nodes: &[Node],
        threads: &[&[usize]],
    ) -> Self {
        let accesses = || graph.events.iter().enumerate().filter(|(_, event)| event.is_access());
        let numbers = accesses().map(|(_, event)| usize::from(event.location) + 1);
        let locations = numbers.max().unwrap_or(0);
        let mut after = vec![u32::MAX; nodes.len() * locations];
        let mut before = vec![0; nodes.len() * locations];
        for (stamp, event) in accesses() {
            let place = coherence(graph, index, event);
            let at = |node: usize| node * locations + usize::from(event.location);
            for thread in threads {
                let is_after = |&node: &usize| meta[stamp].before.covers(nodes[node].first);
                if let Some(last) = thread.partition_point(is_after).checked_sub(1) {
                    let first = &mut after[at(thread[last])];
                    *first = place.min(*first);
                }
                let is_not_before = |&n: &usize| !meta[nodes[n].last].before.covers(event.id);
                if let Some(&first) = thread.get(thread.partition_point(is_not_before)) {
                    let last = &mut before[at(first)];
                    *last = place.max(*last);
                }
            }
        }
        for (node, next) in threads.iter().flat_map(|thread| thread.windows(2).rev()).map(pair) {
            for at in node * locations..next * locations {
                after[at] = after[at].min(after[at + locations]);
            }
        }
        for (node, next) in threads.iter().flat_map(|thread| thread.windows(2)).map(pair) {
            for at in node * locations..next * locations {
                before[at + locations] = before[at].max(before[at + locations]);
            }
        }
        Self { locations, after, before }
    }

    /// Whether an access after the node `from` comes before one of its location that is before the
    /// node `to`.
    fn order(&self, from: usize, to: usize) -> bool {
        let of = |node: usize| node * self.locations..(node + 1) * self.locations;
        let pairs = self.after[of(from)].iter().zip(&self.before[of(to)]);
        pairs.fold(false, |is, (after, before)| is | (after < before))
    }
}

fn pair(nodes: &[usize]) -> (usize, usize) {
    (nodes[0], nodes[1])
}

/// Whether the fences of `graph` can be put in one order.
pub(crate) fn consistent(graph: &Graph, index: &Index, meta: &[Meta]) -> bool {
    let nodes = nodes(graph, index);
    if nodes.len() < 2 {
        return true;
    }
    let numbers: Vec<usize> = (0..nodes.len()).collect();
    let is_same = |&a: &usize, &b: &usize| nodes[a].first.thread == nodes[b].first.thread;
    let threads: Vec<&[usize]> = numbers.chunk_by(is_same).collect();
    let sides = Sides::of(graph, index, meta, &nodes, &threads);
    let mut edges = vec![vec![false; nodes.len()]; nodes.len()];
    for (f, from) in nodes.iter().enumerate() {
        let is_after =
            |t: usize| meta[nodes[t].last].before.covers(from.first) || sides.order(f, t);
        for thread in &threads {
            // What comes before a node comes before all later ones of its thread.
            let first = thread.partition_point(|&t| !is_after(t));
            for &t in &thread[first..] {
                edges[f][t] = from.ordered(&nodes[t]);
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
