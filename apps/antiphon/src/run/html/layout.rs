//! Places the nodes and edges of a directed graph on a page, in layers from left to right, so that
//! most edges lead to the right.
//!
//! The usual steps (Sugiyama, Tagawa, Toda: "Methods for visual understanding of hierarchical
//! system structures", 1981): edges that close a circle are reversed; each node is placed one layer
//! behind the last of its predecessors; an edge over several layers gets a bend in each; layers are
//! sorted by the places of their neighbours.

/// Width of a node, in pixels, like the other sizes.
pub const NODE_WIDTH: f64 = 236.0;
/// Height of a node.
pub const NODE_HEIGHT: f64 = 40.0;
const LAYER_GAP: f64 = 70.0;
const ROW_GAP: f64 = 22.0;
/// Height reserved for an edge that passes through a layer.
const BEND_HEIGHT: f64 = 10.0;
/// Edges to the right end this far above the middle of a node, those to the left this far below.
const PORT: f64 = 8.0;
const SWEEPS: usize = 12;

/// A point: its distances from the left and from the top.
pub type Point = (f64, f64);

/// A graph on a page.
pub struct Layout {
    /// The upper left corner of each node.
    pub nodes: Vec<Point>,
    /// The points of each edge, in its direction: one on the border of the node that it leaves, one
    /// on that of the node that it leads to, and two in each layer between them. Empty for an edge
    /// from a node to itself.
    pub edges: Vec<Vec<Point>>,
    /// The size of the whole drawing.
    pub size: Point,
}

/// Lays out a graph of `count` nodes.
pub fn layered(count: usize, edges: &[(usize, usize)]) -> Layout {
    let forward = forward(count, edges);
    let mut grid = Grid::new(count, edges, &forward);
    grid.sort();
    grid.place(edges, &forward)
}

/// Whether each edge keeps its direction. Edges that lead back to the path of a walk from the first
/// nodes are reversed, so that no circle is left.
fn forward(count: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnTheWay,
        Done,
    }
    let mut out = vec![Vec::new(); count];
    for (edge, &(from, _)) in edges.iter().enumerate() {
        out[from].push(edge);
    }
    let mut forward = vec![true; edges.len()];
    let mut seen = vec![Seen::Never; count];
    let is_entry = |node: &usize| edges.iter().all(|&(from, to)| to != *node || from == to);
    let (entries, others): (Vec<_>, Vec<_>) = (0..count).partition(is_entry);
    for root in entries.into_iter().chain(others) {
        if seen[root] != Seen::Never {
            continue;
        }
        seen[root] = Seen::OnTheWay;
        let mut walk = vec![(root, 0)];
        while let Some((node, next)) = walk.last_mut() {
            let Some(&edge) = out[*node].get(*next) else {
                seen[*node] = Seen::Done;
                walk.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge].1;
            match seen[to] {
                Seen::OnTheWay => forward[edge] = false,
                Seen::Done => {}
                Seen::Never => {
                    seen[to] = Seen::OnTheWay;
                    walk.push((to, 0));
                }
            }
        }
    }
    forward
}

/// The contents of the layers: nodes first, then the bends of edges.
struct Grid {
    nodes: usize,
    /// The contents of each layer, from the top.
    layers: Vec<Vec<usize>>,
    /// The neighbours of each entry in the previous layer and in the next.
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
    /// The bends of each edge, from left to right.
    bends: Vec<Vec<usize>>,
}

impl Grid {
    fn new(count: usize, edges: &[(usize, usize)], forward: &[bool]) -> Self {
        let turned = |edge: usize| {
            let (from, to) = edges[edge];
            if forward[edge] { (from, to) } else { (to, from) }
        };
        let mut layer_of = vec![0; count];
        // There are as many rounds as the longest path has edges; no circle is left.
        let mut moved = true;
        while moved {
            moved = false;
            for (from, to) in (0..edges.len()).map(turned).filter(|(from, to)| from != to) {
                if layer_of[to] <= layer_of[from] {
                    layer_of[to] = layer_of[from] + 1;
                    moved = true;
                }
            }
        }
        let depth = layer_of.iter().max().map_or(0, |last| last + 1);
        let mut grid = Self {
            nodes: count,
            layers: vec![Vec::new(); depth],
            before: vec![Vec::new(); count],
            behind: vec![Vec::new(); count],
            bends: vec![Vec::new(); edges.len()],
        };
        for (node, &layer) in layer_of.iter().enumerate() {
            grid.layers[layer].push(node);
        }
        for edge in 0..edges.len() {
            let (from, to) = turned(edge);
            if from == to {
                continue;
            }
            let mut last = from;
            for layer in layer_of[from] + 1..layer_of[to] {
                let bend = grid.before.len();
                grid.before.push(Vec::new());
                grid.behind.push(Vec::new());
                grid.layers[layer].push(bend);
                grid.bends[edge].push(bend);
                grid.join(last, bend);
                last = bend;
            }
            grid.join(last, to);
        }
        grid
    }

    fn join(&mut self, left: usize, right: usize) {
        self.behind[left].push(right);
        self.before[right].push(left);
    }

