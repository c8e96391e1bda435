//! Bar charts for pages: horizontal bars, one below the other.

use std::fmt::Write as _;

use super::escape;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 200.0;
/// Space for the figure after the longest bar.
const RIGHT: f64 = 140.0;
const ROW: f64 = 22.0;
const TALL: f64 = 14.0;

/// One bar.
pub struct Bar {
    /// The group, printed in front of the bar unless the bar above has the same.
    pub group: String,
    /// The name of the bar.
    pub name: String,
    /// The length of the bar; `None` if there is nothing to draw.
    pub value: Option<f64>,
    /// The text about the bar. If the bar has no length, the text is printed after it; otherwise it
    /// is shown while the mouse points at the bar.
    pub about: String,
}

/// Draws bars from 0 up, in their order; `words` formats the figures.
pub fn drawing(bars: &[Bar], words: impl Fn(f64) -> String) -> String {
    let most = bars.iter().filter_map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = bars.len() as f64 * ROW;
    let mut svg = format!("<svg class=chart viewBox=\"0 0 {WIDTH} {height}\" role=img>\n");
    let mut group = "";
    for (row, bar) in bars.iter().enumerate() {
        let top = row as f64 * ROW;
        let (base, about) = (top + TALL, escape(&bar.about));
        if bar.group != group {
            group = &bar.group;
            // Writing to a string does not fail, here and below.
            let _ = write!(svg, "<text class=faint x=0 y={base:.1}>{}</text>", escape(group));
        }
        let _ = write!(svg, "<text x=48 y={base:.1}>{}</text>", escape(&bar.name));
        let _ = match bar.value {
            Some(value) => {
                let wide = (value / most * (WIDTH - LEFT - RIGHT)).max(1.0);
                writeln!(
                    svg,
                    "<rect class=bar x={LEFT} y={:.1} width={wide:.1} height={TALL}><title>{about}\
                     </title></rect><text x={:.1} y={base:.1}>{}</text>",
                    top + 3.0,
                    LEFT + wide + 6.0,
                    escape(&words(value))
                )
            }
            None => writeln!(svg, "<text class=faint x={LEFT} y={base:.1}>{about}</text>"),
        };
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_as_wide_as_there_is_room_and_a_group_is_named_once() {
        let bar = |name: &str, value| Bar {
            group: "1991".into(),
            name: name.into(),
            value,
            about: "a & b".into(),
        };
        let drawn =
            drawing(&[bar("one", Some(2.0)), bar("two", Some(1.0)), bar("no", None)], |v| {
                format!("{v}")
            });
        let wide = |width: f64| drawn.matches(&format!("width={width:.1}")).count();
        assert_eq!((wide(660.0), wide(330.0), drawn.matches("<rect").count()), (1, 1, 2));
        assert_eq!(drawn.matches(">1991<").count(), 1);
        assert_eq!(drawn.matches(">a &amp; b<").count(), 3);
    }
}
