//! The programs of a run, each of which is a [process](crate::compete::process).

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_coop::event_loop::{Event, Loop, Step};
use antiphon_linux::{end_with_parent, schedule};
use antiphon_platform::ThreadId;
use antiphon_player::clip::Clip;
use antiphon_player::game::{Game, Rules};
use antiphon_player::sound::{Silent, Sound};
use antiphon_player::window::Window;
use antiphon_player::{Headless, Hosted, Options, Player, Scale, Screen, Steady, ffmpeg};
use antiphon_report::failure::Failure;
use antiphon_report::schedule::Schedule;
use serde::{Deserialize, Serialize};

use super::decoder::{Cost, Decoding, decoder};
use super::kinds::{DETAILS, Kind, Played, Tells};
use super::tier::{self, Seat};
use super::troubles::Troubles;
use crate::compete::process::{is_ready, tell};
use crate::compete::tier_stats::TierStats;
use crate::compete::work::{Pace, sleep_until};
use crate::compete::{order, process};

/// The order for one program.
pub type Order = order::Order<Part>;

/// How a program plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Number of the program.
    pub number: usize,
    /// The kind of program.
    pub kind: Kind,
    /// Path of the stream, if it plays one.
    pub clip: PathBuf,
    /// Whether each frame shows its number.
    pub has_counter: bool,
    /// File whose sound it plays, and the number of seconds of it; `None` for generated sound.
    pub sound: Option<(PathBuf, u32)>,
    /// The cost of a frame, a chunk, or a part of a step of a game.
    pub cost: Cost,
    /// The tier by which it is on time.
    pub tier: String,
    /// The number of its group, if it has one.
    pub group: Option<u32>,
    /// Scheduling options of the cooperating programs.
    pub schedule: Schedule,
    /// Its nice value.
    pub nice: i32,
    /// Whether it should report its progress while it plays.
    pub live: bool,
    /// Whether it shows its frames in a window.
    pub display: bool,
}

/// The times at which a program begins and ends, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// Time at which it begins; the first frame is due a look-ahead later.
    pub at_ns: u64,
    /// End of the run; frames due later are not played.
    pub end_ns: u64,
}

/// A message of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Progress, with the tardiness of the timers since the previous such message.
    Progress(Played),
    /// What the program observed, sent at its end.
    Seen(Box<Seen>),
}

/// What a program observed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// The frames that it has played.
    pub played: Played,
    /// Whether its time was not spent on decoding, or only in part.
    pub model: bool,
    /// What its tier has done for it.
    pub done: TierStats,
    /// Number of callbacks that took longer than a millisecond.
    pub long: u64,
    /// The troubles that kept it from being on time.
    pub troubles: Troubles,
}

/// Interval between progress reports.
const PROGRESS_NS: u64 = 500_000_000;
/// Length of a chunk of sound.
const CHUNK_MS: u32 = 10;
/// Steps of a game per second.
const STEPS: u32 = 100;

/// Returns the number of samples of a chunk, which is the minimum for sound.
pub fn chunk_samples() -> usize {
    (ffmpeg::SOUND_RATE * CHUNK_MS / 1000) as usize
}

/// Set when the run should end early.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Runs as the program of this order, for the hidden verb.
///
/// # Errors
///
/// If it could not begin.
pub fn program(order: &str) -> Result<ExitCode, Failure> {
    end_with_parent();
    let order: Order = serde_json::from_str(order).map_err(Failure::arguments)?;
    let played = order.be(Part::play);
    played.map(|()| ExitCode::SUCCESS).map_err(Failure::measured)
}

/// Returns the screen on which a player shows its frames.
fn screen(part: &Part, clip: &Clip) -> Result<Box<dyn Screen + Send>, String> {
    if !part.display {
        return Ok(Box::new(Headless));
    }
    let (width, height) = clip.size();
    let title = format!("{}: {}", part.number, part.clip.display());
    let window = Window::open(&title, width, height).map_err(|error| error.to_string())?;
    Ok(Box::new(window))
}

/// Returns the scale of importance that all programs of a run share.
pub fn scale() -> Scale {
    Scale::default()
}

impl Part {
    fn play(self, cpu: u32, pace: Pace) -> Result<(), String> {
        set_nice(self.nice)?;
        let tier = tier::of_name(&self.tier).ok_or_else(|| format!("no tier '{}'", self.tier))?;
        let seat = Seat::take(tier, cpu, self.group, self.schedule)?;
        let stage = Stage { part: &self, seat: &seat };
        match self.kind {
            Kind::Video => {
                let (clip, Decoding { decoder, model }) = self.decoding(pace)?;
                let screen = seat.screen(screen(&self, &clip)?);
                stage.run(Player::new(clip, decoder, screen, self.options()), model)
            }
            Kind::Steady => {
                let (clip, Decoding { decoder, model }) = self.decoding(pace)?;
                let screen = screen(&self, &clip)?;
                stage.run(Steady::new(clip, decoder, screen, self.options()), model)
            }
            Kind::Sound => {
                let cost_ns = self.cost.frame_ns.unwrap_or(0);
                let samples = self.samples()?;
                let work = move |chunk: &mut [i16]| {
                    chunk.iter_mut().for_each(|sample| *sample /= 2);
                    pace.burn(cost_ns);
                };
                let rate = ffmpeg::SOUND_RATE;
                let sound = Sound::new(samples, rate, CHUNK_MS, None, scale(), work, Silent);
                stage.run(sound.map_err(|error| error.to_string())?, true)
            }
            Kind::Game => {
                let cost_ns = self.cost.frame_ns.unwrap_or(0);
                let rules = Rules { rate: STEPS, details: DETAILS, ticks: None, scale: scale() };
                let game = Game::new(rules, move |_| pace.burn(cost_ns));
                stage.run(game.map_err(|error| error.to_string())?, true)
            }
        }
    }

