//! Starting CMD, passing signals on to it, and ending as it does.
//!
//! | what comes to this process | what happens |
//! |---|---|
//! | a signal that a process sends | CMD gets the same |
//! | a signal of the terminal (Ctrl-C, a new window size) | CMD has it: it is in the same group |
//! | one that stops, and CMD stops | this process stops, too, so that a shell sees it |
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

/// Starts CMD, which is the file `program`, with the state that this process was started with. All
/// signals must be [held](antiphon_report::process::hold): signals that have come meanwhile are
/// passed on.
///
/// The caller's thread must last as long as CMD: the kernel kills CMD when it ends.
///
/// # Errors
///
/// Those of the kernel.
pub fn start(command: &mut Command, program: &Path) -> io::Result<Child> {
    // SAFETY: takes nothing.
    let us = unsafe { libc::getpid() };
    let prepare = move || {
        die_with(us);
        inherited::close_streams();
        inherited::restore();
    };
    execute::directly(command, program, prepare)?;
    command.spawn().map(Child)
}

/// The kernel kills the calling process when `parent`, the process that forked it, is killed.
fn die_with(parent: i32) {
    // SAFETY: takes numbers, and has an effect on this process alone.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It was killed before that.
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

    /// Waits for CMD to end, and passes signals on meanwhile, as they come.
    ///
    /// # Errors
    ///
    /// Those of waiting.
    pub fn wait(mut self, signals: &Signals<'_>) -> io::Result<Ended> {
        let pid = self.pid().cast_signed();
        // A signal that stops was passed on, or CMD had it from the terminal.
        let mut may_stop = false;
        // Its id stays taken until nothing is sent to it any more.
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

    /// Whether CMD has come to one of these states, which are the kernel's options.
    fn is(&self, states: i32) -> io::Result<bool> {
        let mut about = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = states | libc::WNOHANG;
        // SAFETY: `about` is ours to write.
        if unsafe { libc::waitid(libc::P_PID, self.pid(), about.as_mut_ptr(), options) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zero is a value of all fields, and the kernel has written it if there is news.
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
