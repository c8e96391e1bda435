//! Cycles in the order in which locks were taken: if threads were on all edges of a cycle at once,
//! they would wait for each other for ever.
//!
//! All pairs that were taken in both orders are found. Of the longer cycles, one of the shortest is
//! found through each edge that is in no other cycle: a graph may have more cycles than anyone can
//! read, and once the reported ones are fixed, the next are found.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::Snapshot;
use crate::snapshot::Edge;

/// Most cycles that are searched for.
const MOST: usize = 1000;

impl Snapshot {
    /// Cycles in the order in which locks were taken, as positions in `edges`, where each edge
    /// begins at the end of the previous one: potential deadlocks. Shorter cycles come first. Locks
    /// that were only tried, that never existed at the same time, or that were always taken under
    /// one other lock form no cycles; neither do spinlocks and the C library's own locks, of which
    /// no order is recorded.
    #[must_use]
    pub fn inversions(&self) -> Vec<Vec<usize>> {
        let mut graph = Graph::new(&self.edges);
        let mut cycles = graph.pairs();
        let mut seen: HashSet<usize> = cycles.iter().flatten().copied().collect();
        graph.peel();
        for edge in graph.alive() {
            if cycles.len() >= MOST {
                break;
            }
            if !seen.contains(&edge)
                && let Some(cycle) = graph.shortest_through(edge)
            {
                seen.extend(&cycle);
                cycles.push(cycle);
            }
        }
        cycles.retain(|cycle| !is_guarded(&self.edges, cycle));
        cycles.sort_by_key(Vec::len);
        cycles
    }
}

/// Returns whether one other lock was always held on all of those edges.
fn is_guarded(edges: &[Edge], cycle: &[usize]) -> bool {
    let Some((&first, rest)) = cycle.split_first() else { return false };
    let guards = |edge: usize| &edges[edge].guards;
    guards(first).iter().any(|guard| rest.iter().all(|&edge| guards(edge).contains(guard)))
}

struct Graph {
    /// Start and end of each edge, as numbers of locks in one of their lives.
    ends: Vec<(usize, usize)>,
    /// Edges that begin at a node, and those that end there.
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
    /// Edges that may be in a cycle.
    alive: Vec<bool>,
}

impl Graph {
    fn new(edges: &[Edge]) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |lock: usize, life: u32| {
            let next = numbers.len();
            *numbers.entry((lock, life)).or_insert(next)
        };
        let ends: Vec<_> = edges
            .iter()
            .map(|edge| (number(edge.held, edge.lives[0]), number(edge.taken, edge.lives[1])))
            .collect();
        let mut out = vec![Vec::new(); numbers.len()];
        let mut into = out.clone();
        for (edge, &(from, to)) in ends.iter().enumerate() {
            out[from].push(edge);
            into[to].push(edge);
        }
        Self { alive: vec![true; ends.len()], ends, out, into }
    }

    /// The cycles of two edges.
    fn pairs(&self) -> Vec<Vec<usize>> {
        let by_ends: HashMap<_, _> =
            self.ends.iter().enumerate().map(|(edge, &ends)| (ends, edge)).collect();
        let back = |edge: usize| {
            let (from, to) = self.ends[edge];
            by_ends.get(&(to, from)).map(|&back| (edge, back))
        };
        let pairs = (0..self.ends.len()).filter_map(back);
        pairs.filter(|(edge, back)| edge < back).map(|(edge, back)| vec![edge, back]).collect()
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.ends.len()).filter(|&edge| self.alive[edge]).collect()
    }

    /// Removes the edges from nodes without incoming edges and to nodes without outgoing edges,
    /// until no more can be removed.
    fn peel(&mut self) {
        let mut comes: Vec<_> = self.into.iter().map(Vec::len).collect();
        let mut goes: Vec<_> = self.out.iter().map(Vec::len).collect();
        let mut looked_at = self.alive();
        while let Some(edge) = looked_at.pop() {
            let (from, to) = self.ends[edge];
            if !self.alive[edge] || comes[from] != 0 && goes[to] != 0 {
                continue;
            }
            self.alive[edge] = false;
            comes[to] -= 1;
            goes[from] -= 1;
            if comes[to] == 0 {
                looked_at.extend(&self.out[to]);
            }
            if goes[from] == 0 {
                looked_at.extend(&self.into[from]);
            }
        }
    }

    /// A shortest cycle that begins with `edge`.
    fn shortest_through(&self, edge: usize) -> Option<Vec<usize>> {
        let (home, begin) = self.ends[edge];
        let mut came_by = HashMap::from([(begin, edge)]);
        let mut next = VecDeque::from([begin]);
        while let Some(node) = next.pop_front() {
            for &way in self.out[node].iter().filter(|&&way| self.alive[way]) {
                let to = self.ends[way].1;
                if to == home {
                    return Some(self.way_to(way, edge, &came_by));
                }
                if let Entry::Vacant(vacant) = came_by.entry(to) {
                    vacant.insert(way);
                    next.push_back(to);
                }
            }
        }
        None
    }

    /// The edges from `first` to `last`, by the edge through which each node was reached.
    fn way_to(&self, last: usize, first: usize, came_by: &HashMap<usize, usize>) -> Vec<usize> {
        let mut way = vec![last];
        let mut at = last;
        while at != first
            && let Some(&before) = came_by.get(&self.ends[at].0)
        {
            way.push(before);
            at = before;
        }
        way.reverse();
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(held: usize, taken: usize) -> Edge {
        Edge { held, taken, count: 1, rows: [None; 2], lives: [1; 2], guards: Vec::new() }
    }

    fn cycles(edges: &[Edge]) -> Vec<Vec<usize>> {
        Snapshot { edges: edges.to_vec(), ..Snapshot::default() }.inversions()
    }

    #[test]
    fn an_order_has_no_cycle() {
        let edges: Vec<_> = (0..50).flat_map(|i| (i + 1..50).map(move |j| edge(i, j))).collect();
        assert!(cycles(&edges).is_empty());
        assert!(cycles(&[]).is_empty());
    }

    #[test]
    fn pairs_and_longer_cycles_are_found_once_each() {
        let edges = [edge(0, 1), edge(1, 2), edge(5, 0), edge(2, 0), edge(1, 0), edge(2, 6)];
        assert_eq!(cycles(&edges), [vec![0, 4], vec![1, 3, 0]]);
        let ring: Vec<_> = (0..1000).map(|i| edge(i, (i + 1) % 1000)).collect();
        assert_eq!(cycles(&ring), [(0..1000).collect::<Vec<_>>()]);
    }

    #[test]
    fn locks_of_different_lives_never_meet() {
        let mut edges = [edge(0, 1), edge(1, 0)];
        edges[1].lives = [1, 2];
        assert!(cycles(&edges).is_empty());
        edges[0].lives = [2, 1];
        assert_eq!(cycles(&edges), [[0, 1]]);
    }

    #[test]
    fn one_guard_of_all_edges_makes_a_cycle_harmless_and_several_do_not() {
        let mut edges = [edge(0, 1), edge(1, 0)];
        edges[0].guards = vec![7, 8];
        assert_eq!(cycles(&edges), [[0, 1]]);
        edges[1].guards = vec![9, 8];
        assert!(cycles(&edges).is_empty());
        edges[1].guards = vec![9];
        assert_eq!(cycles(&edges), [[0, 1]]);
    }
}
