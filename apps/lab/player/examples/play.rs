//! Plays clips on one event loop, as a group, with sound and a game beside them; headless, or with
//! `--display` each in a window of X11:
//! `cargo run --release -p antiphon-player --example play -- [--display] [FILE…]`; without a file,
//! it makes a clip of ten seconds.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use antiphon_coop::event_loop::Loop;
use antiphon_player::decode;
use antiphon_player::ffmpeg::{self, Making};
use antiphon_player::game::{Game, Rules};
use antiphon_player::sound::{Silent, Sound};
use antiphon_player::window::Window;
use antiphon_player::{Clip, Headless, Hosted, Options, Player, Scale, Screen};

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if let Some(flag) = flags.iter().find(|flag| *flag != "--display") {
        eprintln!("play: {flag} is not known: [--display] [FILE…]");
        return ExitCode::from(2);
    }
    match run(!flags.is_empty(), files.into_iter().map(PathBuf::from).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("play: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The screen on which a clip is shown.
fn screen(is_seen: bool, file: &Path, clip: &Clip) -> Result<Box<dyn Screen>, Box<dyn Error>> {
    if !is_seen {
        return Ok(Box::new(Headless));
    }
    let (width, height) = clip.size();
    Ok(Box::new(Window::open(&file.display().to_string(), width, height)?))
}

/// The sound of the first file that has some, with that file's name; otherwise a synthetic tone.
fn sound_of(files: &[PathBuf]) -> (Vec<i16>, String) {
    let is_enough = |samples: &Vec<i16>| samples.len() >= ffmpeg::SOUND_RATE as usize / 100;
    let mut of_files = files.iter().filter_map(|file| {
        let samples = ffmpeg::sound(file, None).ok().filter(is_enough)?;
        Some((samples, file.display().to_string()))
    });
    let made_up = || ((0..48_000).map(|n| (n % 100) as i16).collect(), "made up".to_owned());
    of_files.next().unwrap_or_else(made_up)
}

fn run(is_seen: bool, mut files: Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let is_made = files.is_empty();
    if is_made {
        let name = format!("antiphon-clip-{}.h264", std::process::id());
        let file = std::env::temp_dir().join(name);
        ffmpeg::make(&Making::default(), &file)?;
        files.push(file);
    }
    let mut events = Loop::new()?;
    let mut players = Vec::new();
    let mut longest_ns = 0;
    for file in &files {
        let clip = Arc::new(Clip::open(file)?);
        longest_ns = longest_ns.max(clip.frames().len() as u64 * clip.frame_ns());
        let decoder = decode::installed(&clip, 800_000)?;
        let phase = players.len() as u64;
        let options = Options { has_counter: true, phase, ..Options::default() };
        let screen = screen(is_seen, file, &clip)?;
        players.push(Hosted::start(&mut events, Player::new(clip, decoder, screen, options)));
    }
    let scale = Scale::default();
    let ticks = Some(longest_ns / 10_000_000);
    let (samples, whose) = sound_of(&files);
    if is_made {
        std::fs::remove_file(&files[0])?;
    }
    let halve = |chunk: &mut [i16]| chunk.iter_mut().for_each(|sample| *sample /= 2);
    let sound = Sound::new(samples, ffmpeg::SOUND_RATE, 10, ticks, scale, halve, Silent)?;
    let sound = Hosted::start(&mut events, sound);
    let rules = Rules { rate: 100, details: 4, ticks, scale };
    let game = Hosted::start(&mut events, Game::new(rules, |_| decode::spin(50_000))?);

    let _ = events.run();

    for (player, file) in players.iter().zip(&files) {
        let player = player.program();
        let report = player.report();
        println!("{}: {report}", file.display());
        println!("  frames a second: {:?}", report.per_second);
        let (read, misread) = (report.read, report.misread);
        println!("  numbers read: {read}, wrong: {misread}; out of order: {}", report.disorder);
        println!("  decoded late, for others: {}; refused: {}", report.late, report.refused);
    }
    let sound = sound.program();
    let played = sound.played();
    println!("sound ({whose}): {} chunks, {} underruns", played.chunks, played.underruns);
    println!(
        "game: {} ticks, {:.3} of its details",
        game.program().drawn().ticks,
        game.program().quality()
    );
    for stats in events.stats() {
        let ms = |part| stats.tardiness.percentile_ns(part) as f64 / 1e6;
        if stats.tardiness.count() > 0 {
            println!(
                "{}: late by {:.3} ms (half), {:.3} (99 %)",
                stats.name,
                ms(50_000),
                ms(99_000)
            );
        }
    }
    Ok(())
}
