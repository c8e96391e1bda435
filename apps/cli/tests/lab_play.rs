//! `lab play`, for a second or two: order, numbers in the frames, that everybody plays and has some
//! of the CPU; never how late a frame is.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::live::{Live, modes};
use common::{FRAME, Folder, antiphon, has_keys, jain, output, refused, skipped, stderr};
use serde_json::Value;

/// A hog, for a second, with clips of a second.
const SMALL: [&str; 8] =
    ["lab", "play", "--generate", "bursty", "--size", "320x192", "--hogs", "1"];
const TWO: [&str; 2] = ["--players", "2"];
const SECOND: [&str; 2] = ["--seconds", "1"];

/// Two players play; `None`, if what makes clips is not there.
fn played(arguments: &[&str]) -> Option<Output> {
    play(&[&TWO, arguments].concat())
}

fn play(arguments: &[&str]) -> Option<Output> {
    play_for(&SECOND, arguments)
}

fn play_for(seconds: &[&str], arguments: &[&str]) -> Option<Output> {
    let done = output(&[&SMALL, arguments, seconds].concat());
    if done.status.code() == Some(69) && stderr(&done).contains("apt-get install ffmpeg") {
        skipped(&stderr(&done));
        return None;
    }
    Some(done)
}

fn report(done: &Output) -> Value {
    assert!(done.status.success(), "{}", stderr(done));
    serde_json::from_slice(&done.stdout).expect("stdout is one JSON object")
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of:#}"))
}

/// What is true of each player, however little of the CPU there is.
fn plays(player: &Value) {
    has_keys(player, &["kind", "plays", "decoder", "tardiness_us", "fps", "drops", "layers"]);
    has_keys(player, &["quality", "cpu", "fps_by_second", "tier_stats"]);
    let late = &player["tardiness_us"];
    let late = ["p50", "p90", "p99", "p999", "max"].map(|key| number(late, key));
    assert!(late.is_sorted() && late[0] >= 0.0, "{player:#}");
    assert_eq!(player["disorder"], 0, "{player:#}");
    assert_eq!(player["misread"], 0, "{player:#}");
    assert_eq!(player["refused"], 0, "{player:#}");
    assert!(number(player, "cpu") > 0.0, "{player:#}");
    assert!(number(player, "shown") > 0.0, "{player:#}");
}

fn plays_video(player: &Value) {
    plays(player);
    assert_eq!(player["read"], player["shown"], "each number was read, and right: {player:#}");
    let of = |key: &str| {
        let layers = ["I", "P", "B", "b"].iter().map(|layer| player["layers"][layer][key].as_u64());
        layers.map(|count| count.expect("a count")).sum::<u64>()
    };
    assert_eq!(Some(of("shown")), player["shown"].as_u64(), "{player:#}");
    assert_eq!(Some(of("dropped")), player["drops"].as_u64(), "{player:#}");
    // A second at 60 Hz; less for who was kept from beginning with the others.
    assert!((30..=61).contains(&(of("shown") + of("dropped"))), "{player:#}");
    let by_second = player["fps_by_second"].as_array().expect("a list");
    let shown: u64 = by_second.iter().filter_map(Value::as_u64).sum();
    assert_eq!(shown, of("shown"), "{player:#}");
}

#[test]
fn players_are_in_order_and_nobody_starves() {
    for (tier, name) in [("none", "none"), ("t3", "T3")] {
        let Some(done) = played(&["--tier", tier, "--json"]) else { return };
        let report = report(&done);
        has_keys(&report, &FRAME);
        has_keys(&report, &["players", "jain_cpu", "jain_fps", "switches_per_s", "tier"]);
        has_keys(&report, &["steady", "hogs", "competitor", "level", "weaker", "clips", "cdf_us"]);
        // Those that have an effect.
        let options = report["options"].as_object().map_or(0, |options| options.len());
        assert_eq!(options, if tier == "t3" { 4 } else { 0 });
        assert_eq!(report["tier"], name);
        let players = report["players"].as_array().expect("a list");
        assert_eq!(players.len(), 2);
        players.iter().for_each(plays_video);
        let hogs = report["hogs"].as_array().expect("a list");
        assert!(hogs.len() == 1 && hogs[0].as_f64() > Some(0.0), "{report:#}");
        // They want little, and are alike.
        assert!(number(&report, "jain_fps") >= 0.8, "{report:#}");
        assert!(number(&report, "switches_per_s") > 0.0, "{report:#}");
        let demotions = &players[0]["tier_stats"]["demotions"];
        assert_eq!(demotions.is_object(), tier == "t3", "{demotions:#}");
    }
}

