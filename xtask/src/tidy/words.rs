//! Finds words that must not be in the tree.
//!
//! The lists are spelled in halves, so that this file passes its own check.

use super::Language;
use crate::finding::Finding;
use crate::source::{is_word, words};

/// Marks of unfinished work, as whole words.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Rust code that does not do what it seems to do.
const HOLLOW: [&str; 3] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
/// Shell code that hides a failure.
const SWALLOWED: [&str; 2] = [concat!("|| ", "true"), concat!("|| ", ":")];
/// The beginnings of paths of one machine.
const MACHINE: [&str; 5] = [
    concat!("/ho", "me"),
    concat!("/ro", "ot"),
    concat!("/wo", "rk"),
    concat!("/Us", "ers"),
    concat!("/tmp/", "target"),
];

/// Finds lines with a word of the lists.
pub fn check(file: &str, language: Language, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut find = |word: &str| {
            findings.push(Finding::at(file, index + 1, format!("`{word}` stays out of the tree")));
        };
        for word in UNFINISHED {
            if words(line, word).next().is_some() {
                find(word);
            }
        }
        let banned: &[&str] = match language {
            Language::Rust => &HOLLOW,
            Language::Shell => &SWALLOWED,
            _ => &[],
        };
        for word in banned.iter().filter(|word| line.contains(**word)) {
            find(word);
        }
        for start in MACHINE.iter().filter(|start| has_path(line, start)) {
            find(start);
        }
    }
    findings
}

/// Whether a path of `line` begins with `start`.
fn has_path(line: &str, start: &str) -> bool {
    let bytes = line.as_bytes();
    line.match_indices(start).any(|(at, _)| {
        // In the middle of a longer path, or of an address, the word belongs to another name.
        let inside = at > 0 && {
            let before = bytes[at - 1];
            is_word(before) || b".-~}*/".contains(&before)
        };
        let longer = bytes.get(at + start.len()).is_some_and(|&byte| is_word(byte));
        !inside && !longer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(language: Language, text: &str) -> usize {
        check("f", language, text).len()
    }

    #[test]
    fn unfinished_work_is_found_everywhere() {
        for word in UNFINISHED {
            assert_eq!(count(Language::Other, &format!("a\n# {word}: later")), 1, "{word}");
            assert_eq!(count(Language::Rust, &format!("let A_{word}S = 1;")), 0, "{word}");
        }
    }

    #[test]
    fn hollow_code_is_found_in_rust_and_swallowed_errors_in_shell() {
        for word in HOLLOW {
            assert_eq!(count(Language::Rust, &format!("  {word}]")), 1, "{word}");
        }
        for word in SWALLOWED {
            assert_eq!(count(Language::Shell, &format!("cmd {word}")), 1, "{word}");
            assert_eq!(count(Language::Rust, &format!("a {word}")), 0, "{word}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for start in MACHINE {
            assert_eq!(count(Language::Other, &format!("cd {start}/x")), 1, "{start}");
            assert_eq!(count(Language::Other, &format!("p = \"{start}\"")), 1, "{start}");
            assert_eq!(count(Language::Other, &format!("a{start}/x")), 0, "{start}");
        }
        assert_eq!(count(Language::Other, concat!("/wor", "kers and /roo", "ts")), 0);
    }
}