    /// Returns the sound, which is played repeatedly.
    fn samples(&self) -> Result<Vec<i16>, String> {
        let Some((file, seconds)) = &self.sound else {
            return Ok((0..ffmpeg::SOUND_RATE).map(|n| (n % 100) as i16).collect());
        };
        let samples = ffmpeg::sound(file, Some(*seconds));
        samples.map_err(|error| format!("{}: {error}", file.display()))
    }

    fn decoding(&self, pace: Pace) -> Result<(Arc<Clip>, Decoding), String> {
        let said = |error: antiphon_player::Error| format!("{}: {error}", self.clip.display());
        let clip = Arc::new(Clip::open(&self.clip).map_err(said)?);
        let decoding = decoder(&clip, self.cost, pace, self.number as u64 + 1).map_err(said)?;
        Ok((clip, decoding))
    }

    fn options(&self) -> Options {
        Options {
            scale: scale(),
            phase: self.number as u64,
            passes: None,
            has_counter: self.has_counter,
            ..Options::default()
        }
    }
}

/// A program that is about to begin.
struct Stage<'a> {
    part: &'a Part,
    seat: &'a Seat,
}

impl Stage<'_> {
    /// Plays until the end, and reports the results.
    fn run<P: Tells + 'static>(&self, program: P, model: bool) -> Result<(), String> {
        if self.part.live {
            let note: extern "C" fn(i32) = note;
            // SAFETY: the handler calls only async-signal-safe code.
            unsafe { libc::signal(libc::SIGTERM, note as *const () as usize) };
        }
        let mut events = Loop::new().map_err(|error| format!("a loop: {error}"))?;
        let troubles = Rc::new(RefCell::new(Troubles::default()));
        let noted = troubles.clone();
        events.on_trouble(move |trouble| noted.borrow_mut().note(trouble));
        let begin: Begin = is_ready()?;
        sleep_until(begin.at_ns);
        let hosted = Hosted::start(&mut events, program);
        events.submit(Event::timer(begin.end_ns, |context| context.stop()).named("end"));
        if self.part.live {
            says(&mut events, &hosted, begin.at_ns);
        }
        self.seat.cooperate(&mut events)?;
        let _ = events.run();
        let done = self.seat.done();
        let played = hosted.program().played(0);
        let long = events.stats().iter().map(|stats| stats.long).sum();
        // The program leaves those that it cooperated with.
        drop(events);
        let troubles = troubles.borrow().told();
        tell(&Said::Seen(Box::new(Seen { played, model, done, long, troubles })))?;
        // The program's usage can be read only while it exists. It is killed then.
        is_ended();
        Ok(())
    }
}

/// Waits until the process that started this one is gone.
fn is_ended() {
    // Any input ends the wait, and so does the end of input.
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Makes the program report its progress, and end on command.
fn says<P: Tells + 'static>(events: &mut Loop, hosted: &Hosted<P>, at_ns: u64) {
    let hosted = hosted.clone();
    let mut told = 0;
    let say = move |context: &mut antiphon_coop::event_loop::Context<'_>| {
        // Relaxed: the flag publishes no other data.
        if ENDED.load(Relaxed) {
            context.stop();
            return Step::Done;
        }
        let played = Played { per_second: Vec::new(), ..hosted.program().played(told) };
        told += played.tardiness_ns.len();
        // If the reader is gone, this program ends.
        let _ = process::tell(&Said::Progress(played));
        Step::At(context.release_ns().unwrap_or(at_ns) + PROGRESS_NS)
    };
    events.submit(Event::timer_in_steps(at_ns + PROGRESS_NS, say).named("progress"));
}

extern "C" fn note(_: i32) {
    // Relaxed: the flag publishes no other data.
    ENDED.store(true, Relaxed);
}

/// Sets the nice value of the calling thread, and of what it starts.
///
/// # Errors
///
/// One line that says why it is not permitted, and what would help.
pub fn set_nice(nice: i32) -> Result<(), String> {
    let set = if nice == 0 { Ok(()) } else { schedule::set_nice(ThreadId(0), nice) };
    set.map_err(|why| format!("a nice value of {nice}: {why}"))
}
