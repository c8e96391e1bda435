//! The models: a module for each subject of the table in `src/tests.rs`, with its tests.

use antiphon_models::{Limits, beginning_with};

/// Runs the models whose names begin with one of `prefixes`, the long ones by lot.
#[track_caller]
fn check(prefixes: &[&str]) {
    for prefix in prefixes {
        let chosen = beginning_with(prefix);
        assert!(!chosen.is_empty(), "no model is called {prefix}…");
        for entry in chosen {
            println!("{}", entry.sampled().check(Limits::NONE).assert_passed());
        }
    }
}

macro_rules! tests {
    ($subject:ident: $($test:ident: $prefixes:expr,)+) => {
        $(
            #[test]
            fn $test() {
                crate::check(&$prefixes);
            }
        )+
    };
}

macro_rules! modules {
    ($($subject:ident,)+) => {
        $(
            mod $subject {
                antiphon_models::tests! { $subject: tests }
            }
        )+
    };
}

antiphon_models::subjects!(modules);
