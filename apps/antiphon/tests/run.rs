//! `run`: a program behaves under it as it does without.

mod common;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{FRAME, Folder, antiphon, has_keys, output, stderr};
use serde_json::Value;

fn report(folder: &Folder, arguments: &[&str], program: &[&str]) -> (Value, Option<i32>) {
    let file = folder.path("report.json");
    let arguments = [&["run", "--report", &file], arguments, &["--"], program].concat();
    let code = output(&arguments).status.code();
    let text = std::fs::read(&file).expect("a report");
    (serde_json::from_slice(&text).expect("JSON"), code)
}

#[test]
fn exits_as_the_program_does() {
    for (script, code) in
        [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        assert_eq!(
            output(&["run", "--", "sh", "-c", script]).status.code(),
            Some(code),
            "{script}"
        );
    }
}

#[test]
fn what_can_not_be_run_is_126_and_what_is_not_there_127() {
    assert_eq!(output(&["run", "--", "/etc/passwd"]).status.code(), Some(126));
    assert_eq!(output(&["run", "--", "/etc"]).status.code(), Some(126));
    assert_eq!(output(&["run", "--", "/no/such/program"]).status.code(), Some(127));
    let missing = output(&["run", "--", "no-such-program-here"]);
    assert_eq!(missing.status.code(), Some(127));
    assert_eq!(stderr(&missing).lines().count(), 1);
}

#[test]
fn what_is_wrong_with_a_program_is_said_in_a_line() {
    let folder = Folder::new("rude");
    let file = |name: &str, contents: &[u8], mode: u32| {
        let path = folder.path(name);
        std::fs::write(&path, contents).expect("a file");
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, rights).expect("rights");
        path
    };
    let cases = [
        (String::new(), 127, "CMD is empty"),
        (folder.path(""), 126, "a directory"),
        (folder.path("missing"), 127, "no such file"),
        (file("plain", b"", 0o644), 126, "chmod +x"),
        (file("script", b"echo\n", 0o755), 126, "#!/bin/sh"),
        (file("lost", b"#!/no/such/shell\n", 0o755), 127, "/no/such/shell"),
        (file("damaged", b"\x7fELF\x02\x01\x01", 0o755), 126, "damaged"),
    ];
    for (program, code, words) in cases {
        for (verb, code) in [("run", code), ("try", 69)] {
            let output = output(&[verb, "--", &program]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{verb} {program}: {said}");
            assert!(said.contains(words) && said.lines().count() == 1, "{verb} {program}: {said}");
        }
    }
}

#[test]
fn a_library_that_is_told_to_step_aside_replaces_nothing_and_that_is_said() {
    let of = |arguments: &[&str]| {
        let output = antiphon(arguments).env("ANTIPHON_DISABLE", "1").output();
        output.expect("the command starts")
    };
    let run = of(&["run", "--", "sh", "-c", "exit 3"]);
    assert_eq!(run.status.code(), Some(3));
    assert!(stderr(&run).contains("ANTIPHON_DISABLE is set"), "{}", stderr(&run));
    assert_eq!(of(&["try", "--", "true"]).status.code(), Some(69));
}

#[test]
fn the_form_that_was_used_is_in_the_report() {
    let folder = Folder::new("form");
    let program = folder.compile("locks.c", &[]);
    let (exchange, _) = report(&folder, &[], &[&program]);
    assert_eq!((&exchange["light_processes"], &exchange["processes"]), (&0.into(), &1.into()));
    let (light, code) = report(&folder, &["--lock", "shfl-mutex+light"], &[&program]);
    assert_eq!((code, &light["processes"]), (Some(7), &1.into()));
    let said = format!("in {} of 1 processes", light["light_processes"]);
    assert!(light["notes"][0].as_str().is_some_and(|note| note.contains(&said)), "{light:#}");
    // On any machine, the light form needs the C library's support.
    let file = folder.path("off.json");
    let off = antiphon(&["run", "--lock", "shfl-mutex+light", "--report", &file, "--", &program])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .output();
    assert_eq!(off.expect("the command starts").status.code(), Some(7));
    let text = std::fs::read(&file).expect("a report");
    let off: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(off["light_processes"], 0, "{off:#}");
}

