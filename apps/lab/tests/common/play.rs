//! Runs `lab play` for a second or two, with checks that hold for each player.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use super::{has_keys, output, skipped, stderr};
use serde_json::Value;

/// A hog, for a second, with clips of a second.
pub const SMALL: [&str; 8] =
    ["lab", "play", "--generate", "bursty", "--size", "320x192", "--hogs", "1"];
pub const TWO: [&str; 2] = ["--players", "2"];
pub const SECOND: [&str; 2] = ["--seconds", "1"];

/// Lets two players play. Returns `None` if the program that makes clips is missing.
pub fn played(arguments: &[&str]) -> Option<Output> {
    play(&[&TWO, arguments].concat())
}

pub fn play(arguments: &[&str]) -> Option<Output> {
    play_for(&SECOND, arguments)
}

pub fn play_for(seconds: &[&str], arguments: &[&str]) -> Option<Output> {
    let done = output(&[&SMALL, arguments, seconds].concat());
    if done.status.code() == Some(69) && stderr(&done).contains("apt-get install ffmpeg") {
        skipped(&stderr(&done));
        return None;
    }
    Some(done)
}

pub fn report(done: &Output) -> Value {
    assert!(done.status.success(), "{}", stderr(done));
    serde_json::from_slice(&done.stdout).expect("stdout is one JSON object")
}

pub fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of:#}"))
}

/// Checks what holds for each player, however little CPU time it gets.
pub fn plays(player: &Value) {
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

pub fn plays_video(player: &Value) {
    plays(player);
    assert_eq!(player["read"], player["shown"], "each number was read, and right: {player:#}");
    let of = |key: &str| {
        let layers = ["I", "P", "B", "b"].iter().map(|layer| player["layers"][layer][key].as_u64());
        layers.map(|count| count.expect("a count")).sum::<u64>()
    };
    assert_eq!(Some(of("shown")), player["shown"].as_u64(), "{player:#}");
    assert_eq!(Some(of("dropped")), player["drops"].as_u64(), "{player:#}");
    // One second at 60 Hz; less for a player that could not begin with the others.
    assert!((30..=61).contains(&(of("shown") + of("dropped"))), "{player:#}");
    let by_second = player["fps_by_second"].as_array().expect("a list");
    let shown: u64 = by_second.iter().filter_map(Value::as_u64).sum();
    assert_eq!(shown, of("shown"), "{player:#}");
}

/// An X server, which is killed when this is dropped.
pub struct Xvfb {
    process: Child,
    pub display: String,
}

impl Xvfb {
    pub fn start() -> Option<Self> {
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
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
