//! `bench loop`, in settings so small that only its keys are meaningful, and that timers are
//! dispatched, frames shown, and all programs get CPU time.

mod common;

use common::{FRAME, Folder, has_keys, json, output, refused, skipped, stderr};
use serde_json::Value;

/// A second and two players, which leave some of the CPU to a hog.
const SMALL: [&str; 9] =
    ["bench", "loop", "--repetitions", "1", "--seconds", "1", "--players", "2", "--hogs=1"];
/// Subjects that need no rights.
const FREE: [&str; 4] = ["--subject", "alone", "--against", "epoll,tokio"];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let report = json(&[&SMALL, arguments, &["--json"]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report, &["seconds", "demand", "alike", "misbehave", "sentinel_us", "cpu_list"]);
    report["rows"].as_array().expect("a list").clone()
}

fn is_ordered(late: &Value) {
    let of = |name: &str| late[name].as_f64().expect("a number");
    let ordered = ["p50", "p90", "p99", "p999", "max"].map(of);
    assert!(ordered.is_sorted() && ordered[0] >= 0.0, "{late:#}");
    assert!((0.0..=1.0).contains(&of("within_1ms")), "{late:#}");
}

/// Checks that each timer of each player was dispatched, and all programs got some of the CPU.
fn has_figures(row: &Value, players: u64, hz: u64) {
    has_keys(row, &["subject", "peer", "ours", "needs", "case", "load", "group", "competitor"]);
    has_keys(
        row,
        &["noise_us", "beyond_noise_us", "no_sentinel", "level", "ratio", "ratio_chunks"],
    );
    has_keys(row, &["jain_cpu_players", "player_switches_per_s", "cpus", "p25", "p75"]);
    has_keys(&row["level"], &["cgroup", "autogroup", "first"]);
    is_ordered(&row["tardiness_us"]);
    // One second of each player, at any phase.
    let timers = row["tardiness_us"]["timers"].as_u64().expect("a count");
    assert!(timers.abs_diff(players * hz) <= players, "{row:#}");
    let all = row["players"].as_array().expect("a list");
    assert_eq!(all.len() as u64, players);
    for player in all {
        has_keys(player, &["fps", "drops", "cpu", "demand", "tier_stats"]);
        let demotes = ["t1", "t3"].iter().any(|name| row["subject"] == *name);
        let stats = &player["tier_stats"];
        assert_eq!(stats["demotions"]["overrun"].is_u64(), demotes, "{stats:#}");
        assert_eq!(stats["raises"].as_u64() > Some(0), row["subject"] == "t1", "{stats:#}");
        is_ordered(&player["tardiness_us"]);
        assert!(player["cpu"].as_f64() > Some(0.0), "{player:#}");
        let of = |name: &str| player[name].as_f64().expect("a number");
        let timers = player["tardiness_us"]["timers"].as_f64().expect("a count");
        assert_eq!(of("fps") + of("drops"), timers, "{player:#}");
    }
    for share in ["jain_cpu", "jain_fps", "players_share"] {
        let share = row[share].as_f64().expect("a number");
        assert!(share > 0.0 && share <= 1.0, "{row:#}");
    }
    for rate in ["fps", "chunks_per_s", "switches_per_s"] {
        assert!(row[rate].as_f64() > Some(0.0), "{rate}: {row:#}");
    }
    let cdf = &row["cdf_us"];
    assert!(
        cdf["p10"].as_f64() <= cdf["p50"].as_f64() && cdf["p50"].as_f64() <= cdf["p999"].as_f64()
    );
}

#[test]
fn what_needs_no_privilege_dispatches_each_timer() {
    let rows = rows(&[&FREE[..], &["--demand", "30", "--hz", "50"]].concat());
    let names: Vec<_> = rows.iter().map(|row| row["subject"].as_str()).collect();
    assert_eq!(names, ["alone", "epoll", "tokio"].map(Some));
    rows.iter().for_each(|row| has_figures(row, 2, 50));
    assert_eq!(rows[1]["ratio"], 1.0, "to itself");
}

