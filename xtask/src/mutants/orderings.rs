//! Mutants that weaken each memory ordering above `Relaxed`.
//!
//! | in the source | tried in turn |
//! |---|---|
//! | `AcqRel` | `Acquire`, `Release` |
//! | `Acquire`, `Release` | `Relaxed` |
//! | `fence(SeqCst)` | `fence(AcqRel)`, no fence |
//! | any other fence | no fence |
//!
//! Imports and the tests at the end of a file are left alone.

use std::ops::Range;

use super::mutant::{FULL_PATH, Mutant};
use crate::source::{closing, in_use, is_word, mask, words};

/// Returns whether the orderings of `file` are weakened.
pub fn covers(file: &str) -> bool {
    let rooms =
        ["crates/sync/src/", "crates/rivals/src/", "crates/runtime/src/", "crates/wakeup/src/"];
    let is_algorithm = rooms.iter().any(|room| file.starts_with(room))
        && file.ends_with(".rs")
        && !file.ends_with("/tests.rs")
        && !file.contains("/tests/");
    let others =
        ["platform/src/arena.rs", "record/src/events/pen.rs", "record/src/events/shelf.rs"];
    // The bare-metal kernel's protocol; the rest of it runs in an emulator only.
    let others = [&others[..], &["metal/src/channel.rs", "metal/src/scheduler.rs"]].concat();
    is_algorithm || file.strip_prefix("crates/").is_some_and(|file| others.contains(&file))
}

/// The mutants of a file, ordered by place.
pub fn mutants(file: &str, text: &str) -> Vec<Mutant> {
    let masked = mask(text);
    let code = &masked[..tests_begin(&masked)];
    let fences = fences(code);
    let mut mutants = Vec::new();
    for (ordering, weaker) in [
        ("SeqCst", &["AcqRel"][..]),
        ("AcqRel", &["Acquire", "Release"]),
        ("Acquire", &["Relaxed"]),
        ("Release", &["Relaxed"]),
    ] {
        for at in words(code, ordering).filter(|&at| is_ordering(code, at)) {
            let in_fence = fences.iter().any(|fence| fence.contains(&at));
            // A relaxed fence has no effect: that mutant is the removal below.
            if in_fence != (ordering == "SeqCst") {
                continue;
            }
            let path = if code[..at].ends_with("::") { "" } else { FULL_PATH };
            mutants.extend(weaker.iter().map(|weaker| {
                Mutant::new(file, text, at..at + ordering.len(), &format!("{path}{weaker}"))
            }));
        }
    }
    mutants.extend(fences.into_iter().map(|fence| Mutant::new(file, text, fence, "()")));
    mutants.sort_by_key(|mutant| mutant.range.start);
    mutants
}

/// Whether the word at `at` is a memory ordering in use.
fn is_ordering(code: &str, at: usize) -> bool {
    let before = &code[..at];
    let is_foreign = before.ends_with("::") && !before.ends_with("Ordering::");
    !is_foreign && !in_use(code, at)
}

/// The calls of `fence`, each with the path before it.
fn fences(code: &str) -> Vec<Range<usize>> {
    let bytes = code.as_bytes();
    words(code, "fence")
        .filter(|&at| bytes.get(at + "fence".len()) == Some(&b'('))
        .filter(|&at| !code[..at].trim_end().ends_with("fn"))
        .filter_map(|at| {
            let path = bytes[..at].iter().rev().take_while(|&&b| is_word(b) || b == b':').count();
            Some(at - path..closing(code, at + "fence".len())?)
        })
        .collect()
}

/// The place where the tests of a file begin; its end if it has none.
fn tests_begin(masked: &str) -> usize {
    masked
        .match_indices("#[cfg(test)]")
        .map(|(at, attribute)| (at, masked[at + attribute.len()..].trim_start()))
        .find(|(_, rest)| rest.starts_with("mod "))
        .map_or(masked.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        mutants("f", text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_ordering_is_weakened_by_a_step() {
        let text = "use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};\n\
                    a.load(Acquire);\nb.store(1, Ordering::Release);\nc.swap(2, Relaxed);\n\
                    d.compare_exchange(1, 2, AcqRel, Acquire); // Release: pairs with Acquire\n";
        assert_eq!(
            shown(text),
            [
                "f:2 Acquire → Relaxed",
                "f:3 Release → Relaxed",
                "f:5 AcqRel → Acquire",
                "f:5 AcqRel → Release",
                "f:5 Acquire → Relaxed",
            ]
        );
    }

    #[test]
    fn a_bare_name_is_replaced_by_one_that_needs_no_import() {
        let text = "a.load(Acquire); b.load(Ordering::Acquire);";
        let texts: Vec<_> = mutants("f", text).iter().map(|mutant| mutant.apply(text)).collect();
        assert_eq!(
            texts,
            [
                "a.load(::core::sync::atomic::Ordering::Relaxed); b.load(Ordering::Acquire);",
                "a.load(Acquire); b.load(Ordering::Relaxed);",
            ]
        );
    }

    #[test]
    fn fences_are_weakened_and_removed() {
        let text = "fn fence(o: Ordering);\nP::fence(SeqCst);\nfence(\n    Ordering::Acquire,\n);\n\
                    P::heavy_fence();\n";
        assert_eq!(
            shown(text),
            [
                "f:2 P::fence(SeqCst) → ()",
                "f:2 SeqCst → AcqRel",
                "f:3 fence( Ordering::Acquire, ) → ()"
            ]
        );
    }

    #[test]
    fn other_names_and_tests_are_left_alone() {
        let text = "let a = Step::Acquire;\nlet b = Acquired;\nlet c = \"Acquire\";\n\
                    #[cfg(test)]\nmod tests { fn f() { a.load(Acquire); } }\n";
        assert_eq!(shown(text), Vec::<String>::new());
    }

    #[test]
    fn algorithms_and_the_arena_are_covered() {
        assert!(covers("crates/sync/src/lock/shfl.rs"));
        assert!(covers("crates/runtime/src/message/ring.rs"));
        assert!(covers("crates/platform/src/arena.rs"));
        assert!(covers("crates/wakeup/src/inbox.rs"));
        assert!(!covers("crates/metal/src/kernel/schedule.rs"));
        assert!(!covers("crates/platform/src/lib.rs"));
        assert!(!covers("crates/models/src/mutex.rs"));
        assert!(!covers("crates/runtime/src/event_loop/tests/mod.rs"));
    }
}
