//! Lanes for pages: what each thread does over time, one lane below the other.

use std::fmt::Write as _;

use super::escape;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 160.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 20.0;
const TALL: f64 = 13.0;

/// What a thread does with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It waits, and is not asleep.
    Waits,
    /// It waits, and sleeps.
    Sleeps,
    /// It holds the lock.
    Holds,
}

impl Does {
    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Sleeps => "sleeps",
            Self::Holds => "holds",
        }
    }

    /// The colour; an owner has that of its group.
    fn colour(self, group: usize) -> String {
        match self {
            Self::Waits => "var(--idle)".to_owned(),
            Self::Sleeps => "var(--line)".to_owned(),
            Self::Holds => format!("hsl({:.0} 65% 45%)", group as f64 * 137.5 % 360.0),
        }
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// What the thread does meanwhile.
    pub does: Does,
}

/// What a thread does.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The number of its group, which decides the colour of the spans in which it holds the lock.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Its spans, in order.
    pub spans: Vec<Span>,
}

/// Draws the lanes in their order; `words` formats nanoseconds.
pub fn drawing(lanes: &[Lane], words: impl Fn(f64) -> String) -> String {
    let last = lanes.iter().flat_map(|lane| &lane.spans).map(|span| span.to_ns).max();
    let last = last.unwrap_or(1).max(1) as f64;
    let x = |at: u64| LEFT + at as f64 / last * (WIDTH - LEFT - RIGHT);
    let base = lanes.len() as f64 * ROW;
    let mut svg = format!("<svg class=chart viewBox=\"0 0 {WIDTH} {}\" role=img>\n", base + ROW);
    for (row, lane) in lanes.iter().enumerate() {
        let top = row as f64 * ROW;
        let name = escape(&lane.name);
        // Writing to a string does not fail, here and below.
        let _ = writeln!(svg, "<text x=0 y={:.1}>{name}</text>", top + TALL);
        for span in &lane.spans {
            let (from, to) = (x(span.from_ns), x(span.to_ns));
            let _ = writeln!(
                svg,
                "<rect style=\"fill:{}\" x={from:.1} y={:.1} width={:.1} height={TALL}><title>\
                 {name} {}, {} to {}</title></rect>",
                span.does.colour(lane.group),
                top + 2.0,
                (to - from).max(1.0),
                span.does.word(),
                escape(&words(span.from_ns as f64)),
                escape(&words(span.to_ns as f64))
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text class=faint x={LEFT} y={y:.1}>0</text><text class=faint x={:.1} y={y:.1} \
         text-anchor=end>{}</text>",
        WIDTH - RIGHT,
        escape(&words(last)),
        y = base + TALL
    );
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_is_a_bar_in_the_lane_of_its_thread() {
        let span = |from_ns, to_ns, does| Span { from_ns, to_ns, does };
        let spans = vec![span(0, 500, Does::Waits), span(500, 1000, Does::Holds)];
        let lane = |group, name: &str, spans| Lane { group, name: name.to_owned(), spans };
        let lanes = [lane(0, "a<b", spans), lane(1, "c", vec![span(0, 1, Does::Sleeps)])];
        let svg = drawing(&lanes, |ns| format!("{ns} ns"));
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        assert!(svg.contains("x=570.0 y=2.0 width=410.0"), "{svg}");
        assert!(svg.contains("a&lt;b holds, 500 ns to 1000 ns"), "{svg}");
        // A span that is too short to be seen has a width of its own.
        assert!(svg.contains("y=22.0 width=1.0"), "{svg}");
    }
}
