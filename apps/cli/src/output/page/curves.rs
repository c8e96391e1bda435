//! Curves over numbers of threads, as a drawing for a page.

use std::fmt::Write as _;

use super::escape;
use crate::output::words::several;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 80.0;
/// Where the names of the curves stand.
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
const BASE: f64 = HEIGHT - 40.0;
/// Between the names of two curves.
const LINE: f64 = 15.0;

/// One curve.
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// A number of threads, and the figure for it; in the order of the threads.
    pub points: Vec<(f64, f64)>,
    /// Apart from the others: what is no lock, or was not simulated.
    pub dashed: bool,
}

/// Threads across, each doubling as wide as the next; figures from 0 up, said by `words`.
pub fn drawing(curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let last = points().map(|point| point.0).fold(2.0, f64::max);
    let x = |at: f64| LEFT + at.max(1.0).log2() / last.log2() * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| BASE - value / most * (BASE - TOP);
    let mut svg = format!("<svg class=chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img>\n");
    for part in 0..=4 {
        let value = most * f64::from(part) / 4.0;
        let (at, text) = (y(value), words(value));
        let _ = writeln!(
            svg,
            "<line class=grid x1={LEFT} x2={} y1={at:.1} y2={at:.1} />\
             <text x={} y={:.1} text-anchor=end>{text}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let mut threads: Vec<_> = points().map(|point| point.0 as u64).collect();
    threads.sort_unstable();
    threads.dedup();
    for count in threads {
        let at = x(count as f64);
        let _ = writeln!(
            svg,
            "<text class=faint x={at:.1} y={:.1} text-anchor=middle>{count}</text>",
            BASE + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=faint x={:.1} y={:.1} text-anchor=end>threads</text>",
        WIDTH - RIGHT,
        BASE + 34.0
    );
    let names = names(curves, &y);
    for (number, curve) in curves.iter().enumerate() {
        draw(&mut svg, curve, (colour(number), names[number]), (&x, &y), &words);
    }
    svg + "</svg>\n"
}

type Scale<'a> = &'a dyn Fn(f64) -> f64;
type Words<'a> = &'a dyn Fn(f64) -> String;

fn draw(
    svg: &mut String,
    curve: &Curve,
    (colour, name_at): (String, f64),
    (x, y): (Scale, Scale),
    words: Words,
) {
    let Some(&(_, end)) = curve.points.last() else { return };
    let points: Vec<_> =
        curve.points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
    let kind = if curve.dashed { "curve dashed" } else { "curve" };
    let name = escape(&curve.name);
    let _ = writeln!(
        svg,
        "<polyline class=\"{kind}\" style=\"stroke:{colour}\" points=\"{}\"><title>{name}</title>\
         </polyline>",
        points.join(" ")
    );
    for &(at, value) in &curve.points {
        let _ = writeln!(
            svg,
            "<circle style=\"fill:{colour}\" cx={:.1} cy={:.1} r=3><title>{name}, {}: {}\
             </title></circle>",
            x(at),
            y(value),
            several(at as u64, "thread"),
            words(value)
        );
    }
    let (from, to) = (WIDTH - RIGHT + 4.0, WIDTH - RIGHT + 22.0);
    let _ = writeln!(
        svg,
        "<line style=\"stroke:{colour}\" x1={from} x2={to} y1={:.1} y2={name_at:.1} />\
         <text x={} y={:.1}>{name}</text>",
        y(end),
        to + 4.0,
        name_at + 4.0
    );
}

/// How high the name of each curve stands: where the curve ends, but none over another.
fn names(curves: &[Curve], y: Scale) -> Vec<f64> {
    let end = |curve: &Curve| curve.points.last().map_or(BASE, |&(_, value)| y(value));
    let mut order: Vec<_> = (0..curves.len()).collect();
    // From the bottom up.
    order.sort_by(|&one, &other| end(&curves[other]).total_cmp(&end(&curves[one])));
    let mut places = vec![0.0; curves.len()];
    let mut below = BASE + LINE;
    for curve in order {
        below = end(&curves[curve]).min(below - LINE);
        places[curve] = below;
    }
    places
}

/// Hues as far apart as the golden angle, so that neighbours differ.
fn colour(number: usize) -> String {
    format!("hsl({:.0} 65% 45%)", number as f64 * 137.5 % 360.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_over_another() {
        let curve =
            |end: f64| Curve { name: String::new(), points: vec![(1.0, end)], dashed: false };
        let curves: Vec<_> = [5.0, 5.0, 5.1, 0.0, 9.0].map(curve).into();
        let mut places = names(&curves, &|value| 300.0 - value * 30.0);
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9), "{places:?}");
    }
}
