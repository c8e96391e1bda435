//! Histograms of waits, as two drawings over one axis of time: the number of waits of each length,
//! and the time spent in them.

use std::fmt::Write as _;

use antiphon_record::{BUCKETS, Histogram, bucket_floor};

use antiphon_report::table::{count, duration};

const WIDTH: f64 = 1000.0;
/// The space from the left border to the first bar, and from the last one to the right border.
const LEFT: f64 = 100.0;
const RIGHT: f64 = 40.0;
/// The tops of the panels, and their height.
const TOPS: [f64; 2] = [34.0, 174.0];
const HEIGHT: f64 = 100.0;
const AXIS: f64 = TOPS[1] + HEIGHT;
/// Buckets of a histogram in each bar: half a power of two.
const TO_A_BAR: usize = 8;

/// The waits of one bar: from `from_ns` up to the next bar.
struct Bar {
    from_ns: u64,
    to_ns: u64,
    count: u64,
    /// The time of these waits, within a sixteenth.
    sum_ns: f64,
}

/// The drawing; `None` if there are no waits.
pub fn waits(waits: &Histogram) -> Option<String> {
    let bars = bars(waits);
    let (first, last) = (bars.first()?, bars.last()?);
    let span = (first.from_ns.max(1) as f64, last.to_ns as f64);
    let across = (WIDTH - LEFT - RIGHT) / (span.1 / span.0).ln();
    let x = |ns: f64| LEFT + (ns.max(span.0) / span.0).ln() * across;
    let mut svg = format!(
        "<svg class=chart viewBox=\"0 0 {WIDTH} {}\" role=img aria-label=\"lengths of waits\">\n",
        AXIS + 30.0
    );
    axis(&mut svg, span, x);
    let counts = |bar: &Bar| bar.count as f64;
    let times = |bar: &Bar| bar.sum_ns;
    panel(&mut svg, &bars, x, ("waits", TOPS[0]), counts, |most| count(most as u64));
    panel(&mut svg, &bars, x, ("time in them", TOPS[1]), times, duration);
    // The labels are at different heights, because they may be close to each other.
    for (name, ns, y) in [("p50", waits.p50(), 12), ("p99", waits.p99(), 27)] {
        let Some(ns) = ns else { continue };
        let at = x(ns as f64);
        let on_the_left = at > WIDTH / 2.0;
        let (anchor, label) = if on_the_left { ("end", at - 4.0) } else { ("start", at + 4.0) };
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            svg,
            "<line class=mark x1={at:.1} x2={at:.1} y1={} y2={AXIS} />\
             <text x={label:.1} y={y} text-anchor={anchor}>{name} {}</text>",
            y - 9,
            duration(ns as f64)
        );
    }
    Some(svg + "</svg>\n")
}

fn bars(waits: &Histogram) -> Vec<Bar> {
    let bar = |first: usize| {
        let next = (first + TO_A_BAR).min(BUCKETS);
        let counts = &waits.counts[first..next];
        let middle = |bucket: usize| match bucket + 1 {
            // The last bucket has no upper bound.
            BUCKETS => waits.max_ns as f64,
            next => (bucket_floor(bucket) + bucket_floor(next)) as f64 / 2.0,
        };
        let sum = (first..).zip(counts).map(|(at, &count)| count as f64 * middle(at)).sum();
        let to_ns = if next == BUCKETS { bucket_floor(first) * 2 } else { bucket_floor(next) };
        Bar { from_ns: bucket_floor(first), to_ns, count: counts.iter().sum(), sum_ns: sum }
    };
    let bars: Vec<_> = (0..BUCKETS).step_by(TO_A_BAR).map(bar).collect();
    let some = |bar: &Bar| bar.count != 0;
    let first = bars.iter().position(some).unwrap_or(bars.len());
    let end = bars.iter().rposition(some).map_or(first, |last| last + 1);
    bars.into_iter().skip(first).take(end - first).collect()
}