#[test]
fn what_needs_some_has_figures_or_says_what_is_missing() {
    for row in rows(&["--demand", "20"]) {
        match row.get("skipped") {
            None => has_figures(&row, 2, 60),
            Some(missing) => {
                let said = missing.as_str().expect("a reason");
                assert!(row["needs"] != "nothing" && said.contains(':'), "{row:#}");
                let name = row["subject"].as_str().expect("a name");
                let who = if row["ours"] == true { "--subject" } else { "--against" };
                let asked = output(&[&SMALL[..], &[who, name]].concat());
                assert_eq!(asked.status.code(), Some(69), "{}", stderr(&asked));
                assert!(stderr(&asked).contains(said));
            }
        }
    }
}

#[test]
fn numbers_of_players_are_conditions_of_their_own() {
    let how = ["--subject", "alone", "--against", "", "--sweep", "1,3", "--alike", "--hogs", "0"];
    let arguments = [&["bench", "loop", "--repetitions", "1", "--seconds", "1"], &how[..]].concat();
    let report = json(&[&arguments[..], &["--json", "--sentinel-us", "0"]].concat());
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    for (row, players) in rows.iter().zip([1, 3]) {
        assert_eq!((row["players_n"].as_u64(), &row["hogs_n"]), (Some(players), &0.into()));
        has_figures(row, players, 60);
        assert!(row["noise_us"].is_null() && row["no_sentinel"].is_null(), "{row:#}");
        let players = row["players"].as_array().expect("a list");
        let alike = |player: &Value| player["demand"] == players[0]["demand"];
        assert!(players.iter().all(alike), "{row:#}");
    }
}

#[test]
fn one_that_misbehaves_is_told_from_the_others() {
    let how = ["--subject", "alone", "--against", "", "--misbehave", "0.5", "--group", "one"];
    let rows = rows(&how);
    assert_eq!(rows[0]["group"], "one");
    has_figures(&rows[0], 2, 60);
    let others = &rows[0]["others_tardiness_us"];
    is_ordered(others);
    assert!(others["timers"].as_u64().expect("a count").abs_diff(60) <= 1, "{others:#}");
}

/// Returns the report of a run, calling `look` with its process id until it ends. `None` if it is
/// not permitted.
fn watched(arguments: &[&str], mut look: impl FnMut(u32)) -> Option<Value> {
    let mut run = common::antiphon(&[&SMALL[..], arguments, &["--json"]].concat());
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut run = run.spawn().expect("the command");
    let ended = loop {
        look(run.id());
        if let Some(status) = run.try_wait().expect("it is ours") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let done = run.wait_with_output().expect("its output");
    if ended.code() == Some(69) {
        skipped(&stderr(&done));
        return None;
    }
    assert!(ended.success(), "{}", stderr(&done));
    Some(serde_json::from_slice(&done.stdout).expect("JSON"))
}

/// Programs of one run are in its session, or each in its own.
#[test]
fn a_level_is_that_of_the_run_or_of_each_program() {
    let how = ["--subject", "alone", "--against", ""];
    assert_eq!(rows(&how)[0]["levels"], "one");
    let each = [&how[..], &["--levels", "each"]].concat();
    let mut most = 0;
    let look = |run| most = most.max(sessions_below(run).len());
    let Some(report) = watched(&each, look) else { return };
    assert_eq!(report["rows"][0]["levels"], "each");
    // The session of the run, and those of three programs.
    assert!(most >= 4, "{most}");
}

/// Each program is in a control group of its own, which is gone afterwards.
#[test]
fn each_program_may_have_a_control_group() {
    let all = ["--subject", "t1", "--against", "epoll", "--levels", "cgroup"];
    let before = groups();
    let mut seen = std::collections::BTreeSet::new();
    let Some(report) = watched(&all, |_| seen.extend(&groups() - &before)) else { return };
    let rows = report["rows"].as_array().expect("a list");
    assert!(rows.iter().all(|row| row["levels"] == "cgroup"), "{rows:?}");
    has_figures(&rows[1], 2, 60);
    // Three programs per repetition.
    assert!(seen.len() >= 3, "{seen:?}");
    assert!(groups().is_disjoint(&seen), "{:?}", groups());
}

/// Returns the control groups of such programs.
fn groups() -> std::collections::BTreeSet<String> {
    let all = std::fs::read_dir("/proc").expect("a directory").flatten();
    let all = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cgroup")).ok());
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    all.flat_map(lines).filter(|line| line.contains("/antiphon-")).collect()
}

/// Returns the sessions of a process's descendants other than its own.
fn sessions_below(process: u32) -> std::collections::BTreeSet<u32> {
    let of = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The fields behind the name: state, parent, group, session.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).to_owned();
        let mut fields = fields.split(' ').skip(1).step_by(2).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    let all = std::fs::read_dir("/proc").expect("a directory").flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let known: Vec<(u32, u32, u32)> = all
        .filter_map(|process| of(process).map(|(parent, session)| (process, parent, session)))
        .collect();
    let mut below = vec![process];
    let mut sessions = std::collections::BTreeSet::new();
    while let Some(parent) = below.pop() {
        for &(child, _, session) in known.iter().filter(|(_, of, _)| *of == parent) {
            below.push(child);
            sessions.insert(session);
        }
    }
    if let Some((_, own)) = of(process) {
        sessions.remove(&own);
    }
    sessions
}