#[test]
fn who_wants_more_than_there_is_drops_details_and_goes_on() {
    let one = ["--demand", "120", "--group", "one", "--tier", "t3", "--json"];
    let Some(done) = played(&one) else { return };
    let report = report(&done);
    assert_eq!((&report["tier"], &report["group"]), (&"T3".into(), &"one".into()));
    for player in report["players"].as_array().expect("a list") {
        assert_eq!(player["model"], true, "{player:#}");
        // Of a second, the first look-ahead is easy; so there may be hardly any drops.
        let (shown, drops) = (number(player, "shown"), number(player, "drops"));
        assert!(drops > 0.0 && (30.0..=61.0).contains(&(shown + drops)), "{player:#}");
    }
    let fair = number(&report, "jain_cpu");
    assert!((0.3..=1.0).contains(&fair), "{report:#}");
}

#[test]
fn equals_that_want_more_than_there_is_have_equal_parts_of_it() {
    for tier in ["none", "t1", "t3"] {
        let Some(done) = played(&["--demand", "120", "--tier", tier, "--json"]) else { return };
        if done.status.code() == Some(69) {
            skipped(&stderr(&done));
            continue;
        }
        let report = report(&done);
        let players = report["players"].as_array().expect("a list");
        let fair = jain(players.iter().map(|player| number(player, "cpu")));
        assert!(fair >= 0.8, "{fair} for {report:#}");
    }
}

#[test]
fn each_tier_plays_or_says_what_is_missing() {
    let groups = [("t0", "each"), ("t1", "each"), ("t1", "one"), ("t1b", "each"), ("t2", "each")];
    for (tier, group) in groups {
        let asked = ["--tier", tier, "--group", group, "--json"];
        let Some(done) = played(&asked) else { return };
        if done.status.code() == Some(69) {
            let said = stderr(&done);
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.to_lowercase().contains(&format!("--tier {tier}")), "{said}");
            if tier != "t0" {
                skipped(&said);
            }
            continue;
        }
        assert_ne!(tier, "t0", "no release has it");
        let report = report(&done);
        let players = report["players"].as_array().expect("a list");
        players.iter().for_each(plays_video);
        let boosted = players[0]["tier_stats"]["raises"].is_u64();
        assert_eq!(boosted, tier == "t1", "{:#}", players[0]["tier_stats"]);
    }
}