/// Draws lines at powers of ten, from the top of the panels to below them.
fn axis(svg: &mut String, span: (f64, f64), x: impl Fn(f64) -> f64) {
    for power in 0..13 {
        let ns = 10f64.powi(power);
        if ns >= span.0 && ns <= span.1 {
            let at = x(ns);
            let _ = writeln!(
                svg,
                "<line class=grid x1={at:.1} x2={at:.1} y1={} y2={AXIS} />\
                 <text x={at:.1} y={} text-anchor=middle>{}</text>",
                TOPS[0],
                AXIS + 18.0,
                tick(ns)
            );
        }
    }
    for top in TOPS {
        let base = top + HEIGHT;
        let _ =
            writeln!(svg, "<line class=base x1={LEFT} x2={} y1={base} y2={base} />", WIDTH - RIGHT);
    }
}

/// The label of a power of ten, without decimals.
fn tick(ns: f64) -> String {
    duration(ns).replace(".00", "").replace(".0", "")
}

fn panel(
    svg: &mut String,
    bars: &[Bar],
    x: impl Fn(f64) -> f64,
    (name, top): (&str, f64),
    height: impl Fn(&Bar) -> f64,
    words: impl Fn(f64) -> String,
) {
    let most = bars.iter().map(&height).fold(f64::MIN_POSITIVE, f64::max);
    let base = top + HEIGHT;
    let _ = writeln!(
        svg,
        "<text x={} y={} text-anchor=end>{}</text><text class=faint x={} y={} text-anchor=end>\
         {name}</text>",
        LEFT - 8.0,
        top + 9.0,
        words(most),
        LEFT - 8.0,
        top + 26.0,
    );
    for bar in bars.iter().filter(|bar| bar.count != 0) {
        let (left, right) = (x(bar.from_ns as f64), x(bar.to_ns as f64));
        let tall = (height(bar) / most * HEIGHT).max(1.0);
        let _ = writeln!(
            svg,
            "<rect class=bar x={left:.1} y={:.1} width={:.1} height={tall:.1}><title>{} to {}: \
             {} waits, {} in all</title></rect>",
            base - tall,
            (right - left - 1.0).max(1.0),
            duration(bar.from_ns as f64),
            duration(bar.to_ns as f64),
            count(bar.count),
            duration(bar.sum_ns),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|ns| histogram.count_one(ns));
        histogram
    }

    #[test]
    fn bars_hold_all_waits_and_follow_each_other() {
        let waits = histogram([3, 900, 1_000, 1_000_000, 1 << 50]);
        let bars = bars(&waits);
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), 5);
        assert!(bars.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        let waits = histogram((1..2000).map(|i| i * 1_009));
        let sum: f64 = super::bars(&waits).iter().map(|bar| bar.sum_ns).sum();
        assert!((sum / waits.sum_ns as f64 - 1.0).abs() < 1.0 / 16.0, "{sum}");
    }

    #[test]
    fn every_bar_is_between_the_borders() {
        for values in [vec![0], vec![5, 1 << 50], vec![1_000, 1_001, 2_000_000]] {
            let svg = waits(&histogram(values)).unwrap_or_default();
            let rects: Vec<&str> = svg.split("<rect").skip(1).collect();
            assert!(!rects.is_empty());
            for rect in rects {
                let number = |key: &str| {
                    let text = rect.split_once(key).map_or("", |(_, rest)| rest);
                    text.split([' ', '>']).next().and_then(|n| n.parse::<f64>().ok())
                };
                let (x, width) = (number("x=").unwrap_or(-1.0), number("width=").unwrap_or(-1.0));
                assert!(x >= LEFT && width >= 1.0 && x + width <= WIDTH - RIGHT + 0.2, "{rect}");
            }
        }
        assert!(waits(&Histogram::default()).is_none());
    }

    #[test]
    fn ticks_are_whole() {
        assert_eq!([1.0, 1e4, 1e9].map(tick), ["1 ns", "10 µs", "1 s"]);
    }
}
