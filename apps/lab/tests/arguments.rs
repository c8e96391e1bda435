//! Bad arguments and help.

mod common;

use common::{output, refused, stderr};

#[test]
fn bad_arguments_are_2_and_one_line_that_says_what_would_be_right() {
    for (arguments, hint) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["bench", "locks", "--load", "loud"], "noisy"),
        (&["bench", "locks", "--load", "idle,crowd=301"], "crowd=300"),
        (&["bench", "locks", "--subject", "mutex"], "shfl-mutex"),
        (&["bench", "locks", "--against", "futex2"], "parking_lot"),
        (&["bench", "locks", "--case", "longest"], "justine"),
        (&["bench", "locks", "--threads", "0"], "2,4,8"),
        (&["bench", "locks", "--seconds", "-1"], "0.2"),
        (&["bench", "locks", "--repetitions", "0"], "11"),
        (&["bench", "rwlocks", "--reads", "101"], "100,90,50"),
        (&["bench", "rwlocks", "--subject", "shfl-mutex"], "shfl-rwlock"),
        (&["bench", "rwlocks", "--against", "glibc-adaptive"], "glibc-writer"),
        (&["bench", "rwlocks", "--case", "readers"], "continuous"),
        (&["bench", "rwlocks", "--seconds", "0"], "0.2"),
        (&["bench", "rwlocks", "--case", "continuous", "--threads", "1"], "--threads 2"),
        (&["bench", "events", "--case", "awake"], "busy-target"),
        (&["bench", "events", "--case", "broadcast-0"], "broadcast-N"),
        (&["bench", "events", "--gap-us", "0"], "3,50,1000"),
        (&["bench", "events", "--target", "one"], "0,2-5"),
        (&["bench", "events", "--target", "4095"], "--target"),
        (&["bench", "events", "--html", "/no/such/folder/F"], "--html"),
        (&["bench", "events", "--trials", "9"], "100"),
        (&["bench", "events", "--subject", "futex"], "condvar"),
        (&["bench", "events", "--against", "smoke"], "eventfd"),
        (&["bench", "events", "--seconds", "0"], "0.2"),
    ] {
        let line = refused(arguments);
        assert!(line.contains(hint), "{arguments:?}: {line}");
    }
}

#[test]
fn a_verb_without_the_next_one_lists_those_that_there_are() {
    let output = output(&["bench"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = stderr(&output);
    assert!(
        said.contains("Usage: antiphon bench <COMMAND>") && said.contains("  locks "),
        "{said}"
    );
}

#[test]
fn every_help_has_an_example() {
    let verbs: [&[&str]; 4] =
        [&["bench", "locks"], &["bench", "rwlocks"], &["bench", "events"], &["lab", "check"]];
    for verb in verbs {
        let output = output(&[verb, &["--help"]].concat());
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{verb:?}");
        assert!(help.contains(&format!("Example:\n  antiphon {}", verb.join(" "))), "{help}");
    }
}

#[test]
fn hidden_verbs_are_not_in_the_help() {
    let help = String::from_utf8_lossy(&output(&["--help"]).stdout).into_owned();
    for verb in ["bench", "sim", "validate", "lab"] {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
    }
    assert!(!help.contains("__"), "{help}");
}
