//! Aligned tables: text to the left, numbers to the right, units in the heads.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// A cell: its text and its tone.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    right: bool,
    tone: Tone,
}

/// How a cell is highlighted on a terminal, without other effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The terminal's own tone.
    Plain,
    /// A head.
    Head,
    /// The tone for text of less interest.
    Faint,
    /// Better than the figure that it is compared with.
    Good,
    /// Worse than the figure that it is compared with.
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Head => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Bad => "\x1b[31m",
        }
    }
}

impl Cell {
    /// A cell with text, to the left, made safe for a terminal ([`printable`]).
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: printable(&text.into()), right: false, tone: Tone::Plain }
    }

    /// A cell with a number, to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { right: true, ..Self::text(text) }
    }

    /// A cell with a number as `show` writes it, or a dash if it is not known.
    pub fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> Self {
        Self::number(value.map_or("-".to_owned(), show))
    }

    /// The cell in another tone.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// A column of a table whose lines are `R`s: its head, as in [`Table::new`], and the function that
/// returns a line's cell.
pub type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> Cell);

/// A table under construction.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table of these columns; a head that begins with `>` is aligned to the right.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        let head = |head: &&str| match head.strip_prefix('>') {
            Some(head) => Cell::number(head).tone(Tone::Head),
            None => Cell::text(*head).tone(Tone::Head),
        };
        Self { rows: vec![heads.iter().map(head).collect()] }
    }

    /// A table with a line for each of `rows`.
    #[must_use]
    pub fn of<'a, R: 'a>(rows: impl IntoIterator<Item = &'a R>, columns: &[Column<'_, R>]) -> Self {
        let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
        let mut table = Self::new(&heads);
        for row in rows {
            table.row(columns.iter().map(|(_, cell)| cell(row)).collect());
        }
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table as text, with colours or without.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (index, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let fill = " ".repeat(width - cell.text.chars().count());
                let text = match cell.tone.code() {
                    code if colour && !code.is_empty() => format!("{code}{}\x1b[0m", cell.text),
                    _ => cell.text.clone(),
                };
                let gap = if index == 0 { "" } else { "  " };
                let (before, after) =
                    if cell.right { (fill.as_str(), "") } else { ("", fill.as_str()) };
                // Writing to a string does not fail.
                let _ = write!(line, "{gap}{before}{text}{after}");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Returns whether output to `stream` may be coloured: it is a terminal, and `NO_COLOR` is not set.
pub fn colour(stream: &impl std::io::IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns whether stdout may be coloured.
pub fn colour_stdout() -> bool {
    std::io::stdout().is_terminal() && colour(&std::io::stdout())
}

/// A count: in full below a thousand, then as by [`si`].
#[must_use]
pub fn count(count: u64) -> String {
    if count < 1000 { count.to_string() } else { si(count as f64) }
}

/// A number with three significant digits and a unit prefix: `12.3 M`.
#[must_use]
pub fn si(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    format!("{}{prefix}", digits(scaled))
}

/// A duration in nanoseconds with three significant digits and its unit: `1.20 ms`.
#[must_use]
pub fn duration(ns: f64) -> String {
    let (scaled, unit) = match ns.abs() {
        v if v >= 1e9 => (ns / 1e9, "s"),
        v if v >= 1e6 => (ns / 1e6, "ms"),
        v if v >= 1e3 => (ns / 1e3, "µs"),
        _ => (ns, "ns"),
    };
    format!("{} {unit}", digits(scaled))
}

/// A name of at most `letters` characters: a longer one keeps its beginning and its end.
#[must_use]
pub fn shortened(name: &str, letters: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= letters {
        return name.to_owned();
    }
    let kept = letters.saturating_sub(1);
    let (begin, end) = (&all[..kept.div_ceil(2)], &all[all.len() - kept / 2..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// Makes untrusted text safe for one line of a terminal: escapes control characters, characters
/// that change the writing direction, and those without width.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        let unseen = matches!(
            letter,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        );
        if letter.is_control() || unseen {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 || v == 0.0 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_and_without_colour() {
        let mut table = Table::new(&["lock", ">ns"]);
        table.row(vec![Cell::text("glibc"), Cell::number("7").tone(Tone::Bad)]);
        table.row(vec![Cell::text("µ"), Cell::number("12.3")]);
        assert_eq!(table.render(false), "lock     ns\nglibc     7\nµ      12.3\n");
        let coloured = table.render(true).replace("\x1b[1m", "").replace("\x1b[31m", "");
        assert_eq!(coloured.replace("\x1b[0m", ""), table.render(false));
    }

    #[test]
    fn what_a_terminal_would_obey_is_seen() {
        let text = "f\x1b[2J\u{9b}1m\x07\r\n\u{202e}\u{200b}\u{7f} µ…";
        let seen = r"f\u{1b}[2J\u{9b}1m\u{7}\r\n\u{202e}\u{200b}\u{7f} µ…";
        assert_eq!(printable(text), seen);
        let mut table = Table::new(&["site"]);
        table.row(vec![Cell::text(text)]);
        assert_eq!(table.render(false), format!("site\n{seen}\n"));
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("f+0x1 (a)", 9), "f+0x1 (a)");
        assert_eq!(shortened("f+0x1 (a)", 8), "f+0x…(a)");
        assert_eq!(shortened("f+0x1 (a)", 1), "…");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(si(12_345_678.0), "12.3 M");
        assert_eq!((count(7), count(1_000)), ("7".to_owned(), "1.00 k".to_owned()));
        assert_eq!(si(0.0), "0");
        assert_eq!(duration(1_204_000.0), "1.20 ms");
        assert_eq!(duration(99.96), "100 ns");
    }
}
