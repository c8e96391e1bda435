//! Checks that each `unsafe impl` has a reason. (Clippy checks `unsafe` blocks.)

use crate::finding::Finding;
use crate::source::{line_of, words};

/// Each `unsafe impl` without `SAFETY:` in the comment right above it.
pub fn check(file: &str, text: &str, masked: &str) -> Vec<Finding> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    words(masked, "unsafe")
        .filter(|&at| masked[at + "unsafe".len()..].trim_start().starts_with("impl"))
        .map(|at| line_of(masked, at))
        .filter(|&line| {
            let mut above = lines[..line - 1]
                .iter()
                .rev()
                .take_while(|l| l.starts_with("//") || l.starts_with('#'));
            !above.any(|l| l.contains("SAFETY:"))
        })
        .map(|line| Finding::at(file, line, "`unsafe impl` without a `SAFETY:` comment above it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mask;

    #[test]
    fn each_impl_needs_its_own_reason() {
        let text = "// SAFETY: as below.\n// It is plain data.\n#[allow(x)]\nunsafe impl Send for \
                    A {}\nunsafe impl Sync for A {}\n\n// no reason\nunsafe impl<T> Send for B<T> \
                    {}\n// unsafe impl\nunsafe fn f() {}\n";
        let lines: Vec<_> = check("f", text, &mask(text)).iter().map(|f| f.line).collect();
        assert_eq!(lines, [5, 8]);
    }
}
