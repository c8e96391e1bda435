//! One run of the program: disturbs and watches it, and cleans up after it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::board::Board;
use super::chance::Chance;
use super::dump;
use super::group::Group;
use super::program::Program;
use super::tally::Tally;
use super::watch::Watch;
use crate::Failure;

/// The interval between two checks of the board.
const TICK: Duration = Duration::from_millis(20);
/// A check that comes later than this counts as if it came in time: the watchdog was delayed.
const LONGEST_TICK: Duration = Duration::from_millis(100);
/// A check that comes later than this was not delayed by a busy machine: the hunter was stopped,
/// and the excess does not count as hunted.
const STOPPED: Duration = Duration::from_secs(1);
/// A program that makes progress also counts as hung if it has not ended `GRACE` times its patience
/// after its time.
const GRACE: u32 = 12;
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
const SHORTEST_RUN: Duration = Duration::from_secs(1);
const LONGEST_RUN: Duration = Duration::from_secs(5);
/// The folder where the C library keeps named shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// How a run ended.
pub enum Ending {
    /// All of its threads ended.
    Finished,
    /// The program was killed on purpose.
    Killed,
    /// The program ended in a wrong way, described here.
    Failed(String),
}

impl Ending {
    /// Returns whether this ending is a failure.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// The ending; to a failure, `about` is added.
    pub fn with(self, about: &str) -> Self {
        match self {
            Self::Failed(what) => Self::Failed(format!("{about}{what}")),
            ending => ending,
        }
    }
}

/// A planned run.
pub struct Trial {
    seed: u64,
    library: Option<PathBuf>,
    length: Duration,
    patience: Duration,
    torments: Vec<(Duration, Torment)>,
    deadlock: bool,
}

/// A disturbance of the program at some time; `all` includes its children.
#[derive(Clone, Copy)]
enum Torment {
    Pause { length: Duration, all: bool },
    Kill,
}

impl Trial {
    /// A run for a seed. Its length depends on the seed, but is at most `left`.
    pub fn new(seed: u64, library: Option<&Path>, left: Duration, patience: Duration) -> Self {
        let mut chance = Chance::new(seed);
        let length = (SHORTEST_RUN + chance.time(LONGEST_RUN - SHORTEST_RUN)).min(left);
        let mut torments = Vec::new();
        if chance.one_in(2) {
            for _ in 0..1 + chance.below(10) {
                let longest = if chance.one_in(2) { TICK } else { LONGEST_PAUSE };
                let pause = Torment::Pause { length: chance.time(longest), all: chance.one_in(2) };
                // Some come when the program is about to end.
                torments.push((chance.time(length * 11 / 10), pause));
            }
        }
        if chance.one_in(4) {
            torments.push((chance.time(length), Torment::Kill));
        }
        torments.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        let library = library.map(Path::to_owned);
        Self { seed, library, length, patience, torments, deadlock: false }
    }

    /// A run that must be recognised as a hang.
    pub fn of_deadlock(seed: u64, patience: Duration) -> Self {
        let (length, torments) = (Duration::ZERO, Vec::new());
        Self { seed, library: None, length, patience, torments, deadlock: true }
    }

    /// Performs the run; returns its seed and its ending.
    pub fn run(mut self, program: &Program, tally: &mut Tally) -> Result<(u64, Ending), Failure> {
        let named = shared_memory()?;
        let board = Board::create(&program.board())?;
        let mut group = Group::start(&mut self.command(program, &board))?;
        let mut ending = self.watch(&mut group, &board, program, tally)?;
        group.kill()?;
        tally.add(&board.read()?);
        if group.outlived()? {
            ending = Ending::Failed("a child of the program outlives it".to_owned());
        }
        if let Some(name) = shared_memory()?.difference(&named).next() {
            ending = Ending::Failed(format!("{SHARED_MEMORY} has a new {}", name.display()));
        }
        Ok((self.seed, ending))
    }

    fn command(&self, program: &Program, board: &Board) -> Command {
        let mut command = Command::new(program.path());
        command
            .arg(board.path())
            .arg(self.seed.to_string())
            .arg(self.length.as_millis().to_string())
            .arg(std::process::id().to_string())
            .args(self.deadlock.then_some("deadlock"))
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(library) = &self.library {
            command.env("LD_PRELOAD", library);
        }
        command
    }

    fn watch(
        &mut self,
        group: &mut Group,
        board: &Board,
        program: &Program,
        tally: &mut Tally,
    ) -> Result<Ending, Failure> {
        let mut watch = Watch::new(self.patience);
        let (start, mut looked, mut running) = (Instant::now(), Instant::now(), Duration::ZERO);
        loop {
            let away = looked.elapsed();
            looked = Instant::now();
            tally.ran += away.min(STOPPED);
            let ran = away.min(LONGEST_TICK);
            running += ran;
            if let Some(status) = group.ended()? {
                return Ok(self.judge(status));
            }
            if let Some(torment) = self.due(start.elapsed()) {
                if apply(torment, group, tally)? {
                    return Ok(Ending::Killed);
                }
                looked = Instant::now();
            }
            let hang = watch.look(ran, &board.read()?).map(|hang| hang.to_string());
            let late = running > self.length + GRACE * self.patience;
            if let Some(what) = hang.or_else(|| late.then(|| "it does not end".to_owned())) {
                let dump = dump::dump(group.leader(), &board.read()?);
                let kept = program.dump(self.seed);
                std::fs::write(&kept, &dump)?;
                eprintln!("{dump}");
                return Ok(Ending::Failed(format!("a hang: {what}; see {}", kept.display())));
            }
            std::thread::sleep(TICK);
        }
    }

    /// The next torment, if its time has come.
    fn due(&mut self, elapsed: Duration) -> Option<Torment> {
        self.torments.pop_if(|&mut (at, _)| at <= elapsed).map(|(_, torment)| torment)
    }

    fn judge(&self, status: ExitStatus) -> Ending {
        if status.success() {
            return Ending::Finished;
        }
        let how = status.signal().map(|signal| format!("signal {signal}"));
        let how = how.or_else(|| status.code().map(|code| format!("exit code {code}")));
        Ending::Failed(format!("the program ended with {}", how.unwrap_or_default()))
    }
}

/// Applies a torment; returns whether it killed the program.
fn apply(torment: Torment, group: &mut Group, tally: &mut Tally) -> Result<bool, Failure> {
    match torment {
        Torment::Pause { length, all } => {
            tally.stops += 1;
            tally.ran += length;
            group.signal(libc::SIGSTOP, all)?;
            std::thread::sleep(length);
            group.signal(libc::SIGCONT, all)?;
            Ok(false)
        }
        Torment::Kill => {
            tally.kills += 1;
            // Only the leader: its children must die with it.
            group.signal(libc::SIGKILL, false)?;
            while group.ended()?.is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(true)
        }
    }
}

/// The names of shared memory that may be the program's.
fn shared_memory() -> Result<BTreeSet<OsString>, Failure> {
    let mut names = BTreeSet::new();
    if Path::new(SHARED_MEMORY).is_dir() {
        for entry in std::fs::read_dir(SHARED_MEMORY)? {
            let name = entry?.file_name();
            if name.to_string_lossy().contains("antiphon") {
                names.insert(name);
            }
        }
    }
    Ok(names)
}