#[test]
fn a_mixed_group_has_video_sound_and_a_game() {
    let mixed = ["--players", "3", "--mixed", "--tier", "t3", "--json"];
    let Some(done) = play(&mixed) else { return };
    let report = report(&done);
    let players = report["players"].as_array().expect("a list");
    let kinds: Vec<_> = players.iter().map(|player| player["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("video"), Some("sound"), Some("game")]);
    plays_video(&players[0]);
    players.iter().for_each(plays);
    assert_eq!((&report["tier"], &report["group"]), (&"T3".into(), &"one".into()));
    // A hundred steps in each second, and in the look-ahead.
    let steps = number(&players[2]["tardiness_us"], "timers");
    assert!((90.0..=150.0).contains(&steps), "{report:#}");
}

#[test]
fn one_that_does_not_adapt_is_told_apart() {
    let Some(done) = played(&["--nice", "1", "--tier", "none", "--json"]) else { return };
    let report = report(&done);
    assert_eq!(report["players"].as_array().map(Vec::len), Some(2));
    let steady = &report["steady"];
    plays(steady);
    assert_eq!(
        (&steady["kind"], &steady["nice"], &steady["drops"]),
        (&"steady".into(), &1.into(), &0.into())
    );
}

#[test]
fn a_file_is_coded_anew_and_kept() {
    let folder = Folder::new("lab-play-file");
    let video = folder.path("a video.mp4");
    let source = "testsrc2=size=320x192:rate=30:duration=1";
    let made = std::process::Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", source, "-c:v", "libx264", "-y", &video])
        .status();
    if made.is_err() {
        return skipped("no ffmpeg");
    }
    let play_with = |cache: &str| {
        let small = ["lab", "play", &video, "--players", "1", "--hogs", "0", "--seconds", "1"];
        let mut command = antiphon(&[&small[..], &["--json", "--tier", "none"]].concat());
        command.env("XDG_CACHE_HOME", cache).output().expect("the command starts")
    };
    let cache = folder.path("cache");
    let first = play_with(&cache);
    let report = report(&first);
    assert!(stderr(&first).contains("coding ") && stderr(&first).contains("a video.mp4"));
    assert_eq!(
        (&report["clips"][0]["layered"], &report["clips"][0]["frames"]),
        (&true.into(), &30.into())
    );
    plays(&report["players"][0]);
    assert_eq!(report["players"][0]["read"], 0, "there is no number in it");
    let again = play_with(&cache);
    assert!(again.status.success() && !stderr(&again).contains("coding "), "{}", stderr(&again));
}

#[test]
fn tables_and_pictures_say_what_was_seen() {
    let folder = Folder::new("lab-play-page");
    let page = folder.path("play.html");
    let Some(done) = played(&["--tier", "none", "--html", &page]) else { return };
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout);
    for said in [
        "2 players, 1 hog (spin), one CPU, 1.0 s",
        "Tier none",
        "bursty-1",
        "Jain CPU",
        "Competing on: ",
    ] {
        assert!(text.contains(said), "no {said} in {text}");
    }
    assert!(!text.contains("Options") && !text.contains("T2 and T3"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    let page = std::fs::read_to_string(page).expect("a page");
    // Lateness, frames, bits, and CPU time twice.
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("1 bursty-1") && page.contains("hog 0") && !page.contains("NaN"));
}

#[test]
fn on_a_terminal_it_is_live_and_ends_when_it_is_told() {
    // So that a clip is there, and nothing is said of it.
    if played(&["--tier", "none", "--json"]).is_none() {
        return;
    }
    let mut live = Live::of(&[&SMALL[..], &TWO, &["--tier", "none", "--seconds", "1"]].concat());
    live.sees("q: end");
    live.sees("bursty-1");
    live.sees("Competing on: ");
    live.has_ended();

    let mut live = Live::of(&[&SMALL[..], &TWO, &["--tier", "none", "--seconds", "600"]].concat());
    live.sees("q: end");
    assert_ne!(modes(&live.theirs), live.before);
    live.ours.write_all(b"q").expect("a key");
    live.sees("Competing on: ");
    live.has_ended();
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = Folder::new("lab-play-wrong");
    let (text, stream) = (folder.path("text.mp4"), folder.path("text.h264"));
    for path in [&text, &stream] {
        std::fs::write(path, "this is no video\n").expect("a file");
    }
    for (wrong, told) in [
        (&[][..], "<FILE>"),
        (&["/nowhere/at/all.mp4"], "/nowhere/at/all.mp4: No such file"),
        (&["/"], "no file"),
        (&[&stream], "not a stream that can be played"),
        (&["--generate", "loud"], "bursty"),
        (&["--generate", "bursty", "a.h264"], "cannot be used with"),
        (&["--generate", "bursty", "--players", "0"], "'0' for '--players"),
        (&["--generate", "bursty", "--players", "many"], "'many' for '--players"),
        (&["--generate", "bursty", "--hogs", "1000"], "'1000' for '--hogs"),
        (&["--generate", "bursty", "--size", "10x10"], "write 640x360"),
        (&["--generate", "bursty", "--hz", "0"], "'0' for '--hz"),
        (&["--generate", "bursty", "--seconds", "0"], "--seconds takes"),
        (&["--generate", "bursty", "--demand", "-1"], "--demand takes"),
        (&["--generate", "bursty", "--misbehave", "2"], "--misbehave takes"),
        (&["--generate", "bursty", "--cpus", "5000"], "--cpus takes"),
        (&["--generate", "bursty", "--nice", "30"], "'30' for '--nice"),
        (&["--generate", "bursty", "--tier", "t9"], "t1b"),
        (&["--generate", "bursty", "--tier", "none", "--group", "one"], "--tier t1 or t3"),
        (&["--generate", "bursty", "--mixed", "--players", "2"], "--mixed takes three"),
        (&["--generate", "bursty", "--options", "late=1"], "no option 'late'"),
        (&["--generate", "bursty", "--options", "period=0"], "period=20"),
        (&["--generate", "bursty", "--html", "/nowhere/at/all"], "--html"),
    ] {
        let said = refused(&[&["lab", "play"], wrong].concat());
        assert!(said.contains(told), "no {told} in {said}");
    }
    // It is ffmpeg that says so.
    let done = output(&["lab", "play", &text]);
    match done.status.code() {
        Some(69) => skipped(&stderr(&done)),
        code => {
            let said = stderr(&done);
            let last = said.lines().last().unwrap_or_default();
            assert_eq!(code, Some(2), "{said}");
            assert!(last.contains("text.mp4: no video that ffmpeg can read"), "{said}");
        }
    }
}

#[test]
fn without_ffmpeg_it_is_named() {
    let folder = Folder::new("lab-play-none");
    let mut command = antiphon(&["lab", "play", "--generate", "bursty", "--seconds", "1"]);
    // Nothing is found, and nothing is kept.
    command.env("PATH", folder.path("")).env("XDG_CACHE_HOME", folder.path("cache"));
    let done = command.output().expect("the command starts");
    assert_eq!(done.status.code(), Some(69), "{}", stderr(&done));
    assert!(stderr(&done).contains("apt-get install ffmpeg"), "{}", stderr(&done));
    assert_eq!(stderr(&done).lines().count(), 1, "nothing is promised: {}", stderr(&done));
}

#[test]
fn without_a_display_it_says_so_and_with_one_it_plays_in_windows() {
    let mut command = antiphon(&[&SMALL[..], &TWO, &["--display"], &SECOND].concat());
    command.env_remove("DISPLAY");
    let done = command.output().expect("the command starts");
    assert_eq!(done.status.code(), Some(69), "{}", stderr(&done));
    assert!(stderr(&done).contains("--display: "), "{}", stderr(&done));

    let Some(server) = Xvfb::start() else { return };
    let mut command = antiphon(&[&SMALL[..], &TWO, &["--display", "--json"], &SECOND].concat());
    let done = command.env("DISPLAY", &server.display).output();
    let done = done.expect("the command starts");
    if done.status.code() == Some(69) {
        return skipped(&stderr(&done));
    }
    let report = report(&done);
    report["players"].as_array().expect("players").iter().for_each(plays_video);
}

/// An X server, which goes when this does.
struct Xvfb {
    process: Child,
    display: String,
}

impl Xvfb {
    fn start() -> Option<Self> {
        let started = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut process) = started else {
            skipped("no Xvfb: apt-get install xvfb");
            return None;
        };
        let mut number = String::new();
        let told = process.stdout.take().expect("it is piped");
        BufReader::new(told).read_line(&mut number).expect("it says where it is");
        Some(Self { process, display: format!(":{}", number.trim()) })
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks until something is there.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What that process has started.
fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let listed = fs::read_to_string(path).unwrap_or_default();
    listed.split_whitespace().map(|id| id.parse().expect("a number")).collect()
}

/// How its threads are called.
fn threads(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

/// The command while it plays, in a second or two: its players, of that many, and the hogs.
fn playing(mut command: Command, programs: usize) -> (Child, Vec<u32>) {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let command = command.expect("the command starts");
    let all = until("programs", || {
        let all = children(command.id());
        (all.len() == programs).then_some(all)
    });
    (command, all)
}

/// Sends a signal to a process that plays, in the middle of that: when the hog beside it has begun.
fn signal(process: u32, hog: u32, signal: i32) {
    until("a hog", || {
        let stat = fs::read_to_string(format!("/proc/{hog}/stat")).ok()?;
        // In hundredths of a second. Source: proc(5).
        let used = stat.rsplit_once(')')?.1.split(' ').nth(12)?.parse::<u64>();
        (used.expect("a number") >= 10).then_some(())
    });
    // SAFETY: takes numbers; the process is that of a test, and was not waited for.
    assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
}

#[test]
fn when_the_display_goes_players_play_on_unseen() {
    // So that clips are there.
    if played(&["--tier", "none", "--json"]).is_none() {
        return;
    }
    let Some(server) = Xvfb::start() else { return };
    let mut command = antiphon(&[&SMALL[..], &TWO, &["--display", "--json"], &SECOND].concat());
    command.env("DISPLAY", &server.display);
    let (command, all) = playing(command, 3);
    until("windows", || {
        let seen = |player: &&u32| threads(**player).iter().any(|name| name == "window");
        (all.iter().filter(seen).count() == 2).then_some(())
    });
    drop(server);
    let report = report(&command.wait_with_output().expect("it ends"));
    for player in report["players"].as_array().expect("players") {
        plays_video(player);
        let why = player["unseen"].as_str();
        assert!(why.is_some_and(|why| why.contains("gone away")), "{player:#}");
    }
}

#[test]
fn of_a_player_that_is_killed_or_stopped_the_others_are_reported() {
    let seconds = ["--seconds", "3"];
    if play_for(&seconds, &["--players", "3", "--tier", "none"]).is_none() {
        return;
    }
    let folder = Folder::new("lab-play-gone");
    let page = folder.path("page.html");
    let base = [&SMALL[..], &["--players", "3", "--tier", "t3"], &seconds].concat();
    for (number, what, words) in [
        (libc::SIGKILL, "was killed by signal 9 (SIGKILL)", &["--json", "--html", &page][..]),
        (libc::SIGSTOP, "is stopped, and says nothing any more", &["--json"]),
        (libc::SIGKILL, "was killed by signal 9 (SIGKILL)", &[]),
    ] {
        let (command, all) = playing(antiphon(&[&base, words].concat()), 4);
        signal(all[1], all[3], number);
        let done = command.wait_with_output().expect("it ends");
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(1), "{said}");
        let expected = format!("antiphon: player 1 (bursty-1) {what}");
        assert_eq!(said.lines().last(), Some(&*expected), "{said}");
        if words.is_empty() {
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(text.contains(&format!("Player 1 {what}")), "{text}");
            assert!(text.contains("0 bursty-0") && text.contains("Jain CPU"), "{text}");
            continue;
        }
        let report: Value = serde_json::from_slice(&done.stdout).expect("one JSON object");
        let players = report["players"].as_array().expect("players");
        for (number, player) in players.iter().enumerate() {
            if number == 1 {
                assert_eq!(player["gone"], what);
                assert!(player["fps"].is_null() && player["cpu"].is_number(), "{player:#}");
            } else {
                plays(player);
                assert!(player["gone"].is_null(), "{player:#}");
            }
        }
        assert_eq!(players.len(), 3);
    }
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("2 bursty-2") && page.contains("Player 1 was killed"), "{page}");
}

#[test]
fn what_takes_too_long_is_named() {
    // A detail of the game takes 11 ms.
    let greedy = ["--players", "3", "--mixed", "--tier", "t3", "--demand", "400"];
    let Some(done) = play(&[&greedy[..], &["--json"]].concat()) else { return };
    let report = report(&done);
    let troubles = &report["players"][2]["troubles"];
    has_keys(troubles, &["behind", "long"]);
    assert_eq!(troubles["long"]["event"], "prepare", "{report:#}");
    assert!(number(&troubles["long"], "ran_ns") > 1e6 && number(&troubles["long"], "times") > 0.0);
    assert_eq!(report["cpu_was_short"], true);
    let Some(done) = play(&greedy) else { return };
    let text = String::from_utf8_lossy(&done.stdout);
    let words = " took more than 1 ms by the clock; the longest is `prepare`, ";
    let is_said = |line: &&str| line.starts_with("Player 2: ") && line.contains(words);
    assert_eq!(text.lines().filter(is_said).count(), 1, "{text}");
    assert!(text.contains("Player 1 plays a sound that is made up."), "{text}");
}

#[test]
fn where_nobody_is_short_of_the_cpu_the_index_is_said_to_say_nothing() {
    let one = ["--players", "1", "--hogs", "0", "--tier", "none"];
    let small = &SMALL[..6];
    let run = |more: &[&str]| output(&[small, &one, &SECOND, more].concat());
    let done = run(&["--json"]);
    if done.status.code() == Some(69) {
        return skipped(&stderr(&done));
    }
    // Others may have the CPU: then it is short.
    let had_all = |of: &Value| of["cpu_was_short"] == (number(&of["players"][0], "drops") > 0.0);
    assert!(had_all(&report(&done)));
    let text = String::from_utf8_lossy(&run(&[]).stdout).into_owned();
    let row = text.lines().find(|line| line.starts_with("0 bursty-0")).expect("a row");
    let shown_all = row.ends_with(" 0  0  0  0");
    assert_eq!(text.contains("The CPU was not short"), shown_all, "{text}");
}

#[test]
fn who_is_ended_while_a_clip_is_made_leaves_nobody_and_the_next_one_cleans_up() {
    let folder = Folder::new("lab-play-ended");
    let cache = folder.path("cache");
    let with = |arguments: &[&str]| {
        let mut command = antiphon(&[&["lab", "play", "--generate", "bursty"], arguments].concat());
        command.env("XDG_CACHE_HOME", &cache).env("TMPDIR", folder.path(""));
        command
    };
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        return skipped("no ffmpeg");
    }
    let clips = format!("{cache}/antiphon/clips");
    let left = || {
        let names = fs::read_dir(&clips).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.')).count()
    };
    let big = ["--size", "1920x1080", "--seconds", "10"];
    for (signal, stays) in [(libc::SIGKILL, 1), (libc::SIGTERM, 0)] {
        let mut command = with(&big).stderr(Stdio::null()).spawn().expect("the command starts");
        let ffmpeg = until("ffmpeg", || {
            let called = |child: &u32| fs::read_to_string(format!("/proc/{child}/cmdline"));
            let makes = |child: &u32| called(child).is_ok_and(|line| line.contains("testsrc2"));
            children(command.id()).into_iter().find(makes)
        });
        until("its file", || {
            let files = fs::read_dir(format!("/proc/{ffmpeg}/fd")).ok()?.flatten();
            let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
            files.any(|file| file.to_string_lossy().ends_with(".h264")).then_some(())
        });
        assert_eq!(left(), 1, "what was left over has gone");
        // SAFETY: takes numbers; the process is ours.
        assert_eq!(unsafe { libc::kill(command.id() as i32, signal) }, 0);
        assert_eq!(command.wait().expect("it ends").signal(), Some(signal));
        until("ffmpeg ends", || {
            let stat = fs::read_to_string(format!("/proc/{ffmpeg}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
        });
        assert_eq!(left(), stays);
    }
}

#[test]
fn options_that_are_not_in_force_are_said() {
    if play_for(&["--seconds", "3"], &["--players", "1", "--tier", "none"]).is_none() {
        return;
    }
    let of = |slack| {
        let tier = ["--players", "1", "--tier", "t3", "--options", slack, "--seconds"];
        [&SMALL[..], &tier].concat()
    };
    let (first, _) = playing(antiphon(&[&of("slack=2")[..], &["3"]].concat()), 2);
    let second = output(&[&of("slack=3")[..], &["1"]].concat());
    assert!(first.wait_with_output().expect("it ends").status.success());
    let said = stderr(&second);
    // That of the other, or of another test.
    assert!(said.contains("its options are in force here, too: period"), "{said}");
}

#[test]
fn sound_is_that_of_the_file_where_it_has_some() {
    let folder = Folder::new("lab-play-sound");
    let (video, blind) = (folder.path("loud.mkv"), folder.path("tone.wav"));
    let picture = "testsrc2=size=320x192:rate=30:duration=1";
    let tone = "sine=frequency=440:duration=1";
    let make = |arguments: &[&str], to: &str| {
        let sources = ["-v", "error", "-f", "lavfi", "-i", tone];
        Command::new("ffmpeg").args(sources).args(arguments).args(["-y", to]).status()
    };
    let both = ["-f", "lavfi", "-i", picture, "-c:v", "libx264", "-c:a", "flac", "-shortest"];
    if make(&both, &video).is_err() {
        return skipped("no ffmpeg");
    }
    assert!(make(&[], &blind).expect("ffmpeg starts").success());
    let play_file = |file: &str, more: &[&str]| {
        let small = ["lab", "play", file, "--players", "3", "--hogs", "0", "--tier", "t3"];
        let mut command = antiphon(&[&small[..], &["--mixed"], &SECOND, more].concat());
        command.env("XDG_CACHE_HOME", folder.path("cache")).output().expect("the command starts")
    };
    let report = report(&play_file(&video, &["--json"]));
    assert_eq!(report["players"][1]["plays"], "sound of loud.mkv");
    plays(&report["players"][1]);
    let text = play_file(&video, &[]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("Player 1 plays the sound of loud.mkv."), "{text}");

    let done = play_file(&blind, &[]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.ends_with("tone.wav: the file has no video stream\n"), "{said}");
}
