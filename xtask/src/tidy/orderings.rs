//! Sequential consistency: in the crates of algorithms, only fences may use it.
//!
//! A sequentially consistent access orders less than its readers believe and costs more than the
//! fence that is meant; see rule 4 of the seam.

use crate::finding::Finding;
use crate::source::{closing, in_use, is_word, line_of, words};

const ROOMS: [&str; 4] =
    ["crates/sync/src/", "crates/rivals/src/", "crates/runtime/src/", "crates/platform/src/"];

/// Each `SeqCst` that is not the argument of a fence.
pub fn check(file: &str, masked: &str) -> Vec<Finding> {
    if !ROOMS.iter().any(|room| file.starts_with(room)) {
        return Vec::new();
    }
    let fences = fence_arguments(masked);
    words(masked, "SeqCst")
        .filter(|&at| !in_use(masked, at) && !fences.iter().any(|fence| fence.contains(&at)))
        .map(|at| Finding::at(file, line_of(masked, at), "`SeqCst` outside of `fence(…)`"))
        .collect()
}

fn fence_arguments(masked: &str) -> Vec<std::ops::Range<usize>> {
    masked
        .match_indices("fence(")
        .filter(|&(at, _)| at == 0 || !is_word(masked.as_bytes()[at - 1]))
        .filter_map(|(at, text)| {
            let open = at + text.len() - 1;
            Some(open..closing(masked, open)?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: &str = "use a::{SeqCst, Relaxed};\nfn f() {\n    P::fence(SeqCst);\n    \
                       P::fence(\n        Ordering::SeqCst,\n    );\n    x.load(SeqCst);\n    \
                       not_a_fence(SeqCst);\n}\n";

    #[test]
    fn only_fences_may_be_sequentially_consistent() {
        let lines: Vec<_> =
            check("crates/sync/src/a.rs", BAD).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [7, 8]);
    }

    #[test]
    fn back_ends_are_free() {
        assert!(check("crates/linux/src/a.rs", BAD).is_empty());
    }
}
