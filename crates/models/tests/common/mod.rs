//! What the tests share: a test is a few models, and each model has its test.

use antiphon_models::{Limits, all, beginning_with};

/// Runs the models whose names begin with one of `prefixes`, except the long ones.
#[track_caller]
pub fn check(prefixes: &[&str]) {
    for prefix in prefixes {
        let chosen = beginning_with(prefix);
        assert!(!chosen.is_empty(), "no model is called {prefix}…");
        for entry in chosen.iter().filter(|entry| !entry.is_long()) {
            println!("{}", entry.check(Limits::NONE).assert_passed());
        }
    }
}

/// Fails unless each model of `subjects` has one of `prefixes`, and not two.
#[track_caller]
pub fn check_coverage(subjects: &[&str], prefixes: &[&str]) {
    for entry in all().iter().filter(|entry| subjects.contains(&entry.subject())) {
        let tests = prefixes.iter().filter(|prefix| entry.name().starts_with(**prefix)).count();
        assert_eq!(tests, 1, "{} is run by {tests} tests", entry.name());
    }
}

/// One test for each name, which runs the models with the prefixes behind it; and one test that
/// no model of the subjects is left out.
macro_rules! models {
    ($subjects:expr; $($test:ident: $prefixes:expr,)+) => {
        $(
            #[test]
            fn $test() {
                common::check(&$prefixes);
            }
        )+

        #[test]
        fn every_model_is_run_once() {
            common::check_coverage(&$subjects, &[$(&$prefixes[..]),+].concat());
        }
    };
}
