//! The list of models: names, limits, and that a model which shows too little does not pass.

use std::collections::BTreeSet;

use antiphon_check::Mode;
use antiphon_models::{Entry, Limits, TESTS, Test, Verdict, all, asked_for, beginning_with, find};

#[test]
fn names_are_unique_and_say_subject_property_and_case() {
    let entries = all();
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.name()).collect();
    assert_eq!(names.len(), entries.len());
    // Sorted, a name stands before those that begin with it.
    let mut pairs = names.iter().zip(names.iter().skip(1));
    assert!(pairs.all(|(name, next)| !next.starts_with(name)), "a whole name finds one model");
    for entry in &entries {
        let (subject, rest) = entry.name().split_once('/').expect("a subject");
        assert_eq!(subject, entry.subject());
        let (property, case) = rest.rsplit_once('-').expect("a case");
        assert!(!property.is_empty(), "{}", entry.name());
        // `3x2`: three threads, two rounds each. `2+1`: threads of each kind.
        let threads: u32 = match case.split_once('x') {
            Some((threads, _)) => threads.parse().unwrap(),
            None => case.split('+').map(|n| n.parse::<u32>().unwrap()).sum(),
        };
        assert_eq!(threads, entry.threads(), "{}", entry.name());
        assert!(entry.operations() >= entry.threads(), "{}", entry.name());
    }
}

#[test]
fn every_model_is_run_by_one_test_and_once() {
    let prefixes: Vec<_> = tests().flat_map(|test| test.prefixes).collect();
    for entry in all() {
        let runs = prefixes.iter().filter(|prefix| entry.name().starts_with(**prefix)).count();
        assert_eq!(runs, 1, "how often {} is run", entry.name());
    }
}

fn tests() -> impl Iterator<Item = &'static Test> {
    TESTS.iter().copied().flatten()
}

#[test]
fn models_are_found_by_name_and_by_prefix() {
    assert!(find("shfl-mutex/excludes-3x1").is_some());
    assert!(find("shfl-mutex/excludes").is_none());
    assert!(beginning_with("shfl-mutex/excludes-").len() > 1);
    assert_eq!(beginning_with("").len(), all().len());
    assert!(beginning_with("nothing").is_empty());
}

#[test]
fn a_long_model_runs_by_lot_unless_it_is_asked_for_by_its_whole_name() {
    let long: Vec<_> = all().into_iter().filter(Entry::is_long).collect();
    assert!(!long.is_empty());
    assert_eq!(asked_for("").len(), all().len());
    for entry in long {
        let subject = asked_for(entry.subject());
        let sampled = subject.iter().find(|other| other.name() == entry.name()).unwrap();
        assert!(sampled.lots().is_some_and(|executions| executions > 0));
        assert!(matches!(&asked_for(entry.name())[..], [whole] if whole.is_exhaustive()));
    }
}

#[test]
fn a_model_that_is_cut_short_has_not_passed() {
    for name in ["shfl-mutex/excludes-2x2", "shfl-mutex/excludes-4x2"] {
        let outcome = find(name).unwrap().check(Limits { executions: 1, ..Limits::NONE });
        assert_eq!(*outcome.verdict(), Verdict::Cut, "{outcome}");
        assert!(!outcome.verdict().is_bad());
        let passed = std::panic::catch_unwind(|| outcome.assert_passed().executions());
        assert!(passed.is_err());
    }
}

#[test]
fn a_model_runs_in_a_mode_that_is_not_its_own() {
    let entry = find("ticket/excludes-2x1").unwrap();
    let every = entry.run(Mode::Exhaustive, Limits::NONE);
    let lots = entry.run(Mode::Random { seed: 7, executions: 50 }, Limits::NONE);
    assert!(every.complete && every.failure.is_none() && lots.failure.is_none());
    assert_eq!(lots.executions + lots.discarded, 50);
    assert!(!lots.complete);
}
