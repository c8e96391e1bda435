//! The lock-order graph as a drawing. A node is a sort of locks: all locks that were first taken at
//! one call site.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use antiphon_report::page::escape;
use antiphon_report::table::{count, shortened};

use super::layout::{NODE_HEIGHT, NODE_WIDTH, Point, layered};
use crate::run::order::{Order, Place, Step};

/// The most sorts that are drawn: a reader could not distinguish more.
const MOST: usize = 40;
/// Characters of a call site that fit in a node.
const LETTERS: usize = 32;

/// A sort of locks: the site where they were first taken, and their kind.
type Sort<'a> = (&'a str, &'a str);

fn sort(place: &Place) -> Sort<'_> {
    (&place.first_site, place.kind)
}

/// An arrow between two sorts.
#[derive(Default)]
struct Arrow {
    count: u64,
    inverted: bool,
}

/// The drawing; `None` if no lock was taken within another.
pub fn draw(order: &Order) -> Option<String> {
    let inverted: HashSet<_> = order.inversions.iter().flatten().map(ends).collect();
    let mut arrows: BTreeMap<(Sort, Sort), Arrow> = BTreeMap::new();
    let mut locks: BTreeMap<Sort, HashSet<(u32, u64)>> = BTreeMap::new();
    for step in &order.steps {
        let arrow = arrows.entry((sort(&step.held), sort(&step.taken))).or_default();
        arrow.count += step.count;
        arrow.inverted |= inverted.contains(&ends(step));
        for place in [&step.held, &step.taken] {
            locks.entry(sort(place)).or_default().insert((step.pid, place.address));
        }
    }
    let all = locks.len();
    let drawn = most_used(&arrows);
    arrows.retain(|(from, to), _| drawn.contains(from) && drawn.contains(to));
    let at = |sort: &Sort| drawn.iter().position(|drawn| drawn == sort);
    let edges: Vec<_> = arrows.keys().filter_map(|(from, to)| Some((at(from)?, at(to)?))).collect();
    let layout = layered(drawn.len(), &edges);
    let mut svg = svg_head(layout.size);
    for (((from, to), arrow), (points, &(node, _))) in
        arrows.iter().zip(layout.edges.iter().zip(&edges))
    {
        let way = if points.is_empty() { own_way(layout.nodes[node]) } else { way(points) };
        let class = if arrow.inverted { "edge inverted" } else { "edge" };
        let title = format!("{} → {}: {} times", from.0, to.0, count(arrow.count));
        let width = 1.0 + (arrow.count as f64).log10() / 2.0;
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" d=\"{way}\" style=\"stroke-width:{width:.1}\" \
             marker-end=\"url(#{})\"><title>{}</title></path>",
            if arrow.inverted { "tip-inverted" } else { "tip" },
            escape(&title),
        );
    }
    for (sort, &corner) in drawn.iter().zip(&layout.nodes) {
        node(&mut svg, sort, locks.get(sort).map_or(0, HashSet::len), corner);
    }
    svg += "</svg>\n";
    if all > drawn.len() {
        let more = all - drawn.len();
        let _ = writeln!(svg, "<p>{more} more call sites are not drawn.</p>");
    }
    (!drawn.is_empty()).then_some(svg)
}

/// The key that identifies a step.
fn ends(step: &Step) -> (u32, u64, u64) {
    (step.pid, step.held.address, step.taken.address)
}

/// The sorts that are drawn: those of inversions first, then those of the busiest arrows.
fn most_used<'a>(arrows: &BTreeMap<(Sort<'a>, Sort<'a>), Arrow>) -> Vec<Sort<'a>> {
    let mut busiest: Vec<_> = arrows.iter().collect();
    busiest.sort_by_key(|(_, arrow)| std::cmp::Reverse((arrow.inverted, arrow.count)));
    let mut drawn = Vec::new();
    for &(from, to) in busiest.into_iter().map(|(ends, _)| ends) {
        for sort in [from, to] {
            if drawn.len() < MOST && !drawn.contains(&sort) {
                drawn.push(sort);
            }
        }
    }
    drawn
}

