//! Parses the output of a test program: a line for each test that has ended.

use std::collections::BTreeMap;
use std::time::Duration;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The test passed.
    Passed,
    /// The test failed.
    Failed,
    /// The test was not run.
    Ignored,
}

/// The test in a line `test NAME ... ok`.
pub fn verdict(line: &str) -> Option<(&str, Verdict)> {
    let (name, said) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let verdict = match said {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        _ if said.starts_with("ignored") => Verdict::Ignored,
        _ => return None,
    };
    Some((name.strip_suffix(" - should panic").unwrap_or(name), verdict))
}

/// The numbers of passed and failed tests of a program, from its last line:
/// `test result: ok. 5 passed; 0 failed; …`.
pub fn counts(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = counts.split("; ").map(|part| {
        let (number, what) = part.split_once(' ')?;
        Some((what, number.parse().ok()?))
    });
    let passed = numbers.next().flatten().filter(|(what, _)| *what == "passed")?;
    let failed = numbers.next().flatten().filter(|(what, _)| *what == "failed")?;
    Some((passed.1, failed.1))
}

/// How long each test took, from the times when each has `ended` in a program that runs `parallel`
/// tests at a time.
///
/// The program does not print when a test begins. It begins the tests in the order of their names,
/// the first ones at once and a further one whenever one has ended.
pub fn times(ended: &[(String, Duration)], parallel: usize) -> BTreeMap<String, Duration> {
    let mut in_order: Vec<_> = ended.iter().collect();
    in_order.sort_by_key(|(name, _)| name);
    let begun = std::iter::repeat_n(Duration::ZERO, parallel.max(1))
        .chain(ended.iter().map(|(_, ended)| *ended));
    in_order
        .into_iter()
        .zip(begun)
        .map(|((name, ended), begun)| (name.clone(), ended.saturating_sub(begun)))
        .collect()
}

/// The tests that a program has listed (`--list --format=terse`).
pub fn listed(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_suffix(": test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_told_from_others() {
        assert_eq!(verdict("test a::b ... ok"), Some(("a::b", Verdict::Passed)));
        assert_eq!(verdict("test a ... FAILED"), Some(("a", Verdict::Failed)));
        assert_eq!(verdict("test a - should panic ... ok"), Some(("a", Verdict::Passed)));
        assert_eq!(verdict("test a ... ignored, slow"), Some(("a", Verdict::Ignored)));
        let documentation = "test crates/a/src/lib.rs - f (line 3) ... ok";
        assert_eq!(
            verdict(documentation),
            Some(("crates/a/src/lib.rs - f (line 3)", Verdict::Passed))
        );
        for other in ["", "test result: ok. 1 passed; 0 failed", "skipped: test ... no", "test a"] {
            assert_eq!(verdict(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_line_has_the_counts() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.01s";
        assert_eq!(counts(line), Some((12, 3)));
        assert_eq!(counts("test result: nothing"), None);
        assert_eq!(counts("test a ... ok"), None);
    }

    #[test]
    fn a_test_begins_when_another_has_ended() {
        let seconds = Duration::from_secs;
        let ended = |name: &str, at| (name.to_owned(), seconds(at));
        // `a` and `b` begin at 0; `c` when `b` ends, at 1; `d` when `c` ends, at 3.
        let all = [ended("b", 1), ended("c", 3), ended("a", 4), ended("d", 6)];
        let expected = [("a", 4), ("b", 1), ("c", 2), ("d", 3)];
        let expected = expected.map(|(name, took)| (name.to_owned(), seconds(took)));
        assert_eq!(times(&all, 2), BTreeMap::from(expected));
        // One after the other.
        let all = [ended("a", 2), ended("b", 5)];
        let times = times(&all, 1);
        assert_eq!((times["a"], times["b"]), (seconds(2), seconds(3)));
    }

    #[test]
    fn tests_are_read_from_a_list() {
        let listed: Vec<_> = listed("a: test\nb::c: test\nd: benchmark\n").collect();
        assert_eq!(listed, ["a", "b::c"]);
    }
}
