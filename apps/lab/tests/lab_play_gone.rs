//! `lab play` when a process ends in the middle: a player, the display, or the command itself.

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::play::{SECOND, SMALL, TWO, Xvfb, play_for, played, plays, plays_video, report};
use common::{Folder, antiphon, output, skipped, stderr};
use serde_json::Value;

/// Waits until `look` returns a value, and returns it.
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

/// Returns the processes that `process` has started.
fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let listed = fs::read_to_string(path).unwrap_or_default();
    listed.split_whitespace().map(|id| id.parse().expect("a number")).collect()
}

/// Returns the names of its threads.
fn threads(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

/// Returns the command while it plays, after a second or two, with its children: `programs` players
/// and hogs.
fn playing(mut command: Command, programs: usize) -> (Child, Vec<u32>) {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let command = command.expect("the command starts");
    let all = until("programs", || {
        let all = children(command.id());
        (all.len() == programs).then_some(all)
    });
    (command, all)
}

/// Sends a signal to a process while it plays: when the hog beside it has begun.
fn signal(process: u32, hog: u32, signal: i32) {
    until("a hog", || {
        let stat = fs::read_to_string(format!("/proc/{hog}/stat")).ok()?;
        // In hundredths of a second. Source: proc(5).
        let used = stat.rsplit_once(')')?.1.split(' ').nth(12)?.parse::<u64>();
        (used.expect("a number") >= 10).then_some(())
    });
    // SAFETY: takes numbers; the process belongs to this test, and was not waited for.
    assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
}

#[test]
fn when_the_display_goes_players_play_on_unseen() {
    // This run makes the clips.
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
        // SAFETY: takes numbers; the process is our child.
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
    // The options in force are those of the other run, or of another test.
    assert!(said.contains("its options are in force here, too: period"), "{said}");
}
