//! Starts CMD, passes signals on to it, and ends as it does.
//!
//! | event in this process | effect |
//! |---|---|
//! | a signal that a process sends | CMD gets the same signal |
//! | a signal of the terminal (Ctrl-C, a new window size) | CMD has it: it is in the same group |
//! | a stop signal, and CMD stops | this process stops, too, so that a shell sees it |
//! | SIGKILL | the kernel kills CMD as well |
//! | SIGSTOP | it can't be passed on: CMD runs on |
//!
//! Apart from SIGKILL and SIGSTOP this process outlives CMD, to report.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use antiphon_report::failure::Failure;

use super::signals::Signals;
use super::{execute, inherited, signals};

/// CMD, running.
pub struct Child(std::process::Child);

/// How CMD ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended(ExitStatus);

/// Starts CMD, which is the file `program`, with the state in which this process was started. All
/// signals must be [held](antiphon_report::process::hold): signals that arrive before the start are
/// then passed on.
///
/// The calling thread must live as long as CMD: the kernel kills CMD when it ends.
///
/// # Errors
///
/// Those of fork and exec.
pub fn start(command: &mut Command, program: &Path) -> io::Result<Child> {
    // SAFETY: takes no arguments.
    let us = unsafe { libc::getpid() };
    let prepare = move || {
        die_with(us);
        inherited::close_streams();
        inherited::restore();
    };
    execute::directly(command, program, prepare)?;
    command.spawn().map(Child)
}

/// Makes the kernel kill the calling process when `parent`, the process that forked it, is killed.
fn die_with(parent: i32) {
    // SAFETY: takes numbers, and affects this process alone.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // `parent` was killed before the `prctl`.
        if libc::getppid() != parent {
            libc::_exit(128 + libc::SIGKILL);
        }
    }
}

impl Child {
    /// CMD's process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for CMD to end; passes signals on as they arrive.
    ///
    /// # Errors
    ///
    /// Those of `waitid` and of the signals.
    pub fn wait(mut self, signals: &Signals<'_>) -> io::Result<Ended> {
        let pid = self.pid().cast_signed();
        // Whether a stop signal was passed on, or came to CMD from the terminal.
        let mut may_stop = false;
        // CMD is not reaped here: its id stays taken while signals are sent to it.
        while !self.is(libc::WEXITED | libc::WNOWAIT)? {
            if may_stop && self.is(libc::WSTOPPED)? {
                may_stop = false;
                signals::stop();
            }
            let signal = signals.next()?;
            may_stop |= signal.stops();
            if signal.is_sent() {
                signal.pass_on(pid);
            }
        }
        self.0.wait().map(Ended)
    }

    /// Whether CMD has come to one of these states, given as options of `waitid`.
    fn is(&self, states: i32) -> io::Result<bool> {
        let mut about = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = states | libc::WNOHANG;
        // SAFETY: `about` is our memory to write.
        if unsafe { libc::waitid(libc::P_PID, self.pid(), about.as_mut_ptr(), options) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zero is valid for all fields, and the kernel has written them if there is news.
        Ok(unsafe { about.assume_init().si_pid() } != 0)
    }
}

impl Ended {
    /// The exit code of `run`: that of CMD, whether or not our own work succeeded afterwards. A
    /// failure of that work is reported in one line. It shows in the exit code only if CMD
    /// succeeded, because a file that the user asked for is then missing.
    pub fn exit_code_after(self, work: Result<(), Failure>) -> ExitCode {
        match (self.code(), work) {
            (code, Ok(())) => ExitCode::from(code),
            (0, Err(failure)) => failure.report(),
            (code, Err(failure)) => {
                failure.report();
                ExitCode::from(code)
            }
        }
    }

    fn code(self) -> u8 {
        let code = match (self.0.code(), self.0.signal()) {
            (Some(code), _) => code,
            (None, signal) => 128 + signal.unwrap_or(0),
        };
        code as u8
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, signal) => write!(f, "killed by signal {}", signal.unwrap_or(0)),
        }
    }
}