#[test]
fn a_compiler_competes_where_there_is_one() {
    let how = ["--subject", "alone", "--against", "", "--competitor", "cc"];
    let done = output(&[&SMALL[..], &how].concat());
    if done.status.code() == Some(69) {
        let said = stderr(&done);
        assert!(said.contains("apt install gcc"), "{said}");
        return eprintln!("NOT TESTED: {said}");
    }
    let rows = rows(&how);
    has_figures(&rows[0], 2, 60);
    assert_eq!(rows[0]["case"], "cc");
    assert!(rows[0]["players_share"].as_f64() < Some(1.0), "it has some of the CPU");
}

#[test]
fn tables_and_pages_say_what_was_measured() {
    let folder = Folder::new("bench-loop");
    let page = folder.path("loop.html");
    let how = ["--players", "1,2", "--html", &page];
    let small = ["bench", "loop", "--repetitions", "1", "--seconds", "0.3"];
    let done = output(&[&small[..], &FREE, &how].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    for said in ["1 player at 60 Hz, 4 hogs (spin), one CPU", "tokio", "Jain CPU", "Competing on: "]
    {
        assert!(text.contains(said), "no {said} in {text}");
    }
    let page = std::fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches("<svg").count(), 2 + 4, "two distributions, and what players change");
    assert!(page.contains("Frames that each player shows a second, by players"), "{page}");
    assert!(page.contains("tokio") && !page.contains("NaN"));
}

/// Programs that share a CPU have a domain, whose memory ends with them.
#[test]
fn a_run_leaves_no_file() {
    let folder = Folder::new("bench-loop-leaves");
    let own = |how: &[&str]| {
        let mut run = common::antiphon(&[&SMALL[..], how].concat());
        run.env("XDG_RUNTIME_DIR", folder.path(""));
        run
    };
    let how = ["--subject", "t3", "--against", "", "--json"];
    let done = own(&how).output().expect("the command");
    assert!(done.status.success(), "{}", stderr(&done));
    let files = || {
        let all = std::fs::read_dir(folder.path("antiphon"));
        all.map_or_else(|_| Vec::new(), |all| all.flatten().map(|file| file.file_name()).collect())
    };
    assert_eq!(files(), [""; 0], "after a run");
    let mut killed = own(&how).stdout(std::process::Stdio::null()).spawn().expect("the command");
    std::thread::sleep(std::time::Duration::from_millis(700));
    killed.kill().and_then(|()| killed.wait()).expect("it is ours");
    assert_eq!(files(), [""; 0], "after one that was killed");
}

#[test]
fn options_are_said_of_those_that_have_a_use_for_them() {
    let how = ["--subject", "alone,t3", "--against", "", "--options", "slack=2"];
    let report = json(&[&SMALL[..], &how, &["--json"]].concat());
    let all = ["period_ns", "min_slice_ns", "slack_ns", "threshold_ns"];
    has_keys(&report["options"], &all);
    let rows = report["rows"].as_array().expect("a list");
    assert!(
        rows[0]["options"].is_null() && rows[1]["options"]["slack_ns"] == 2_000_000,
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row["costs"].is_string()), "{rows:?}");
    let done = output(&[&SMALL[..], &how].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    let said = "Options of t3: period 20 ms, minimum slice 0.1 ms, slack 2 ms, threshold 20 ms.";
    assert!(text.contains(said) && !text.contains("Options of alone"), "{text}");
    assert!(text.contains("\nt3: demoted: ") && !text.contains("alone: demoted"), "{text}");
    assert!(text.contains("t3          one member runs at a time"), "{text}");
}

