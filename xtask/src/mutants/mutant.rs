//! One replacement in one file.

use std::fmt;
use std::ops::Range;

use crate::source::line_of;

/// A change of the code that the models should notice.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The file, relative to the root of the tree.
    pub file: String,
    /// The line of the change, counted from 1.
    pub line: usize,
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The text that is replaced.
    pub old: String,
    /// The text that replaces it.
    pub new: String,
    /// The entry of the table that it comes from: its name and the invariant that it breaks.
    pub entry: Option<String>,
    /// Why it may survive, if the source says so.
    pub explanation: Option<String>,
    /// The tests that must all fail, as `BINARY` or `BINARY::TEST`; if empty, any test may.
    pub killed_by: Vec<String>,
}

impl Mutant {
    /// The mutant that replaces `range` of `text` by `new`.
    pub fn new(file: &str, text: &str, range: Range<usize>, new: &str) -> Self {
        let line = line_of(text, range.start);
        Self {
            file: file.to_owned(),
            line,
            old: text[range.clone()].to_owned(),
            new: new.to_owned(),
            entry: None,
            explanation: explanation(text, line),
            killed_by: Vec::new(),
            range,
        }
    }

    /// `text` with the change.
    pub fn apply(&self, text: &str) -> String {
        [&text[..self.range.start], &self.new, &text[self.range.end..]].concat()
    }
}

/// `file:line old → new`, on one line; the alternate form omits the place.
impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{}:{} ", self.file, self.line)?;
        }
        match &self.entry {
            Some(entry) => write!(f, "{entry}"),
            None => write!(f, "{} → {}", brief(&self.old), brief(&self.new)),
        }
    }
}

fn brief(text: &str) -> String {
    text.replace(FULL_PATH, "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The path of an ordering, used where the file may not import it.
pub const FULL_PATH: &str = "::core::sync::atomic::Ordering::";

/// The reason after `mutant:` in a comment on the line, or in the comment right above it.
fn explanation(text: &str, line: usize) -> Option<String> {
    let lines: Vec<_> = text.lines().collect();
    let above = lines[..line - 1].iter().rev().take_while(|l| l.trim_start().starts_with("//"));
    lines[line - 1..line]
        .iter()
        .chain(above)
        .find_map(|line| Some(line.split_once("// mutant:")?.1.trim().to_owned()))
        .filter(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_changes_its_place_and_nothing_else() {
        let text = "a\nb c\nd\n";
        let mutant = Mutant::new("f", text, 4..5, "x  y");
        assert_eq!(mutant.apply(text), "a\nb x  y\nd\n");
        assert_eq!(mutant.to_string(), "f:2 c → x y");
        assert_eq!(format!("{mutant:#}"), "c → x y");
    }

    #[test]
    fn an_explanation_stands_on_the_line_or_in_the_comment_above() {
        let explained = |text: &str, line| explanation(text, line).is_some();
        assert!(explained("x(Acquire); // mutant: why", 1));
        assert!(explained("// mutant: why\nx(Acquire);", 2));
        assert!(explained("// mutant: why,\n// and more\nx(Acquire);", 3));
        assert!(!explained("// mutant:\nx(Acquire);", 2), "without a reason");
        assert!(!explained("y(); // mutant: why\nx(Acquire);", 2), "of another line");
        assert!(!explained("// mutant: why\n\nx(Acquire);", 3), "not right above");
    }
}
