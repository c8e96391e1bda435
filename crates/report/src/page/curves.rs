//! Line charts for pages: curves over numbers of threads, over time, or over shares of all trials.

use std::fmt::Write as _;

use super::escape;
use crate::stats::Below;
use crate::words::{noun, several};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 80.0;
/// Space for the names of the curves.
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
const BASE: f64 = HEIGHT - 40.0;
/// Distance between the names of two curves.
const LINE: f64 = 15.0;
/// Distance between two marks of the horizontal axis.
const MARK: f64 = 36.0;

/// One curve.
pub struct Curve {
    /// The name of the curve.
    pub name: String,
    /// Numbers of threads and the figures for them, in the order of the threads. Instead of threads
    /// also a time, or the rarity of a value.
    pub points: Vec<(f64, f64)>,
    /// Whether the curve is dashed, because it is not a lock, or was not simulated.
    pub dashed: bool,
}

impl Curve {
    /// The curve of a [`distribution`].
    pub fn of_distribution(name: &str, cdf: &[Below], dashed: bool) -> Self {
        let points = cdf.iter().map(|one| (rarity(one.share), one.value)).collect();
        Self { name: name.to_owned(), points, dashed }
    }

    /// One curve for all rows of a name, with a point for each row that has one.
    pub fn by_name<R>(
        rows: &[R],
        name: impl Fn(&R) -> String,
        point: impl Fn(&R) -> Option<(f64, f64)>,
    ) -> Vec<Self> {
        let curve = |rows: &[R]| Self {
            name: name(&rows[0]),
            points: rows.iter().filter_map(&point).collect(),
            dashed: false,
        };
        rows.chunk_by(|one, next| name(one) == name(next)).map(curve).collect()
    }
}

/// Draws curves over numbers of threads, on a logarithmic axis; figures from 0 up, formatted by
/// `words`.
pub fn drawing(curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    drawing_of("thread", curves, words)
}

/// [`drawing`] over something other than threads, whose noun is `one`.
pub fn drawing_of(one: &str, curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    let (name, said) = (noun(2, one), |at| several(at as u64, one));
    let across = Across { name: &name, mark: &|at| at.to_string(), said: &said, place: f64::log2 };
    draw_all(curves, &across, &Up::from_0(curves), &words)
}

/// Draws curves over seconds, on a linear axis; figures from 0 up, formatted by `words`.
pub fn over_time(curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    let mark = |at| format!("{at:.1}").trim_end_matches(".0").to_owned();
    let said = |at| format!("{at:.1} s");
    let across = Across { name: "seconds", mark: &mark, said: &said, place: |at| at };
    draw_all(curves, &across, &Up::from_0(curves), &words)
}

/// Draws distributions: shares of trials across, and upwards the values that these are below, on a
/// logarithmic axis. The axis of shares stretches the rare values: each half of the remaining
/// trials has the same width.
pub fn distribution(curves: &[Curve], words: impl Fn(f64) -> String) -> String {
    let name = "of all trials are below";
    let across = Across { name, mark: &percent, said: &percent, place: f64::log2 };
    draw_all(curves, &across, &Up::by_tens(curves), &words)
}

/// The position of a share of trials in a [`distribution`]: `n`, where one in `n` trials is not in
/// the share.
fn rarity(share: f64) -> f64 {
    1.0 / (1.0 - share)
}

fn percent(rarity: f64) -> String {
    let text = format!("{:.1}", 100.0 - 100.0 / rarity);
    format!("{} %", text.trim_end_matches(".0"))
}

/// The horizontal axis.
struct Across<'a> {
    name: &'a str,
    /// The text below a point.
    mark: Words<'a>,
    /// The text about a single point.
    said: Words<'a>,
    /// Converts a value to a horizontal position.
    place: fn(f64) -> f64,
}

/// The vertical axis.
enum Up {
    Linear {
        most: f64,
    },
    /// Powers of ten.
    Tens {
        least: i32,
        most: i32,
    },
}

impl Up {
    fn from_0(curves: &[Curve]) -> Self {
        Self::Linear { most: figures(curves).fold(f64::MIN_POSITIVE, f64::max) }
    }

    fn by_tens(curves: &[Curve]) -> Self {
        let tens = || figures(curves).filter(|&value| value > 0.0).map(f64::log10);
        let least = tens().map(f64::floor).reduce(f64::min).unwrap_or(0.0) as i32;
        let most = tens().map(f64::ceil).reduce(f64::max).unwrap_or(1.0) as i32;
        Self::Tens { least, most: most.max(least + 1) }
    }

