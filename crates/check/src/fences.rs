//! Sequentially consistent fences: checks that there is a total order of them.
//!
//! RC11's axiom *psc*, for fences alone: fence F comes before fence G if F happens before G, or if
//! F happens before an access A, A is ordered before an access B of the same location by
//! coherence (reads-from, modification order, from-read), and B happens before G. This relation
//! must have no cycle.
//!
//! A `heavy_fence` is such a fence. A `store_unless` section is also one node, whose accesses count
//! as both after and before it. It is ordered only with heavy fences: either the fence comes first
//! and the section's test sees the flag, or the section comes first and its store is visible after
//! the fence. A `light_fence` is such a node without accesses.
//!
//! The relation is updated with each event. Nothing happens after an event that takes place now, so
//! a new node comes before no other; a new access orders the nodes that happen before it before the
//! nodes that happen after a later access of its location. Existing pairs stay: the places of
//! accesses move, but their order does not. `psc.rs` computes the axiom directly as stated here,
//! and the tests compare the two.

use std::sync::atomic::Ordering;

use crate::clock::{Clock, Id};
use crate::graph::{Event, Kind, Meta};
use crate::location::{Access, Locations};

#[derive(Clone, Copy, PartialEq)]
enum Strength {
    Light,
    Fence,
    Heavy,
}

#[derive(Clone)]
struct Node {
    strength: Strength,
    /// All events that happen after this one happen after the node.
    first: Id,
    /// The events that happen before the node.
    before: Clock,
}

/// A set of nodes, one bit each.
type Set = Vec<u64>;

/// Edges from each of a set of nodes of one strength to each of another set.
struct Edges {
    from: Set,
    to: Set,
}

/// The events that have taken place so far.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a> {
    pub(crate) locations: &'a Locations,
    /// The facts about each event, by stamp.
    pub(crate) meta: &'a [Meta],
}

/// The nodes of an execution so far, and their order.
#[derive(Default)]
pub(crate) struct Fences {
    nodes: Vec<Node>,
    /// Number of words of a set.
    words: usize,
    /// For each node, the set of all nodes that come after it, directly or indirectly.
    after: Vec<u64>,
    /// Whether any node is light.
    has_light: bool,
    /// Whether a node comes before itself.
    is_broken: bool,
}

/// Returns whether `event` is part of the total order.
pub(crate) fn is_node(event: &Event) -> bool {
    match event.kind {
        Kind::Fence => event.order == Ordering::SeqCst,
        Kind::Heavy | Kind::Light => true,
        Kind::Read => event.section,
        _ => false,
    }
}

fn has(set: &[u64], node: usize) -> bool {
    set[node / 64] >> (node % 64) & 1 == 1
}

fn add(set: &mut [u64], node: usize) {
    set[node / 64] |= 1 << (node % 64);
}

fn join(set: &mut [u64], other: &[u64]) {
    set.iter_mut().zip(other).for_each(|(mine, theirs)| *mine |= theirs);
}

fn includes(all: &[u64], some: &[u64]) -> bool {
    all.iter().zip(some).all(|(all, some)| some & !all == 0)
}

fn meet(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).fold(0, |both, (one, other)| both | one & other) != 0
}

impl Fences {
    /// Removes all nodes, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.words = 1;
        self.after.clear();
        self.has_light = false;
        self.is_broken = false;
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there is no total order of the nodes.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns whether `known` covers any node.
    pub(crate) fn any_in(&self, known: &Clock) -> bool {
        self.nodes.iter().any(|node| known.covers(node.first))
    }

