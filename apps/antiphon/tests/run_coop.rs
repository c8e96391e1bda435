//! `run --coop`: its report on loops, with and without locks, and the arguments that it refuses.

mod common;

use common::{Folder, antiphon, has_keys, output, skipped, stderr};
use serde_json::Value;

/// Sleeps by `poll` 20 times, then polls 20 times without waiting.
const LOOP: &str = "
import select
poll = select.poll()
for _ in range(20): poll.poll(2)
for _ in range(20): poll.poll(0)
print('done')
";

/// Runs a loop under the command with these arguments, checks that stdout has none of our output,
/// and returns the report.
fn report(folder: &Folder, arguments: &[&str]) -> Option<Value> {
    if antiphon(&["--version"]).output().is_err() || !python() {
        skipped("python3 is missing");
        return None;
    }
    let file = folder.path("report.json");
    let run = ["run", "--coop", "--report", &file];
    let output = output(&[&run, arguments, &["--", "python3", "-c", LOOP]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{}", stderr(&output));
    let text = std::fs::read(&file).expect("a report");
    Some(serde_json::from_slice(&text).expect("one JSON object"))
}

fn python() -> bool {
    std::process::Command::new("python3").arg("--version").output().is_ok()
}

/// Whether the process has the file of that domain open.
fn has_open(process: u32, domain: &str) -> bool {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut files = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    files.any(|file| file.to_string_lossy().contains(domain))
}

/// The loop of the program itself; the program that starts it may have one, too.
fn last_loop(report: &Value) -> &Value {
    let loops = report["coop"]["loops"].as_array().expect("loops");
    loops.iter().find(|it| it["waits"].as_u64() >= Some(39)).unwrap_or_else(|| {
        panic!("no loop: {report:#}");
    })
}

#[test]
fn options_are_those_of_who_makes_the_domain() {
    let folder = Folder::new("coop-options");
    let domain = format!("test-options-{}", std::process::id());
    let with = |options: &str| {
        report(&folder, &["--tier", "t3", "--domain", &domain, "--options", options])
    };
    let Some(own) = with("period=7,slack=2") else { return };
    let schedule = &own["coop"]["schedule"];
    assert_eq!(
        (&schedule["period_ns"], &schedule["slack_ns"]),
        (&7_000_000.into(), &2_000_000.into())
    );
    assert!(!own["coop"]["notes"].to_string().contains("already"), "{own:#}");
    // A running program holds the domain, with these options.
    let holder = ["run", "--coop", "--tier", "t3", "--domain", &domain, "--options", "period=9"];
    let mut holder = antiphon(&[&holder[..], &["--", "sleep", "60"]].concat())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command");
    let begin = std::time::Instant::now();
    while !has_open(holder.id(), &domain) {
        assert!(begin.elapsed().as_secs() < 60, "nobody opens the domain");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let theirs = with("period=7").expect("as before");
    // SAFETY: takes numbers; the process is ours. It ends the program that it runs, too.
    assert_eq!(unsafe { libc::kill(holder.id() as i32, libc::SIGTERM) }, 0);
    holder.wait().expect("it is ours");
    assert_eq!(theirs["coop"]["schedule"]["period_ns"], 9_000_000, "{theirs:#}");
    assert!(theirs["coop"]["notes"].to_string().contains("was there already"), "{theirs:#}");
}

#[test]
fn what_is_raised_has_its_options() {
    let folder = Folder::new("coop-boost-options");
    if output(&["run", "--coop", "--tier", "t1", "--", "true"]).status.code() != Some(0) {
        return skipped("no real-time rights");
    }
    let Some(report) = report(&folder, &["--tier", "t1", "--options", "slack=2"]) else { return };
    let schedule = &report["coop"]["boost_schedule"];
    assert_eq!(
        (&schedule["slack_ns"], &schedule["threshold_ns"]),
        (&2_000_000.into(), &20_000_000.into())
    );
    assert!(report["coop"]["schedule"].is_null() && schedule["period_ns"].is_null(), "{report:#}");
    // T1 has no note on the weakness of T2 and T3.
    assert!(!report["coop"]["notes"].to_string().contains("T2 and T3"), "{report:#}");
}

#[test]
fn a_loop_is_found_and_counted() {
    let folder = Folder::new("coop-loop");
    let domain = format!("test-{}", std::process::id());
    let Some(report) = report(&folder, &["--tier", "t3", "--domain", &domain]) else { return };
    assert_eq!((&report["lock"], &report["coop"]["tier"]), (&"glibc".into(), &"t3".into()));
    assert_eq!(report["coop"]["domain"], domain);
    has_keys(&report["coop"], &["tiers", "schedule", "cpu", "level", "loops", "notes"]);
    let looping = last_loop(&report);
    // The first wait does not make a loop.
    assert_eq!(
        (looping["waits"].as_u64(), looping["zero_timeouts"].as_u64()),
        (Some(39), Some(20))
    );
    assert_eq!((&looping["due"], &looping["tiers"]), (&19.into(), &["T3"].as_slice().into()));
    assert!(looping["tardiness_us"]["max"].as_f64() > Some(0.0), "{looping:#}");
    let notes = report["coop"]["notes"].to_string();
    assert!(notes.contains("20 of 39 waits had timeout 0"), "{notes}");
    assert!(notes.contains("A loop that can call a C function tells it by"), "{notes}");
    assert!(notes.contains("JavaScript of Node can't"), "{notes}");
}

#[test]
fn with_our_locks_both_libraries_are_there() {
    let folder = Folder::new("coop-locks");
    let Some(report) = report(&folder, &["--lock", "shfl-mutex", "--profile"]) else { return };
    assert_eq!(report["lock"], "shfl-mutex");
    assert!(report["processes"].as_u64() >= Some(1), "{report:#}");
    assert_eq!(last_loop(&report)["waits"], 39);
}

#[test]
fn the_report_for_people_has_a_table_of_loops() {
    let folder = Folder::new("coop-text");
    if !python() {
        return skipped("python3 is missing");
    }
    let page = folder.path("page.html");
    let run = ["run", "--coop", "--html", &page, "--", "python3", "-c", LOOP];
    let said = stderr(&output(&run));
    assert!(said.contains("Event loops, tier auto: T3"), "{said}");
    assert!(said.contains("20 of 39 waits had timeout 0"), "{said}");
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("<h2>Event loops</h2>") && page.contains("20 of 39"), "{page}");
}

#[test]
fn what_has_no_loop_is_told_so() {
    let said = output(&["run", "--coop", "--", "sh", "-c", "exit 3"]);
    assert_eq!(said.status.code(), Some(3));
    assert!(stderr(&said).contains("No loop was found"), "{}", stderr(&said));
    let folder = Folder::new("coop-static");
    let program = folder.compile("locks.c", &["-static"]);
    let said = output(&["run", "--coop", "--", &program]);
    assert_eq!(said.status.code(), Some(7));
    let first = stderr(&said);
    let first = first.lines().next().expect("a line");
    assert!(first.contains("made cooperative") && first.contains("statically linked"), "{first}");
}

#[test]
fn what_can_not_be_had_is_one_line() {
    let cases: [(&[&str], &str); 6] = [
        (&["--coop", "--tier", "t9"], "possible values: auto, t1, t3"),
        (&["--coop", "--cpu", "99999"], "--cpu 99999 may not be used"),
        (&["--coop", "--cpu", "x"], "invalid value 'x' for '--cpu <N>'"),
        (&["--coop", "--domain", "a/b"], "--domain a/b: a domain's name has"),
        (&["--coop", "--no-children"], "--no-children can't be used with --coop"),
        (&["--cpu", "0"], "--coop"),
    ];
    for (arguments, what) in cases {
        let output = output(&[&["run"], arguments, &["--", "true"]].concat());
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(125), 1), "{said}");
        assert!(said.contains(what), "{said}");
    }
}