#[test]
fn standard_input_and_output_are_the_programs_own() {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut child = antiphon(&["run", "--profile", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut input = child.stdin.take().expect("a pipe");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let output = child.wait_with_output().expect("an end");
    assert!(writer.join().is_ok_and(|written| written.is_ok()));
    assert!(output.status.success() && output.stdout == bytes);
}

#[test]
fn a_profile_counts_each_acquisition_by_call_site() {
    let folder = Folder::new("profile");
    let program = folder.compile("locks.c", &[]);
    let (report, code) = report(&folder, &["--profile"], &[&program]);
    assert_eq!(code, Some(7));
    has_keys(&report, &FRAME);
    has_keys(&report, &["locks", "order", "threads", "wall_s", "blocked_s", "reachable_share"]);
    has_keys(&report["order"], &["depth_mean", "depth_max", "inversions"]);
    let locks = report["locks"].as_array().expect("a list");
    for lock in locks {
        has_keys(lock, &["site", "kind", "address", "acquisitions", "contended"]);
        has_keys(&lock["wait_ns"], &["p50", "p99", "max", "sum"]);
        has_keys(&lock["hold_ns"], &["p50", "p99", "max", "sum"]);
    }
    let counter = locks
        .iter()
        .find(|lock| lock["site"].as_str().is_some_and(|site| site.starts_with("add_under_lock+")))
        .expect("the call site of the counter");
    assert_eq!((&counter["acquisitions"], &counter["kind"]), (&2000.into(), &"mutex".into()));
    // The lock is held for at least 50 µs each time.
    assert!(counter["hold_ns"]["sum"].as_u64().is_some_and(|ns| ns >= 2000 * 50_000));
    assert!(locks.iter().any(|lock| lock["kind"] == "cond"));
    assert!(report["reachable_share"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0));
}

#[test]
fn without_a_profile_waits_are_recorded() {
    let folder = Folder::new("waits");
    let program = folder.compile("locks.c", &[]);
    let (report, _) = report(&folder, &[], &[&program]);
    let locks = report["locks"].as_array().expect("a list");
    assert!(locks.iter().any(|lock| lock["contended"].as_u64() > Some(0)), "{report:#}");
    assert!(report["blocked_s"]["condition"].as_f64().is_some_and(|s| s > 0.05), "{report:#}");
}

#[test]
fn the_report_for_people_is_on_stderr_and_in_a_file() {
    let folder = Folder::new("people");
    let program = folder.compile("locks.c", &[]);
    for name in ["report.txt", "report.html"] {
        let file = folder.path(name);
        let output = output(&["run", "--profile", "--report", &file, "--", &program]);
        assert_eq!(output.stdout, b"2000\n");
        let text = std::fs::read_to_string(&file).expect("a report");
        for report in [text, stderr(&output)] {
            assert!(report.contains("add_under_lock+"), "{report}");
            assert!(report.contains("condition variables"), "{report}");
            assert!(report.contains("threads seen"), "{report}");
            assert!(!report.contains("\x1b["), "{report}");
        }
    }
}

#[test]
fn a_static_program_runs_and_is_told_from_others() {
    let folder = Folder::new("static");
    let program = folder.compile("locks.c", &["-static"]);
    let output = output(&["run", "--", &program]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b"2000\n"[..]));
    assert!(stderr(&output).contains("statically linked"), "{}", stderr(&output));
}

#[test]
fn glibc_keeps_the_programs_own_locks() {
    let folder = Folder::new("glibc");
    let script = "echo \"<$LD_PRELOAD>\"";
    let kept = output(&["run", "--lock", "glibc", "--", "sh", "-c", script]);
    let ours = output(&["run", "--", "sh", "-c", script]);
    let kept = String::from_utf8_lossy(&kept.stdout).into_owned();
    assert!(!kept.contains("antiphon"), "{kept}");
    assert!(String::from_utf8_lossy(&ours.stdout).contains("antiphon-preload.so"));
    let (report, _) = report(&folder, &["--lock", "glibc"], &["true"]);
    assert_eq!(report["reachable_share"], Value::Null);
}

#[test]
fn glibcs_own_locks_are_profiled_from_inside_like_ours() {
    let folder = Folder::new("inside");
    let program = folder.compile("locks.c", &[]);
    let run = |lock: &str| {
        let arguments = ["--profile", "--lock", lock];
        let (report, code) = report(&folder, &arguments, &[&program]);
        assert_eq!((code, &report["processes"]), (Some(7), &1.into()), "{report:#}");
        let locks = report["locks"].as_array().expect("a list").clone();
        let counter = locks.iter().find(|lock| {
            lock["site"].as_str().is_some_and(|site| site.starts_with("add_under_lock+"))
        });
        let counter = counter.expect("the call site of the counter").clone();
        assert!(counter["contended"].as_u64() > Some(0), "{lock}: {counter:#}");
        assert!(counter["wait_ns"]["sum"].as_u64() > Some(0), "{lock}: {counter:#}");
        // The lock is held for at least 50 µs each time.
        assert!(counter["hold_ns"]["sum"].as_u64() >= Some(2000 * 50_000), "{lock}: {counter:#}");
        assert!(locks.iter().any(|lock| lock["kind"] == "cond"), "{report:#}");
        assert!(report["blocked_s"]["mutex"].as_f64() > Some(0.0), "{report:#}");
        let share = report["reachable_share"].as_f64();
        assert!(share.is_some_and(|share| share > 0.0 && share <= 1.0), "{report:#}");
        (counter["site"].clone(), counter["kind"].clone(), counter["acquisitions"].clone(), report)
    };
    let (ours, theirs) = (run("shfl-mutex"), run("glibc"));
    assert_eq!(theirs.2, 2000);
    assert_eq!((&ours.0, &ours.1, &ours.2), (&theirs.0, &theirs.1, &theirs.2));
    let note = theirs.3["notes"][0].as_str().unwrap_or("");
    assert!(note.contains("from inside"), "{note}");
}

#[test]
fn readers_and_writers_of_a_lock_have_rows_of_their_own() {
    let folder = Folder::new("shared");
    let program = folder.compile("shared.c", &[]);
    for lock in ["shfl-mutex", "glibc"] {
        let (report, code) = report(&folder, &["--profile", "--lock", lock], &[&program]);
        assert_eq!(code, Some(7));
        let locks = report["locks"].as_array().expect("a list");
        assert_eq!(locks.len(), 2, "{report:#}");
        for (kind, site) in [("rdlock", "read_it+"), ("wrlock", "write_it+")] {
            let row = locks.iter().find(|row| row["kind"] == kind).expect("a row");
            assert!(row["site"].as_str().is_some_and(|at| at.starts_with(site)), "{report:#}");
            assert_eq!((&row["acquisitions"], &row["contended"]), (&2.into(), &1.into()));
            // The waiter may be late, but not by most of the time.
            assert!(row["wait_ns"]["max"].as_u64() >= Some(5_000_000), "{row:#}");
            assert!(row["hold_ns"]["max"].as_u64() >= Some(50_000_000), "{row:#}");
        }
        assert_eq!(locks[0]["address"], locks[1]["address"]);
        let blocked = |kind: &str| report["blocked_s"][kind].as_f64();
        assert!(blocked("rwlock") >= Some(0.01) && blocked("mutex") == Some(0.0), "{report:#}");
    }
}

/// The rows of a report in which a thread still waited at the end: their waits, and the seconds in
/// all.
fn still_waiting(report: &Value) -> (u64, f64) {
    let locks = report["locks"].as_array().expect("a list");
    let rows = locks.iter().filter(|lock| lock["still_waiting"].as_u64() > Some(0));
    rows.fold((0, 0.0), |(count, seconds), lock| {
        let site = lock["site"].as_str().unwrap_or("");
        assert!(site.starts_with("lock_both+") || site.starts_with("wait_for_nobody+"), "{site}");
        let ns = lock["wait_ns"]["sum"].as_u64().expect("a time");
        (count + lock["still_waiting"].as_u64().unwrap_or(0), seconds + ns as f64 / 1e9)
    })
}

#[test]
fn waits_that_go_on_at_the_end_are_charged_to_their_call_sites_and_to_nothing_else() {
    let folder = Folder::new("stuck");
    let program = folder.compile("stuck.c", &[]);
    let ours = ["--lock", "shfl-mutex"];
    let theirs = ["--lock", "glibc", "--profile"];
    for (what, key, threads) in [("mutex", "mutex", 2), ("condition", "condition", 1)] {
        for (how, code) in [("exit", 7), ("kill", 137), ("exec", 7)] {
            for arguments in [&ours[..], &theirs] {
                let (report, ended) = report(&folder, arguments, &[&program, what, how]);
                let (count, seconds) = still_waiting(&report);
                assert_eq!((ended, count), (Some(code), threads), "{what} {how}: {report:#}");
                let blocked = |key: &str| report["blocked_s"][key].as_f64().expect("seconds");
                let least = 0.3 * threads as f64;
                assert!(seconds >= least && blocked(key) >= least, "{what} {how}: {report:#}");
                let twice = blocked("raw_futex") + blocked("semaphore");
                assert!(twice < 0.1 * blocked(key), "{what} {how}: {report:#}");
                if how == "exec" {
                    // The second in which the shell ran before it executed them does not count.
                    let most = report["wall_s"].as_f64().map(|wall| (wall - 1.0) * threads as f64);
                    assert!(Some(seconds) <= most, "{what}: {report:#}");
                }
            }
        }
    }
}

#[test]
fn waits_of_a_child_end_with_the_child() {
    let folder = Folder::new("orphans");
    let program = folder.compile("stuck.c", &[]);
    let script = format!("{program} condition kill; sleep 1; exit 3");
    let (report, code) = report(&folder, &[], &["sh", "-c", &script]);
    let (count, seconds) = still_waiting(&report);
    assert_eq!((code, count), (Some(3), 1), "{report:#}");
    assert!(report["wall_s"].as_f64().is_some_and(|wall| seconds <= wall - 1.0), "{report:#}");
}

#[test]
fn the_report_for_people_says_who_still_waits() {
    let folder = Folder::new("still");
    let program = folder.compile("stuck.c", &[]);
    for name in ["report.txt", "report.html"] {
        let file = folder.path(name);
        let said = stderr(&output(&["run", "--report", &file, "--", &program, "mutex", "kill"]));
        let text = std::fs::read_to_string(&file).expect("a report");
        for report in [text, said] {
            assert!(report.contains("2 still waiting"), "{report}");
            assert!(!report.contains("Raw futexes are"), "{report}");
        }
    }
}

#[test]
fn observed_a_program_and_its_children_keep_glibcs_locks() {
    let folder = Folder::new("whose");
    let program = folder.compile("whose.c", &[]);
    let script = format!("{program}; sh -c {program}; exit 3");
    for (lock, whose) in [("shfl-mutex", "ours"), ("glibc", "glibc")] {
        let arguments = ["run", "--profile", "--lock", lock, "--", "sh", "-c", &script];
        let said = output(&arguments);
        assert_eq!(said.status.code(), Some(3));
        assert_eq!(String::from_utf8_lossy(&said.stdout), format!("{whose}\n{whose}\n"));
        // A recording from inside shows both of its locks.
        let report = stderr(&said);
        assert!(report.contains("main+") && report.contains("recursive"), "{report}");
    }
}

#[test]
fn seen_from_outside_a_static_program_is_like_any_other() {
    let folder = Folder::new("outside");
    let program = folder.compile("locks.c", &["-static"]);
    let outside = output(&["run", "--lock", "glibc", "--", &program]);
    assert_eq!((outside.status.code(), &outside.stdout[..]), (Some(7), &b"2000\n"[..]));
    let said = stderr(&outside);
    assert!(said.contains("from outside") && !said.contains("statically"), "{said}");
    let inside = stderr(&output(&["run", "--lock", "glibc", "--profile", "--", &program]));
    assert!(inside.contains("nothing will be observed in CMD, "), "{inside}");
}

#[test]
fn another_preloaded_library_stays_behind_ours() {
    let output = antiphon(&["run", "--", "sh", "-c", "echo $LD_PRELOAD"])
        .env("LD_PRELOAD", "libm.so.6")
        .output()
        .expect("the command starts");
    let value = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(value.trim_end().ends_with(":libm.so.6") && value.contains("antiphon"), "{value}");
}

#[test]
fn a_signal_goes_on_to_the_program() {
    // The program turns the signal into an exit code, which shows that it received the signal.
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = antiphon(&["run", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut ready = [0; 6];
    let mut pipe = child.stdout.take().expect("a pipe");
    std::io::Read::read_exact(&mut pipe, &mut ready).expect("the program says that it is ready");
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    let end = Instant::now() + Duration::from_secs(30);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if Instant::now() > end {
            child.kill().expect("an end");
            panic!("the signal got lost");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(9));
}
