//! `lab play`, for a second or two: the order of frames, the numbers in them, and that all programs
//! play and get some of the CPU. The tardiness of frames is never checked.

mod common;

use std::io::Write as _;
use std::process::Command;

use common::live::{Live, modes};
use common::play::{SECOND, SMALL, TWO, Xvfb, number, play, played, plays, plays_video, report};
use common::{FRAME, Folder, antiphon, has_keys, jain, output, refused, skipped, stderr};
use serde_json::Value;

#[test]
fn players_are_in_order_and_nobody_starves() {
    for (tier, name) in [("none", "none"), ("t3", "T3")] {
        let Some(done) = played(&["--tier", tier, "--json"]) else { return };
        let report = report(&done);
        has_keys(&report, &FRAME);
        has_keys(&report, &["players", "jain_cpu", "jain_fps", "switches_per_s", "tier"]);
        has_keys(&report, &["steady", "hogs", "competitor", "level", "weaker", "clips", "cdf_us"]);
        // The options that have an effect.
        let options = report["options"].as_object().map_or(0, |options| options.len());
        assert_eq!(options, if tier == "t3" { 4 } else { 0 });
        assert_eq!(report["tier"], name);
        let players = report["players"].as_array().expect("a list");
        assert_eq!(players.len(), 2);
        players.iter().for_each(plays_video);
        let hogs = report["hogs"].as_array().expect("a list");
        assert!(hogs.len() == 1 && hogs[0].as_f64() > Some(0.0), "{report:#}");
        // The players want little CPU time, and are equal.
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
        // In a run of a second, the first look-ahead is easy, so there may be hardly any drops.
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
    // A hundred steps per second, and those in the look-ahead.
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
    // Pictures of tardiness, frames, bits, and two of CPU time.
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("1 bursty-1") && page.contains("hog 0") && !page.contains("NaN"));
}

#[test]
fn on_a_terminal_it_is_live_and_ends_when_it_is_told() {
    // This run makes a clip, so that later runs do not report that.
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
        (&["a.h264", "--hz", "30"], "cannot be used with"),
        (&["a.h264", "--size", "640x360"], "cannot be used with"),
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
    // The message comes from ffmpeg.
    let done = output(&["lab", "play", &text]);
    match done.status.code() {
        Some(69) => skipped(&stderr(&done)),
        code => {
            let said = stderr(&done);
            let last = said.lines().last().unwrap_or_default();
            assert_eq!(code, Some(2), "{said}");
            assert!(last.contains("text.mp4: ffmpeg can't recode it"), "{said}");
        }
    }
}

#[test]
fn without_ffmpeg_it_is_named() {
    let folder = Folder::new("lab-play-none");
    let mut command = antiphon(&["lab", "play", "--generate", "bursty", "--seconds", "1"]);
    // No program is found, and no clip is kept.
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
    assert_eq!(text.matches(" took more than 1 ms by the clock, ").count(), 1, "{text}");
    assert!(text.contains("\n`prepare` of player "), "{text}");
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
    // Other programs may have the CPU; it is short then.
    let had_all = |of: &Value| of["cpu_was_short"] == (number(&of["players"][0], "drops") > 0.0);
    assert!(had_all(&report(&done)));
    let text = String::from_utf8_lossy(&run(&[]).stdout).into_owned();
    let row = text.lines().find(|line| line.starts_with("0 bursty-0")).expect("a row");
    let shown_all = row.ends_with(" 0  0  0  0");
    assert_eq!(text.contains("The CPU was not short"), shown_all, "{text}");
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