fn svg_head((width, height): Point) -> String {
    let tip = |id: &str, class: &str| {
        format!(
            "<marker id={id} viewBox=\"0 0 10 10\" refX=9 refY=5 markerWidth=9 markerHeight=9 \
             markerUnits=userSpaceOnUse orient=auto><path class=\"{class}\" d=\"M0 1L10 5L0 9z\"/>\
             </marker>"
        )
    };
    format!(
        "<svg class=graph width={width:.0} height={height:.0} \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=img aria-label=\"lock-order graph\">\n\
         <defs>{}{}</defs>\n",
        tip("tip", "tip"),
        tip("tip-inverted", "tip inverted"),
    )
}

fn node(svg: &mut String, sort: &Sort, locks: usize, (x, y): Point) {
    let (site, kind) = sort;
    let several = if locks == 1 { "" } else { "s" };
    let _ = writeln!(
        svg,
        "<g class=node><title>{}</title><rect x={x:.1} y={y:.1} width={NODE_WIDTH} \
         height={NODE_HEIGHT} rx=5 /><text x={:.1} y={:.1}>{}</text>\
         <text class=faint x={:.1} y={:.1}>{}, {locks} lock{several}</text></g>",
        escape(site),
        x + 10.0,
        y + 17.0,
        escape(&shortened(site, LETTERS)),
        x + 10.0,
        y + 32.0,
        escape(kind),
    );
}

/// The path of an arrow: straight through a layer, and curved between two.
fn way(points: &[Point]) -> String {
    let mut way = format!("M{:.1} {:.1}", points[0].0, points[0].1);
    for (index, pair) in points.windows(2).enumerate() {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let _ = if index % 2 == 0 {
            let middle = (x + to_x) / 2.0;
            write!(way, "C{middle:.1} {y:.1} {middle:.1} {to_y:.1} {to_x:.1} {to_y:.1}")
        } else {
            write!(way, "L{to_x:.1} {to_y:.1}")
        };
    }
    way
}

/// A path from a node to itself, over its upper right corner.
fn own_way((x, y): Point) -> String {
    let (right, top) = (x + NODE_WIDTH, y);
    let (from, to) = (right - 40.0, top + 12.0);
    format!(
        "M{from:.1} {top:.1}C{from:.1} {:.1} {:.1} {:.1} {right:.1} {to:.1}",
        top - 22.0,
        right + 34.0,
        top - 14.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(held: u64, taken: u64, count: u64) -> Step {
        let place = |address: u64| Place {
            address,
            variable: None,
            initialised: None,
            kind: "mutex",
            site: String::new(),
            first_site: format!("f<{address}>"),
        };
        Step { pid: 1, held: place(held), taken: place(taken), count }
    }

    #[test]
    fn inversions_stand_out_and_names_are_text() {
        let steps = vec![step(1, 2, 5), step(2, 1, 1), step(2, 3, 9), step(3, 3, 1)];
        let order = Order { inversions: vec![steps[..2].to_vec()], steps, ..Order::default() };
        let svg = draw(&order).unwrap_or_default();
        assert_eq!(svg.matches("class=\"edge inverted\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"edge\"").count(), 2, "{svg}");
        assert!(svg.contains("f&lt;2&gt; → f&lt;3&gt;: 9 times") && !svg.contains("f<"), "{svg}");
        assert!(draw(&Order::default()).is_none());
    }

    #[test]
    fn of_many_sorts_the_busiest_and_the_inverted_are_drawn() {
        let mut steps: Vec<_> = (1..100).map(|at| step(at, 1000 + at, 10 * at)).collect();
        steps.push(step(1001, 1, 1));
        let inversions = vec![vec![steps[0].clone(), steps[99].clone()]];
        let order = Order { inversions, steps, ..Order::default() };
        let svg = draw(&order).unwrap_or_default();
        assert!(svg.contains("f&lt;1&gt;") && svg.contains("f&lt;99&gt;"), "{svg}");
        assert!(!svg.contains("f&lt;2&gt;") && svg.contains("158 more call sites"), "{svg}");
    }
}
