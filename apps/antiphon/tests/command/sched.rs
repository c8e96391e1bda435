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
