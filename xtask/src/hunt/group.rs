//! The process group of one run: the program and the children that it forks.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::Failure;

/// How long a killed process may take to end.
const DEATH: Duration = Duration::from_secs(20);

/// A group of descendants of this process; remaining processes are killed when it is dropped.
pub struct Group {
    leader: Child,
    id: libc::pid_t,
    /// Whether the leader has been waited for.
    ended: bool,
}

/// Makes orphans of the hunted program children of this process, so that it can wait for them.
pub fn adopt_orphans() -> Result<(), Failure> {
    // SAFETY: sets a flag of this process, and takes no pointer.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(format!("prctl: {}", io::Error::last_os_error()).into()),
    }
}

impl Group {
    /// Starts the command as the leader of a new group.
    pub fn start(command: &mut Command) -> Result<Self, Failure> {
        let leader = command.process_group(0).spawn()?;
        let id = libc::pid_t::try_from(leader.id())?;
        Ok(Self { leader, id, ended: false })
    }

    /// The process id of the leader.
    pub fn leader(&self) -> u32 {
        self.leader.id()
    }

    /// How the leader ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let status = self.leader.try_wait()?;
        self.ended |= status.is_some();
        Ok(status)
    }

    /// Sends a signal to the leader, or to the whole group.
    pub fn signal(&self, signal: libc::c_int, all: bool) -> Result<(), Failure> {
        let target = if all { -self.id } else { self.id };
        // SAFETY: takes no pointer. The leader has not been waited for, so the id is still its own:
        // `trial` never signals a group that has ended.
        match unsafe { libc::kill(target, signal) } {
            0 => Ok(()),
            _ => Err(format!("kill: {}", io::Error::last_os_error()).into()),
        }
    }

    /// Kills the whole group, and waits for the leader.
    pub fn kill(&mut self) -> Result<(), Failure> {
        if !self.ended {
            self.signal(libc::SIGKILL, true)?;
            self.leader.wait()?;
            self.ended = true;
        }
        Ok(())
    }

    /// Waits for the processes that the leader left; the leader has ended, and its death kills its
    /// children. Returns whether processes remained when the time was over.
    pub fn outlived(&mut self) -> Result<bool, Failure> {
        let end = Instant::now() + DEATH;
        while Instant::now() < end {
            let mut status = 0;
            // SAFETY: `status` is ours. Only processes of the group are waited for, and the only
            // `Child` among them is the leader, which has been reaped.
            let reaped = unsafe { libc::waitpid(-self.id, &raw mut status, libc::WNOHANG) };
            match reaped {
                -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) => {
                    return Ok(false);
                }
                -1 => return Err(format!("waitpid: {}", io::Error::last_os_error()).into()),
                0 => std::thread::sleep(Duration::from_millis(2)),
                _ => {}
            }
        }
        Ok(true)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("hunt: process group {}: {error}", self.id);
        }
    }
}
