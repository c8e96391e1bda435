//! `antiphon sched` on a machine that can't have the scheduler, or on which none runs.

use std::path::Path;

use crate::common::{output, stderr};

#[test]
fn what_is_missing_is_named_and_the_exit_code_is_69() {
    for arguments in [&["sched", "--status"][..], &["sched", "--status", "--json"]] {
        let output = output(arguments);
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(69), "{line}");
        assert!(output.stdout.is_empty() && line.lines().count() == 1, "{line}");
        if !Path::new("/sys/kernel/sched_ext").exists() {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
            assert!(line.contains(&format!("Linux {}", release.trim())), "{line}");
            assert!(line.contains("boot"), "no remedy: {line}");
        }
    }
}

#[test]
fn it_is_started_asked_or_ended() {
    for arguments in [&["sched", "--status", "--stop"][..], &["sched", "--full", "--status"]] {
        assert_eq!(output(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_manual_has_every_option_of_the_help_and_no_other() {
    let help = String::from_utf8(output(&["sched", "--help"]).stdout).unwrap();
    let manual = include_str!("../../../../docs/man/antiphon-sched.8").replace("\\-", "-");
    let options = |text: &str| {
        let ends = |c: char| !c.is_ascii_lowercase() && c != '-';
        let lines = text.lines().map(str::trim_start);
        let names = lines.filter(|line| line.starts_with("--") || line.starts_with(".B"));
        let names = names.filter_map(|line| Some(&line[line.find("--")?..]));
        let names = names.filter_map(|name| Some(name.split(ends).next()?.to_owned()));
        let all = names.filter(|name| !["--", "--help"].contains(&name.as_str()));
        all.collect::<std::collections::BTreeSet<_>>()
    };
    assert!(options(&help).len() >= 5, "{help}");
    assert_eq!(options(&manual), options(&help), "{help}");
}