#[test]
fn those_without_groups_are_named() {
    let how = ["--subject", "alone,t3", "--against", "epoll", "--group", "one"];
    let all = rows(&how);
    let grouped: Vec<_> = all.iter().map(|row| row["grouped"].as_bool()).collect();
    assert_eq!(grouped, [false, true, false].map(Some));
    let done = output(&[&SMALL[..], &how].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("No group: the players of alone, epoll have a share each."), "{text}");
}

/// Runs as a user without rights, which only root can become; `before` is run as root.
fn unprivileged(before: &[&str], arguments: &[&str]) -> Option<std::process::Output> {
    // A folder that all users may read.
    let folder = Folder::new(std::thread::current().name()?);
    let command = folder.path("antiphon-lab");
    std::fs::copy(common::PROGRAM, &command).ok()?;
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &command];
    let all = [before, &user, arguments].concat();
    let mut run = std::process::Command::new(all[0]);
    run.args(&all[1..]).env_remove("XDG_RUNTIME_DIR").env("HOME", "/nonexistent");
    run.output().ok().filter(|done| !is_refused(done))
}

/// Returns whether no such user was available.
fn is_refused(done: &std::process::Output) -> bool {
    let said = stderr(done);
    ["setpriv: ", "prlimit: ", "chrt: "].iter().any(|who| said.starts_with(who))
}

#[test]
fn what_is_skipped_is_said_below_the_table() {
    let all = ["bench", "loop", "--repetitions", "1", "--seconds", "0.3"];
    let Some(done) = unprivileged(&["prlimit", "--rtprio=0", "--nice=0"], &all) else {
        return skipped("no other user to be had");
    };
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    let of = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(of("t1 ").trim_end().ends_with("skipped") && of("t1 ").len() < 60, "{text}");
    for (name, priority) in [("t1", 3), ("fifo", 10), ("fifo-timer", 50)] {
        let said = of(&format!("{name} skipped: real-time: no permission"));
        assert!(said.contains(&format!("`ulimit -r {priority}`")), "{text}");
    }
    assert!(text.contains("No sentinel: ") && text.contains("`ulimit -r 99`"), "{text}");
}

#[test]
fn who_may_not_weigh_more_has_no_group_by_weights() {
    let how = [&SMALL[..], &["--against", "", "--group", "one", "--subject", "t1"]].concat();
    // A program that is already real-time may remain so.
    let Some(done) = unprivileged(&["chrt", "-f", "3", "prlimit", "--nice=0"], &how) else {
        return skipped("no other user to be had, or no real-time rights");
    };
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(69), "{said}");
    assert!(said.contains("t1: ") && said.contains("`ulimit -e 32`"), "{said}");
}

#[test]
fn first_says_where_it_is_refused() {
    let how = [&SMALL[..], &FREE, &["--first"]].concat();
    let Some(done) = unprivileged(&["prlimit", "--nice=0"], &how) else {
        return skipped("no other user to be had");
    };
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("--first has no effect: "), "{text}");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (wrong, told) in [
        (&["--subject", "t9"][..], "no scheme of ours 't9'"),
        (&["--against", "cfs"], "no peer 'cfs'"),
        (&["--subject", "", "--against", ""], "nothing to measure"),
        (&["--players", "0"], "'0' is not a number"),
        (&["--players", "300"], "more than 256"),
        (&["--hogs", "1000"], "'1000' is not a number"),
        (&["--hz", "2000"], "more than 1000"),
        (&["--competitor", "make"], "spin"),
        (&["--group", "two"], "each"),
        (&["--levels", "two"], "each"),
        (&["--subject", "t3", "--players", "65"], "room for 64"),
        (&["--cpus", "0"], "--cpus takes a number"),
        (&["--cpus", "5000"], "--cpus takes a number"),
        (&["--demand", "0"], "--demand takes"),
        (&["--demand", "NaN"], "--demand takes"),
        (&["--misbehave", "2"], "--misbehave takes"),
        (&["--sentinel-us", "1"], "--sentinel-us takes"),
        (&["--options", "late=1"], "no option 'late'"),
        (&["--seconds", "0"], "--seconds takes"),
        (&["--repetitions", "0"], "--repetitions takes"),
        (&["--html", "/nowhere/at/all"], "--html"),
    ] {
        let said = refused(&[&["bench", "loop"], wrong].concat());
        assert!(said.contains(told), "no {told} in {said}");
    }
}