    /// Becomes a copy of `other`, and keeps the memory.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.nodes.clone_from(&other.nodes);
        self.words = other.words;
        self.after.clone_from(&other.after);
        self.has_light = other.has_light;
        self.is_broken = other.is_broken;
    }

    /// Adds `event`, which takes place now, and is not in `past` yet. `access` is its access, if it
    /// is one; `before` has all events that happen before it, including itself.
    pub(crate) fn take(
        &mut self,
        event: &Event,
        access: Option<&Access>,
        before: &Clock,
        past: Past<'_>,
    ) {
        if is_node(event) {
            self.take_node(event, access, before, past);
        }
        let Some(access) = access.filter(|_| !self.nodes.is_empty()) else { return };
        if event.section && access.is_write() {
            self.end_section(event, access, past);
        }
        let edges = self.edges(event.location, access, before, past.locations);
        self.insert(&edges);
    }

    /// Returns whether the nodes stay in order with `event`, an access that is not part of a
    /// section.
    pub(crate) fn admit(
        &self,
        event: &Event,
        access: &Access,
        before: &Clock,
        locations: &Locations,
    ) -> bool {
        !self.closes(&self.edges(event.location, access, before, locations))
    }

    /// Adds a node, which comes before no other: nothing happens after it yet.
    fn take_node(
        &mut self,
        event: &Event,
        access: Option<&Access>,
        before: &Clock,
        past: Past<'_>,
    ) {
        let strength = match event.kind {
            Kind::Heavy => Strength::Heavy,
            Kind::Fence => Strength::Fence,
            _ => Strength::Light,
        };
        let mut known = *before;
        for (number, location) in past.locations.all().iter().enumerate() {
            // The half of a section is before its own node.
            let own = access.filter(|_| usize::from(event.location) == number);
            if own.is_none() && before.includes(&location.extent) {
                // All accesses of the location happen before the node anyway.
                continue;
            }
            let there = location.accesses.iter().filter(|access| before.covers(access.id));
            let last = there.chain(own).map(|access| access.place).max().unwrap_or(0);
            for access in location.accesses.iter().filter(|access| access.place < last) {
                // A known access has already added all that happens before it.
                if !known.covers(access.id) {
                    known.join(&past.meta[access.stamp as usize].before);
                }
            }
        }
        let number = self.nodes.len();
        if number == self.words * 64 {
            self.widen();
        }
        let is_before = |node: &Node| known.covers(node.first) && ordered(node.strength, strength);
        let from = self.select(is_before);
        for (node, after) in self.after.chunks_exact_mut(self.words).enumerate() {
            if has(&from, node) || meet(after, &from) {
                add(after, number);
            }
        }
        self.after.resize(self.after.len() + self.words, 0);
        self.has_light |= strength == Strength::Light;
        self.nodes.push(Node { strength, first: event.id, before: *before });
    }

    /// Adds the store of a section, which is before the section's node, as its test is.
    fn end_section(&mut self, event: &Event, access: &Access, past: Past<'_>) {
        let is_own = |node: &Node| node.first == event.before();
        let own = self.nodes.iter().rposition(is_own).expect("a section begins with its test");
        let mut known = Clock::default();
        let accesses = &past.locations[event.location].accesses;
        for earlier in accesses.iter().filter(|earlier| earlier.place < access.place) {
            known.join(&past.meta[earlier.stamp as usize].before);
        }
        self.nodes[own].before.include(event.id);
        let is_before = |node: &Node| {
            known.covers(node.first) && ordered(node.strength, self.nodes[own].strength)
        };
        let from = self.select(is_before);
        let mut to = vec![0; self.words];
        add(&mut to, own);
        self.insert(&[Edges { from, to }]);
    }

    /// The edges that a new access adds; no event happens after it yet.
    fn edges(
        &self,
        location: u16,
        access: &Access,
        before: &Clock,
        locations: &Locations,
    ) -> Vec<Edges> {
        // A write makes room for itself: the access in its place moves behind it.
        let place = if access.is_write() { access.place } else { access.place + 1 };
        let mut later = Clock::ALL;
        let accesses = &locations[location].accesses;
        for access in accesses.iter().filter(|access| access.place >= place) {
            later.restrict(access.id);
        }
        let follows = |node: &Node| later.touches(&node.before);
        if later == Clock::ALL || !self.nodes.iter().any(follows) || !self.any_in(before) {
            return Vec::new();
        }
        let of = |strength: Strength| {
            let is_from = |node: &Node| {
                (!self.has_light || node.strength == strength) && before.covers(node.first)
            };
            let is_to = |node: &Node| ordered(strength, node.strength) && follows(node);
            Edges { from: self.select(is_from), to: self.select(is_to) }
        };
        // Without light nodes, strengths make no difference.
        let strengths: &[Strength] = if self.has_light {
            &[Strength::Light, Strength::Fence, Strength::Heavy]
        } else {
            &[Strength::Fence]
        };
        let edges = strengths.iter().map(|&strength| of(strength));
        edges.filter(|edges| !self.is_known(edges)).collect()
    }

    fn is_known(&self, Edges { from, to }: &Edges) -> bool {
        let mut from = (0..self.nodes.len()).filter(|&node| has(from, node));
        from.all(|node| includes(self.row(node), to))
    }

    fn select(&self, is_in: impl Fn(&Node) -> bool) -> Set {
        let mut set = vec![0; self.words];
        for (number, node) in self.nodes.iter().enumerate() {
            if is_in(node) {
                add(&mut set, number);
            }
        }
        set
    }

    fn row(&self, node: usize) -> &[u64] {
        &self.after[node * self.words..(node + 1) * self.words]
    }

    /// The nodes of `to`, and all nodes that come after them.
    fn onward(&self, to: &[u64]) -> Set {
        let mut all = to.to_vec();
        for node in (0..self.nodes.len()).filter(|&node| has(to, node)) {
            join(&mut all, self.row(node));
        }
        all
    }

    /// Returns whether the new `edges` close a cycle.
    fn closes(&self, edges: &[Edges]) -> bool {
        match edges {
            [] => return false,
            [edges] => return meet(&self.onward(&edges.to), &edges.from),
            _ => {}
        }
        let onward: Vec<Set> = edges.iter().map(|edges| self.onward(&edges.to)).collect();
        // Each starting node of an edge set leads to all its end nodes, and from there to starting
        // nodes of other sets.
        let leads = |one: usize, other: usize| meet(&onward[one], &edges[other].from);
        let mut reached = vec![vec![false; edges.len()]; edges.len()];
        for (one, row) in reached.iter_mut().enumerate() {
            row.iter_mut().enumerate().for_each(|(other, is)| *is = leads(one, other));
        }
        !acyclic(&mut reached)
    }

    fn insert(&mut self, edges: &[Edges]) {
        self.is_broken |= self.closes(edges);
        for Edges { from, to } in edges {
            let onward = self.onward(to);
            for (node, after) in self.after.chunks_exact_mut(self.words).enumerate() {
                if has(from, node) || meet(after, from) {
                    join(after, &onward);
                }
            }
        }
    }

    /// Makes room for twice as many nodes.
    fn widen(&mut self) {
        let mut wider = vec![0; self.after.len() * 2];
        let rows = self.after.chunks_exact(self.words);
        for (row, wide) in rows.zip(wider.chunks_exact_mut(self.words * 2)) {
            wide[..self.words].copy_from_slice(row);
        }
        self.words *= 2;
        self.after = wider;
    }

    /// All pairs of nodes of which the first comes before the second.
    #[cfg(test)]
    pub(crate) fn pairs(&self) -> Vec<(Id, Id)> {
        let all = 0..self.nodes.len();
        let pairs = all.clone().flat_map(|one| all.clone().map(move |other| (one, other)));
        let pairs = pairs.filter(|&(one, other)| has(self.row(one), other));
        let mut pairs: Vec<_> =
            pairs.map(|(one, other)| (self.nodes[one].first, self.nodes[other].first)).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// Returns whether two strengths are ordered: light nodes only with heavy ones.
fn ordered(one: Strength, other: Strength) -> bool {
    match (one, other) {
        (Strength::Light, other) | (other, Strength::Light) => other == Strength::Heavy,
        _ => true,
    }
}

/// Returns whether no node reaches itself. `edges` becomes the relation's transitive closure.
fn acyclic(edges: &mut [Vec<bool>]) -> bool {
    for via in 0..edges.len() {
        let onward = edges[via].clone();
        for from in edges.iter_mut().filter(|from| from[via]) {
            from.iter_mut().zip(&onward).for_each(|(to, on)| *to |= on);
        }
    }
    (0..edges.len()).all(|node| !edges[node][node])
}
