//! Limits the columns of lines and the lengths of files.

use super::Language;
use crate::finding::Finding;

/// The most characters in a line.
const COLUMNS: usize = 100;
/// The most lines of a source file without a reason.
const LINES: usize = 600;
/// The words that introduce the reason, in a comment among the first lines.
const REASON: &str = "Long because";
const FIRST_LINES: usize = 15;

/// Finds lines that are too wide, and files that are too long without a reason.
///
/// In Markdown, rows of tables and lines with an address may be of any width.
pub fn check(file: &str, language: Language, text: &str) -> Vec<Finding> {
    if language == Language::Other {
        return Vec::new();
    }
    let is_exempt = |line: &str| {
        language == Language::Markdown
            && (line.trim_start().starts_with('|') || line.contains("](") || line.contains("://"))
    };
    let mut findings: Vec<_> = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line, line.chars().count()))
        .filter(|&(_, line, width)| width > COLUMNS && !is_exempt(line))
        .map(|(number, _, width)| Finding::at(file, number, format!("{width} columns")))
        .collect();

    let length = text.lines().count();
    let has_reason = || text.lines().take(FIRST_LINES).any(|line| line.contains(REASON));
    if length > LINES && language != Language::Markdown && !has_reason() {
        let what = format!("{length} lines, and no `{REASON} …` in the first {FIRST_LINES}");
        findings.push(Finding::of(file, what));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(language: Language, text: &str) -> usize {
        check("f", language, text).len()
    }

    #[test]
    fn columns_are_characters() {
        assert_eq!(count(Language::Rust, &"é".repeat(100)), 0);
        let found = check("f", Language::Rust, &format!("\n{}", "é".repeat(101)));
        assert_eq!(found, [Finding::at("f", 2, "101 columns")]);
    }

    #[test]
    fn markdown_tables_and_addresses_are_exempt() {
        let wide = "x".repeat(101);
        assert_eq!(count(Language::Markdown, &wide), 1);
        assert_eq!(count(Language::Markdown, &format!("| {wide} |")), 0);
        assert_eq!(count(Language::Markdown, &format!("[a](b) {wide}")), 0);
        assert_eq!(count(Language::Rust, &format!("| {wide} |")), 1);
    }

    #[test]
    fn a_long_file_needs_a_reason_at_its_top() {
        let long = "\n".repeat(601);
        assert_eq!(count(Language::Rust, &"\n".repeat(600)), 0);
        assert_eq!(count(Language::Rust, &long), 1);
        assert_eq!(count(Language::Rust, &format!("//! Long because of a table.\n{long}")), 0);
        assert_eq!(count(Language::Rust, &format!("{long}// Long because of a table.")), 1);
        assert_eq!(count(Language::Markdown, &long), 0);
    }
}
