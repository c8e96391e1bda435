//! The scheduler of a case: a process, which the case starts, asks and ends.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use antiphon_hints::{Hints, SOCKET, STATUS};
use antiphon_scx::loader::{Failure, is_enabled};
use serde_json::Value;

/// The argument by which this program is the scheduler.
pub const VERB: &str = "schedule";

/// How long a case waits for what must happen, before it fails. For hosts under load.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A scheduler that runs.
pub struct Scheduler {
    child: Child,
}

impl Scheduler {
    /// Starts it with options, and waits until the kernel says that it is enabled.
    pub fn start(options: &[&str]) -> Result<Self, Failure> {
        Self::start_with(options, None)
    }

    /// Starts it with these privileges and no other, or with all.
    pub fn start_with(options: &[&str], kept: Option<&[u32]>) -> Result<Self, Failure> {
        await_state(false)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(VERB).args(options);
        if let Some(kept) = kept {
            let dropped: Vec<_> = (0..64).filter(|one| !kept.contains(one)).collect();
            // SAFETY: only system calls. A program of root has what is left when it starts.
            unsafe {
                command.pre_exec(move || {
                    for one in &dropped {
                        // Numbers beyond the last privilege are refused, which is no loss.
                        libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(*one));
                    }
                    Ok(())
                });
            }
        }
        let mut started = Self { child: command.spawn()? };
        let begin = Instant::now();
        loop {
            if is_enabled()? && UnixStream::connect(STATUS).is_ok() {
                return Ok(started);
            }
            if let Some(status) = started.child.try_wait()? {
                return Err(format!("the scheduler did not start: {status}").into());
            }
            if begin.elapsed() > PATIENCE {
                return Err("the scheduler did not start".into());
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Connects this process.
    pub fn connect(&self) -> io::Result<Hints> {
        Hints::connect(SOCKET)
    }

    /// Returns what it says about its decisions.
    pub fn status(&self) -> Result<Value, Failure> {
        let mut text = String::new();
        UnixStream::connect(STATUS)?.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns a count of its decisions.
    pub fn count(&self, what: &str) -> Result<u64, Failure> {
        let status = self.status()?;
        status["decisions"][what].as_u64().ok_or_else(|| format!("no count {what}").into())
    }

    /// Ends it, after having seen that it was enabled up to now.
    pub fn stop(mut self) -> Result<(), Failure> {
        if !is_enabled()? {
            return Err("the kernel has unloaded the scheduler before the end of the case".into());
        }
        // SAFETY: sends a signal to the child, which has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("the scheduler ended by {status}").into());
        }
        await_state(false)
    }

    /// Kills it.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it ends by itself. Returns whether it called that a success.
    pub fn ends(mut self) -> io::Result<bool> {
        Ok(self.child.wait()?.success())
    }
}

/// Runs a case under a scheduler with options: enabled before and after.
pub fn under<R>(
    options: &[&str],
    case: impl FnOnce(&Scheduler) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let scheduler = Scheduler::start(options)?;
    match case(&scheduler) {
        Ok(result) => scheduler.stop().map(|()| result),
        Err(failure) => {
            let state = fs::read_to_string("/sys/kernel/sched_ext/state")?;
            scheduler.kill()?;
            Err(format!("{failure} (sched_ext was {})", state.trim()).into())
        }
    }
}

/// Waits until the kernel has a scheduler of sched_ext, or none.
pub fn await_state(enabled: bool) -> Result<(), Failure> {
    let begin = Instant::now();
    while is_enabled()? != enabled {
        if begin.elapsed() > PATIENCE {
            return Err(format!("sched_ext did not become enabled={enabled}").into());
        }
        sleep(Duration::from_millis(2));
    }
    Ok(())
}
