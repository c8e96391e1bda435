//! The plan of a run, as orders for the programs.

use std::path::PathBuf;

use antiphon_coop::{Available, Competitors, Tier, available};
use antiphon_player::ffmpeg::{self, Making};
use antiphon_player::window::Window;
use antiphon_report::failure::Failure;
use antiphon_report::schedule::Schedule;

use super::clips::{self, Ready};
use super::decoder::{Cost, measured_ns};
use super::kinds::{DETAILS, Kind};
use super::program::{Order, Part, chunk_samples, set_nice};
use super::tier;
use super::{Arguments, Made};
use crate::bench::check_seconds;
use crate::compete::hogs;
use crate::compete::level::Level;
use crate::compete::order::Role;
use crate::compete::terms::{Competitor, Grouping, wanted};
use crate::compete::work::Pace;

/// The plan of a run.
pub struct Plan {
    /// The clips to play.
    pub clips: Vec<Ready>,
    /// The programs that play; the steady player, if there is one, is the last.
    pub parts: Vec<Part>,
    /// Number of these programs that adapt.
    pub players: usize,
    /// Number of programs that only want the CPU.
    pub hogs: usize,
    /// What these programs compute.
    pub competitor: Competitor,
    /// Path of gcc's compiler, if it competes.
    compiler: Option<PathBuf>,
    /// Whether the players are one group.
    pub one_group: bool,
    /// The tier by which players are on time.
    pub tier: Tier,
    /// The tiers that this machine supports.
    pub here: Available,
    /// Scheduling options of the cooperating programs.
    pub schedule: Schedule,
    /// The level of the run: which programs it competes with.
    pub level: Level,
    /// CPUs that the programs are assigned to, in turn.
    pub cpus: Vec<u32>,
    /// Calibrated speed of the programs' work.
    pub pace: Pace,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Share of a CPU that a player wants on average, in per cent, if given.
    pub demand: Option<f64>,
    /// Probability that the first player misbehaves.
    pub misbehave: f64,
    /// The sound that players of sound play, if a file has any.
    pub sound: Option<FileSound>,
}

/// The sound of a file.
pub struct FileSound {
    /// The file.
    pub file: PathBuf,
    /// Name in reports.
    pub name: String,
}

/// Default costs of a chunk of sound, and of a part of a step of a game, in nanoseconds.
const CHUNK_NS: u64 = 200_000;
const PART_NS: u64 = 100_000;
/// Period of chunks, and of steps.
const STEP_NS: u64 = 10_000_000;
/// Maximal length of a generated clip, in seconds; it is repeated.
const LONGEST_S: f64 = 10.0;

impl Plan {
    /// Checks the arguments, and makes the clips that are missing.
    ///
    /// # Errors
    ///
    /// Bad arguments; a missing program or privilege.
    pub fn of(arguments: &Arguments) -> Result<Self, Failure> {
        check_seconds(arguments.seconds)?;
        check(arguments)?;
        let allowed = antiphon_linux::allowed();
        if !(1..=allowed.len()).contains(&arguments.cpus) {
            let wanted = format!("--cpus takes a number from 1 to {}", allowed.len());
            return Err(Failure::arguments(wanted));
        }
        let cpus = allowed[allowed.len() - arguments.cpus..].to_vec();
        if arguments.display {
            // The programs open their own windows; this only checks that they can.
            let window = Window::open("antiphon", 1, 1).map(drop);
            window.map_err(|error| Failure::missing(format!("--display: {error}")))?;
        }
        // The programs that this command starts compete with each other.
        let here = available().against(Competitors::Same);
        let one_group = arguments.mixed || arguments.group == Grouping::One;
        let tier = arguments.tier.choose(one_group, &here)?;
        let schedule = arguments.options.unwrap_or_default();
        let compiles = arguments.competitor == Competitor::Cc;
        let compiler = compiles.then(hogs::compiler).transpose().map_err(Failure::missing)?;
        let mut plan = Self {
            clips: clips(arguments)?,
            parts: Vec::new(),
            players: arguments.players as usize,
            hogs: arguments.hogs as usize,
            competitor: arguments.competitor,
            compiler,
            one_group,
            tier,
            here,
            schedule,
            level: Level::here(),
            cpus,
            pace: Pace::calibrate(),
            seconds: arguments.seconds,
            demand: arguments.demand,
            misbehave: arguments.misbehave,
            sound: None,
        };
        if arguments.mixed {
            plan.sound = plan.clips.iter().find_map(sound_of);
        }
        plan.parts = plan.parts(arguments)?;
        Ok(plan)
    }