    /// Sorts each layer by the mean place of its neighbours, alternately from left to right and
    /// back.
    fn sort(&mut self) {
        let mut place = vec![0.0; self.before.len()];
        let note = |layer: &[usize], place: &mut [f64]| {
            for (row, &at) in layer.iter().enumerate() {
                place[at] = (row as f64 + 0.5) / layer.len() as f64;
            }
        };
        for layer in &self.layers {
            note(layer, &mut place);
        }
        for sweep in 0..SWEEPS {
            let to_the_right = sweep % 2 == 0;
            let neighbours = if to_the_right { &self.before } else { &self.behind };
            let mut order: Vec<usize> = (0..self.layers.len()).collect();
            if !to_the_right {
                order.reverse();
            }
            for layer in order {
                let layer = &mut self.layers[layer];
                let mean = |at: usize| {
                    let all = &neighbours[at];
                    let sum: f64 = all.iter().map(|&other| place[other]).sum();
                    if all.is_empty() { place[at] } else { sum / all.len() as f64 }
                };
                layer.sort_by(|&one, &other| mean(one).total_cmp(&mean(other)));
                note(layer, &mut place);
            }
        }
    }

    fn height(&self, at: usize) -> f64 {
        if at < self.nodes { NODE_HEIGHT } else { BEND_HEIGHT }
    }

    fn place(&self, edges: &[(usize, usize)], forward: &[bool]) -> Layout {
        let column = |layer: &Vec<usize>| {
            layer.iter().map(|&at| self.height(at) + ROW_GAP).sum::<f64>() + ROW_GAP
        };
        let height = self.layers.iter().map(column).fold(0.0, f64::max);
        let mut corner = vec![(0.0, 0.0); self.before.len()];
        for (index, layer) in self.layers.iter().enumerate() {
            let x = ROW_GAP + index as f64 * (NODE_WIDTH + LAYER_GAP);
            let mut y = ROW_GAP + (height - column(layer)) / 2.0;
            for &at in layer {
                corner[at] = (x, y);
                y += self.height(at) + ROW_GAP;
            }
        }
        let edges = edges.iter().enumerate().map(|(edge, &(from, to))| {
            if from == to {
                return Vec::new();
            }
            let (left, right, port) =
                if forward[edge] { (from, to, -PORT) } else { (to, from, PORT) };
            let middle = |at: usize| corner[at].1 + self.height(at) / 2.0;
            let mut points = vec![(corner[left].0 + NODE_WIDTH, middle(left) + port)];
            for &bend in &self.bends[edge] {
                points.push((corner[bend].0, middle(bend)));
                points.push((corner[bend].0 + NODE_WIDTH, middle(bend)));
            }
            points.push((corner[right].0, middle(right) + port));
            if !forward[edge] {
                points.reverse();
            }
            points
        });
        let edges = edges.collect();
        let width = self.layers.len() as f64 * (NODE_WIDTH + LAYER_GAP) - LAYER_GAP;
        corner.truncate(self.nodes);
        Layout { nodes: corner, edges, size: (width + 2.0 * ROW_GAP, height) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long edge, a circle of two, a circle of three and a node that leads to itself.
    const EDGES: [(usize, usize); 10] =
        [(0, 1), (1, 2), (2, 3), (0, 3), (3, 2), (4, 5), (5, 6), (6, 4), (7, 7), (0, 7)];

    #[test]
    fn nodes_do_not_overlap_and_stay_on_the_page() {
        let layout = layered(8, &EDGES);
        for (at, one) in layout.nodes.iter().enumerate() {
            assert!(one.0 >= 0.0 && one.0 + NODE_WIDTH <= layout.size.0);
            assert!(one.1 >= 0.0 && one.1 + NODE_HEIGHT <= layout.size.1);
            for other in &layout.nodes[at + 1..] {
                let beside = (one.0 - other.0).abs() >= NODE_WIDTH;
                let above = (one.1 - other.1).abs() >= NODE_HEIGHT;
                assert!(beside || above, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn edges_run_from_border_to_border_and_mostly_to_the_right() {
        let layout = layered(8, &EDGES);
        let mut back = 0;
        for (&(from, to), points) in EDGES.iter().zip(&layout.edges) {
            let (Some(first), Some(last)) = (points.first(), points.last()) else {
                assert_eq!(from, to);
                continue;
            };
            for (point, node) in [(first, layout.nodes[from]), (last, layout.nodes[to])] {
                assert!(point.0 == node.0 || point.0 == node.0 + NODE_WIDTH, "{point:?} {node:?}");
                assert!((node.1..node.1 + NODE_HEIGHT).contains(&point.1), "{point:?} {node:?}");
            }
            back += usize::from(first.0 > last.0);
        }
        // One of each circle.
        assert_eq!(back, 2);
        let long = &layout.edges[3];
        assert_eq!(long.len(), 6);
        let through = |node: &Point| {
            let crosses = |pair: &[Point]| {
                let within = (node.1..node.1 + NODE_HEIGHT).contains(&pair[0].1);
                pair[0].0 == node.0 && pair[1].0 == node.0 + NODE_WIDTH && within
            };
            long.windows(2).any(crosses)
        };
        assert!(!layout.nodes.iter().any(through));
    }

    #[test]
    fn sorting_takes_crossings_away() {
        // Two ways side by side, of which the second is named the other way round.
        let layout = layered(6, &[(0, 3), (1, 2), (3, 4), (2, 5)]);
        let above = |one: usize, other: usize| layout.nodes[one].1 < layout.nodes[other].1;
        assert_eq!((above(0, 1), above(0, 1)), (above(3, 2), above(4, 5)));
    }
}