    fn y(&self, value: f64) -> f64 {
        let part = match *self {
            Self::Linear { most } => value / most,
            Self::Tens { least, most } => {
                let tens = value.log10().max(f64::from(least));
                (tens - f64::from(least)) / f64::from(most - least)
            }
        };
        BASE - part * (BASE - TOP)
    }

    /// The values at which lines are drawn.
    fn marks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { most } => (0..=4).map(|part| most * f64::from(part) / 4.0).collect(),
            Self::Tens { least, most } => (least..=most).map(|tens| 10_f64.powi(tens)).collect(),
        }
    }
}

fn figures(curves: &[Curve]) -> impl Iterator<Item = f64> {
    curves.iter().flat_map(|curve| &curve.points).map(|point| point.1)
}

fn draw_all(curves: &[Curve], across: &Across<'_>, up: &Up, words: Words) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let last = points().map(|point| point.0).fold(2.0, f64::max);
    let place = across.place;
    let x = |at: f64| LEFT + place(at).max(0.0) / place(last) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| up.y(value);
    let mut svg = format!("<svg class=chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img>\n");
    for value in up.marks() {
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
    let mut marks: Vec<_> = points().map(|point| point.0).collect();
    // From the right: the last mark is always shown, and marks too close to a shown one are left
    // out.
    marks.sort_by(|one, other| other.total_cmp(one));
    let mut free = f64::INFINITY;
    for mark in marks {
        let at = x(mark);
        if at <= free {
            let (below, text) = (BASE + 18.0, (across.mark)(mark));
            let _ = writeln!(
                svg,
                "<text class=faint x={at:.1} y={below:.1} text-anchor=middle>{text}</text>"
            );
            free = at - MARK;
        }
    }
    let _ = writeln!(
        svg,
        "<text class=faint x={:.1} y={:.1} text-anchor=end>{}</text>",
        WIDTH - RIGHT,
        BASE + 34.0,
        across.name
    );
    let names = names(curves, &y);
    for (number, curve) in curves.iter().enumerate() {
        draw(&mut svg, curve, (colour(number), names[number]), (&x, &y), (across.said, words));
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
    (said, words): (Words, Words),
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
            said(at),
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

/// The height of each curve's name: near the end of the curve, without overlap.
fn names(curves: &[Curve], y: Scale) -> Vec<f64> {
    let end = |curve: &Curve| curve.points.last().map_or(BASE, |&(_, value)| y(value));
    let mut order: Vec<_> = (0..curves.len()).collect();
    // From the bottom up.
    order.sort_by(|&one, &other| end(&curves[other]).total_cmp(&end(&curves[one])));
    let mut places = vec![0.0; curves.len()];
    let mut below = BASE + LINE;
    for &curve in &order {
        below = end(&curves[curve]).min(below - LINE);
        places[curve] = below;
    }
    // Names that would be above the drawing push others down again.
    let mut free = TOP;
    for &curve in order.iter().rev() {
        places[curve] = places[curve].max(free);
        free = places[curve] + LINE;
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
        assert!(places[0] >= TOP);
    }

    #[test]
    fn a_distribution_has_a_line_for_each_power_of_ten_and_its_shares_below() {
        let points = [(0.5, 120.0), (0.9, 130.0), (0.999, 25_000.0)];
        let points = points.map(|(share, ns)| (rarity(share), ns)).into();
        let curve = Curve { name: "futex".to_owned(), points, dashed: false };
        let svg = distribution(&[curve], |ns| format!("{ns} ns"));
        for text in [">100 ns<", ">1000 ns<", ">10000 ns<", ">100000 ns<", ">50 %<", ">99.9 %<"] {
            assert_eq!(svg.matches(text).count(), 1, "{text}: {svg}");
        }
        assert!(svg.contains("futex, 90 %: 130 ns"), "{svg}");
    }

    #[test]
    fn marks_do_not_stand_over_one_another() {
        let points = (1..=64).map(|threads| (f64::from(threads), 1.0)).collect();
        let svg =
            drawing(&[Curve { name: String::new(), points, dashed: false }], |v| v.to_string());
        let middle = |line: &str| {
            let (_, rest) = line.split_once("<text class=faint x=")?;
            rest.split_once(' ').filter(|(_, rest)| rest.contains("middle"))?.0.parse::<f64>().ok()
        };
        let marks: Vec<_> = svg.lines().filter_map(middle).collect();
        // From the right, as far as 1.
        assert!(marks.len() > 5 && marks.windows(2).all(|pair| pair[0] - pair[1] >= MARK), "{svg}");
        assert!(svg.contains(">64<") && svg.contains(">1<") && !svg.contains(">63<"), "{svg}");
    }
}