    /// Returns the players, and the steady player.
    fn parts(&self, arguments: &Arguments) -> Result<Vec<Part>, Failure> {
        let decode_ns = match self.demand {
            Some(_) => {
                let ns = |ready: &Ready| measured_ns(&ready.clip).map_err(Failure::measured);
                self.clips.iter().map(ns).collect::<Result<Vec<_>, _>>()?
            }
            None => vec![0; self.clips.len()],
        };
        // A different group for each run, because several runs may share the CPU.
        let group = self.one_group.then(std::process::id);
        let player = |number: usize| {
            let kind = match self.players - number {
                1 if arguments.mixed => Kind::Game,
                2 if arguments.mixed => Kind::Sound,
                _ => Kind::Video,
            };
            let ready = &self.clips[number % self.clips.len()];
            let demand = self.demand.map(|demand| wanted(demand / 100.0, number, self.players));
            let each_ns = |share: f64, ns: u64, parts: u64| (share * ns as f64) as u64 / parts;
            let frame_ns = match kind {
                // Sound is not split into parts, and demand does not change its cost.
                Kind::Sound => Some(CHUNK_NS),
                Kind::Game => {
                    Some(demand.map_or(PART_NS, |share| each_ns(share, STEP_NS, DETAILS + 1)))
                }
                _ => demand.map(|share| each_ns(share, ready.clip.frame_ns(), 1)),
            };
            let misbehaves = if number == 0 { self.misbehave } else { 0.0 };
            let decoder_ns = decode_ns[number % self.clips.len()];
            Part {
                number,
                kind,
                clip: ready.path.clone(),
                has_counter: ready.has_counter,
                cost: Cost { frame_ns: frame_ns.map(|ns| ns.max(1)), decoder_ns, misbehaves },
                sound: self.sound.as_ref().filter(|_| kind == Kind::Sound).map(|sound| {
                    // It also plays sound during the warm-up.
                    (sound.file.clone(), self.seconds.ceil() as u32 + 1)
                }),
                tier: self.tier.name().to_owned(),
                group,
                schedule: self.schedule,
                nice: 0,
                live: false,
                display: arguments.display,
            }
        };
        let mut parts: Vec<_> = (0..self.players).map(player).collect();
        if let Some(nice) = arguments.nice {
            parts.push(Part {
                number: self.players,
                kind: Kind::Steady,
                tier: Tier::None.name().to_owned(),
                group: None,
                nice,
                cost: Cost::default(),
                ..player(0)
            });
        }
        Ok(parts)
    }

    /// Returns the orders of all programs, those that play first; each kind is assigned to the CPUs
    /// in turn. With `live`, the programs report their progress.
    ///
    /// # Errors
    ///
    /// The errors of [`Role::hog`].
    pub fn orders(&self, live: bool) -> Result<Vec<Order>, String> {
        let place = |number: usize| self.cpus[number % self.cpus.len()];
        let hog = Role::hog(self.competitor, self.compiler.as_ref())?;
        let plays = self.parts.iter().map(|part| Role::Play(Part { live, ..part.clone() }));
        let all = plays.chain((0..self.hogs).map(|_| hog.clone())).enumerate();
        let pace = self.pace;
        let order = |(number, role)| Order { cpu: place(number), pace, own_level: None, role };
        Ok(all.map(order).collect())
    }

    /// Returns the clip of a program that plays one.
    pub fn clip(&self, number: usize) -> Option<&Ready> {
        let part = self.parts.get(number)?;
        let plays = matches!(part.kind, Kind::Video | Kind::Steady);
        self.clips.iter().find(|ready| plays && ready.path == part.clip)
    }

    /// Returns the name of what the program plays, for people.
    pub fn plays(&self, number: usize) -> &str {
        let kind = self.parts[number].kind;
        match (self.clip(number), &self.sound) {
            (Some(ready), _) => &ready.name,
            (None, Some(sound)) if kind == Kind::Sound => &sound.name,
            _ => kind.name(),
        }
    }

    /// Opens the domains that players share, so that they exist, with the requested options, before
    /// the first player joins.
    ///
    /// # Errors
    ///
    /// If a domain is not available.
    pub fn domains(&self) -> Result<Vec<antiphon_coop::Domain>, Failure> {
        if self.tier != Tier::Baton {
            return Ok(Vec::new());
        }
        let open = |&cpu: &u32| tier::domain(cpu, self.schedule).map_err(Failure::missing);
        self.cpus.iter().map(open).collect()
    }
}

/// Returns the sound of the file that a clip was extracted from, if it has any.
fn sound_of(ready: &Ready) -> Option<FileSound> {
    let file = ready.source.clone()?;
    // ffmpeg fails on a file without sound; generated sound is played then.
    let samples = ffmpeg::sound(&file, Some(1)).unwrap_or_default();
    let name = format!("sound of {}", ready.name);
    (samples.len() >= chunk_samples()).then_some(FileSound { file, name })
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { demand, misbehave, mixed, players, nice, .. } = arguments;
    if demand.is_some_and(|demand| !(demand > 0.0 && demand <= 1000.0)) {
        let wanted = "--demand takes per cent of a CPU from above 0 to 1000, such as 14.3";
        return Err(Failure::arguments(wanted));
    }
    if !(0.0..=1.0).contains(misbehave) {
        return Err(Failure::arguments("--misbehave takes a share from 0 to 1, such as 0.01"));
    }
    if *mixed && *players < 3 {
        let wanted = "--mixed takes three --players: one of video, one of sound, and a game";
        return Err(Failure::arguments(wanted));
    }
    if let Some(nice) = *nice {
        // In a thread, so that the nice value ends with it.
        let tried = std::thread::spawn(move || set_nice(nice)).join();
        let tried = tried.unwrap_or_else(|_| Err("the thread panicked".to_owned()));
        tried.map_err(|why| Failure::missing(format!("--nice: {why}")))?;
    }
    Ok(())
}

fn clips(arguments: &Arguments) -> Result<Vec<Ready>, Failure> {
    let Some(made) = arguments.generate else { return clips::of_files(&arguments.files) };
    let kind = match made {
        Made::Bursty => ffmpeg::Kind::Bursty,
        Made::Uniform => ffmpeg::Kind::Uniform,
    };
    let seconds = arguments.seconds.ceil().min(LONGEST_S) as u32;
    let making = Making { kind, size: arguments.size, rate: arguments.hz, seconds, seed: 0 };
    clips::generated(making, arguments.players as usize)
}
