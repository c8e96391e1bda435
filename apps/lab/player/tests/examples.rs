//! The examples, in a short form: they end, no picture is wrong, and their output has the right
//! form. Tardiness is not checked: other tests run at the same time.

#[path = "../../../../crates/antiphon/tests/support/example.rs"]
mod example;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use antiphon_coop::{Tier, available};
use antiphon_player::decode::OpenH264;
use antiphon_player::ffmpeg::{self, Making};

use example::{refuses, succeeds, text};

/// A file that is removed when this is dropped.
struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Self {
        let name = format!("antiphon-example-{}-{name}.h264", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// A clip of a second; `None` if it can't be made here.
    fn clip(name: &str) -> Option<Self> {
        if !ffmpeg::is_installed() {
            println!("skipped: no ffmpeg on this machine");
            return None;
        }
        let made = Self::new(name);
        let making = Making { size: (320, 180), seconds: 1, ..Making::default() };
        ffmpeg::make(&making, &made.0).expect("a clip");
        Some(made)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("it is UTF-8")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The number between these words.
fn number(said: &str, before: &str, after: &str) -> u64 {
    let from = said.find(before).unwrap_or_else(|| panic!("no '{before}' in {said}"));
    let rest = &said[from + before.len()..];
    let to = rest.find(after).unwrap_or_else(|| panic!("no '{after}' in {said}"));
    rest[..to].trim().parse().unwrap_or_else(|_| panic!("no number at '{before}' in {said}"))
}

#[test]
fn headset_puts_each_chunk_out() {
    let Some(said) = succeeds("headset", &["1", "2", "1"]) else { return };
    let here = available();
    for tier in [Tier::None, Tier::Boost, Tier::RealTimeSplit, Tier::Split, Tier::Baton] {
        let name = format!("{tier:<5} ");
        let row = said.lines().find(|line| line.starts_with(&name));
        let row = row.unwrap_or_else(|| panic!("no {tier} in {said}"));
        if here.tier(tier).is_err() {
            continue;
        }
        let numbers: Vec<f64> =
            row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [chunks, underruns, p50, p99, max, _, pictures] = numbers[..] else { panic!("{row}") };
        assert_eq!(chunks, 100.0, "{row}");
        assert!(underruns <= chunks && p50 <= p99 && p99 <= max && pictures >= 0.0, "{row}");
    }
    refuses("headset", &["1", "1"], 2, "people: a number from 2");
    refuses("headset", &["1", "2", "0", "T9"], 2, "a tier is one of none, T1");
}

#[test]
fn play_plays_clips_beside_sound_and_a_game() {
    refuses("play", &["--loud"], 2, "--loud is not known");
    let Some(clip) = Made::clip("play") else { return };
    let Some(said) = succeeds("play", &[clip.name(), clip.name()]) else { return };
    assert_eq!(said.matches("wrong: 0; out of order: 0").count(), 2, "{said}");
    assert!(number(&said, "sound (made up): ", " chunks") > 0, "{said}");
    assert!(number(&said, "game: ", " ticks") > 0, "{said}");
}

#[test]
fn clip_tells_what_is_in_a_clip() {
    refuses("clip", &["loud"], 2, "a clip is bursty or uniform, not `loud`");
    if !ffmpeg::is_installed() || OpenH264::load().is_err() {
        println!("skipped: no ffmpeg, or no decoder, on this machine");
        return;
    }
    let made = Made::new("clip");
    let Some(said) = succeeds("clip", &["bursty", made.name()]) else { return };
    assert_eq!(number(&said, ": ", " frames in "), 600, "{said}");
    let layers: Vec<_> = said.lines().skip(2).filter_map(|line| line.chars().next()).collect();
    assert_eq!(layers.len(), 4, "{said}");
}

#[test]
fn stream_serves_players_of_several_bandwidths() {
    refuses("stream", &["sing"], 2, "serve FILE ADDRESS");
    let Some(clip) = Made::clip("stream") else { return };
    let Some(said) = succeeds("stream", &["demo", clip.name()]) else { return };
    assert_eq!(said.matches("server: ").count(), 3, "{said}");
    for row in ["2000 kbit/s, all", "1250 kbit/s, all", "1100 kbit/s, reference"] {
        assert!(said.contains(row), "no {row} in {said}");
    }
    assert!(!said.contains("wrong: ") && !said.contains("nothing came"), "{said}");
}

/// Plays with two processes, which share only the network connection.
#[test]
fn a_stream_is_played_by_another_program() {
    let Some(clip) = Made::clip("served") else { return };
    let Some(mut serve) = example::example("stream") else { return };
    serve.args(["serve", clip.name(), "127.0.0.1:0", "--clients", "1"]).stdout(Stdio::piped());
    let mut server = serve.spawn().expect("timeout runs it");
    let mut lines = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let line = lines.next().expect("a line").expect("text");
    let (_, address) = line.rsplit_once(" at ").expect("it says where it listens");
    let said = succeeds("stream", &["play", address, "--quality", "predicted"]).expect("as before");
    assert!(said.contains("no limit, predicted") && !said.contains("wrong: "), "{said}");
    assert!(server.wait().expect("a child").success(), "it ends with its one client");
    let done = example::example("stream").expect("as before").args(["play", address]).output();
    let done = done.expect("timeout runs it");
    assert!(!done.status.success(), "nobody serves: {}", text(&done.stdout));
}
