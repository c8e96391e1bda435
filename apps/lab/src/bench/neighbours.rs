//! Busy neighbours: processes whose threads each want a CPU during the measurement.
//!
//! | load | processes | threads of each |
//! |---|---|---|
//! | `idle` | none | |
//! | `noisy` | 2 | 1 |
//! | `crowd=N` | 1 | N |
//!
//! They have the priority of the measuring command, and the kernel places them. They end with it:
//! it kills them when a cell is done, and the kernel does so if the command is killed.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use antiphon_linux::end_with_parent;
use serde::{Deserialize, Serialize};

use antiphon_report::failure::Failure;

/// The other load on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Load {
    /// No known load.
    Idle,
    /// Two processes that never sleep.
    Noisy,
    /// Another process with this number of threads, none of which ever sleeps.
    Crowd(u16),
}

/// Threads of a crowd, if no number is given.
const CROWD: u16 = 100;
/// Maximal number of threads of a crowd: process numbers are shared by all users of a machine.
const MOST: u16 = 300;

/// Time that a thread keeps its CPU while others want it, on a machine with few CPUs.
const SLICE: Duration = Duration::from_millis(4);
/// Turns of all threads of a crowd in a repetition, so that each of our threads also has several.
const TURNS: u32 = 10;

impl Load {
    /// Returns its name in reports and on the command line.
    pub fn name(self) -> String {
        self.to_string()
    }

    /// Returns the number of threads that it adds to the machine.
    fn threads(self) -> u16 {
        match self {
            Self::Idle => 0,
            Self::Noisy => 2,
            Self::Crowd(threads) => threads,
        }
    }

    /// Returns the minimal length of a meaningful repetition: in a shorter one, most threads get no
    /// turn.
    pub fn least_repetition(self) -> Duration {
        let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        match self {
            Self::Crowd(threads) => SLICE * u32::from(threads) * TURNS / cpus,
            Self::Idle | Self::Noisy => Duration::ZERO,
        }
    }

    /// Returns the additional time that a repetition may take to end, compared with an idle
    /// machine: waiters get their last turn one by one, and may have to wait for a CPU each time.
    pub fn patience(self) -> Duration {
        match self {
            Self::Crowd(threads) => Duration::from_secs(threads.into()),
            Self::Idle | Self::Noisy => Duration::ZERO,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Noisy => f.write_str("noisy"),
            Self::Crowd(threads) => write!(f, "crowd={threads}"),
        }
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!("'{text}' is not a load; write idle, noisy, crowd, or crowd=1 to crowd={MOST}")
        };
        let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST).contains(number));
        match text.split_once('=') {
            None if text == "idle" => Ok(Self::Idle),
            None if text == "noisy" => Ok(Self::Noisy),
            None if text == "crowd" => Ok(Self::Crowd(CROWD)),
            Some(("crowd", threads)) => number(threads).map(Self::Crowd).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Load {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Load> for String {
    fn from(load: Load) -> Self {
        load.to_string()
    }
}

/// The hidden verb of a neighbour process.
pub const VERB: &str = "__neighbour";
/// The byte that a neighbour prints when all its threads run.
const READY: u8 = b'.';
/// Stack size of each thread, which only counts.
const STACK_BYTES: usize = 64 << 10;

/// The neighbours of a cell. They end when this value is dropped, or with this process.
pub struct Neighbours(Vec<Child>);

impl Neighbours {
    /// Starts the neighbours of `load`. Blocks until all their threads run.
    ///
    /// # Errors
    ///
    /// If the command can't be started again, or can't make that many threads.
    pub fn of(load: Load) -> std::io::Result<Self> {
        let mut started = Self(Vec::new());
        let processes = if load == Load::Noisy { 2 } else { u16::from(load != Load::Idle) };
        let parent = std::process::id().to_string();
        for _ in 0..processes {
            let threads = (load.threads() / processes).to_string();
            let mut command = Command::new("/proc/self/exe");
            command.args([VERB, &parent, &threads]).stdin(Stdio::null()).stdout(Stdio::piped());
            started.0.push(command.spawn()?);
        }
        for child in &mut started.0 {
            let mut ready = [0];
            if let Some(pipe) = &mut child.stdout {
                pipe.read_exact(&mut ready)?;
            }
        }
        Ok(started)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Fails only if the child has ended already, which is the goal.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs as a neighbour: `threads` threads that never sleep. It ends with its parent.
///
/// # Errors
///
/// If that many threads can't be made, or the parent no longer reads the answer.
pub fn burn(parent: u32, threads: u16) -> Result<ExitCode, Failure> {
    end_with_parent();
    for _ in 1..threads {
        let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(|| count(|| true));
        spawned.map_err(|error| {
            let what = format!("no room for {threads} threads: {error}; see ulimit -u, or ask");
            Failure::missing(format!("{what} for a smaller crowd, such as --load crowd=50"))
        })?;
    }
    let mut out = std::io::stdout();
    out.write_all(&[READY]).and_then(|()| out.flush()).map_err(Failure::measured)?;
    // SAFETY: `getppid` takes no arguments and can't fail. The parent may have ended before the
    // call.
    count(|| unsafe { libc::getppid() } as u32 == parent);
    Ok(ExitCode::SUCCESS)
}

/// Counts, and checks about every second whether to go on.
fn count(goes_on: impl Fn() -> bool) {
    let mut turns = 0_u64;
    while !turns.is_multiple_of(1 << 28) || goes_on() {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_as_it_is_written() {
        let of = |text: &str| text.parse::<Load>();
        for text in ["idle", "noisy", "crowd=1", "crowd=300"] {
            assert_eq!(of(text).map(Load::name), Ok(text.to_owned()));
        }
        assert_eq!(of("crowd"), Ok(Load::Crowd(100)));
        for wrong in ["", "loud", "crowd=", "crowd=0", "crowd=301", "crowd=x", "noisy=2", "crowds"]
        {
            assert!(of(wrong).is_err_and(|what| what.contains("crowd=300")), "{wrong}");
        }
    }

    #[test]
    fn a_larger_crowd_needs_more_time() {
        let least = |threads| Load::Crowd(threads).least_repetition();
        assert!(least(300) > least(100) && least(100) > Load::Noisy.least_repetition());
        assert!(Load::Crowd(300).patience() > Load::Idle.patience());
    }
}
