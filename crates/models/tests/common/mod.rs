//! Runs the models of a test.

use antiphon_models::{Limits, beginning_with};

/// Runs the models whose names begin with one of `prefixes`, the long ones by lot.
#[track_caller]
pub fn check(prefixes: &[&str]) {
    for prefix in prefixes {
        let chosen = beginning_with(prefix);
        assert!(!chosen.is_empty(), "no model is called {prefix}…");
        for entry in chosen {
            println!("{}", entry.sampled().check(Limits::NONE).assert_passed());
        }
    }
}

/// Makes the tests of a program's table.
macro_rules! models {
    ($program:ident: $($test:ident: $prefixes:expr,)+) => {
        $(
            #[test]
            fn $test() {
                common::check(&$prefixes);
            }
        )+
    };
}
