//! Bad arguments, help, and the exit codes that scripts rely on.

use crate::common::{output, stderr};

#[test]
fn bad_arguments_are_2_and_one_line_that_says_what_would_be_right() {
    for (arguments, hint) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["try", "--pairs", "3", "--", "ls"], "6"),
        (&["try", "--pairs", "10"], "CMD"),
        (&["try", "--metric", "rate", "--", "ls"], "NAME=REGEX"),
        (&["locks", "--jsn"], "--json"),
        (&["locks", "--seconds", "1"], "--measure"),
        (&["locks", "--measure", "--seconds", "0"], "0.1"),
        (&["locks", "--measure", "--repetitions", "0"], "5"),
    ] {
        let output = output(arguments);
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
        assert!(line.contains(hint), "{arguments:?}: {line}");
    }
}

#[test]
fn a_wrappers_own_bad_arguments_are_125() {
    for arguments in [
        &["run"][..],
        &["run", "--nice", "--", "ls"],
        &["run", "--lock", "fast", "--", "ls"],
        &["run", "--report", "F.xml", "--", "ls"],
        &["run", "--report", "/no/such/folder/F.json", "--", "ls"],
    ] {
        assert_eq!(output(arguments).status.code(), Some(125), "{arguments:?}");
    }
}

#[test]
fn a_program_needs_no_dashes_before_it() {
    let output = output(&["run", "sh", "-c", "echo $1; exit 4", "sh", "--profile"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(4), &b"--profile\n"[..]));
}

#[test]
fn every_help_has_an_example() {
    for verb in ["run", "record", "try", "locks", "sched"] {
        let output = output(&[verb, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{verb}");
        assert!(help.contains(&format!("Example:\n  antiphon {verb}")), "{help}");
    }
}

#[test]
fn hidden_verbs_and_verbs_to_come_are_not_in_the_help() {
    let help = String::from_utf8_lossy(&output(&["--help"]).stdout).into_owned();
    for verb in ["run", "record", "replay", "sim", "try", "bench", "validate", "sched", "lab"] {
        assert!(help.contains(&format!("\n  {verb} ")), "{help}");
    }
    for verb in ["__", "deploy"] {
        assert!(!help.contains(verb), "{help}");
    }
}
