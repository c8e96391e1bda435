//! A program as a process, which begins on command and reports its results.
//!
//! ```text
//!   its starter                        program
//!       │ ──── its order (argument) ───► │ takes its CPU
//!       │ ◄────────── "ready" ────────── │
//!       │ ───── when to begin: JSON ───► │ sleeps until then, and works
//!       │ ◄────── what it saw: JSON ──── │
//!       │ ─────────── SIGKILL ─────────► │
//! ```

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

const READY: &str = "ready";

/// A program that was started. It is killed when this is dropped.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts this command with this hidden verb and this order.
    ///
    /// # Errors
    ///
    /// One line, if no further process can be started.
    pub fn start(verb: &str, order: &impl Serialize) -> Result<Self, String> {
        let order = serde_json::to_string(order).map_err(|error| error.to_string())?;
        let mut child = Command::new("/proc/self/exe")
            .args([verb, &order])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("can't start a program: {error}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self { child, stdin, stdout: Some(BufReader::new(stdout)) })
            }
            _ => Err("a program without pipes".to_owned()),
        }
    }

    /// Waits until the program is ready to begin.
    ///
    /// # Errors
    ///
    /// One line, if it has ended.
    pub fn ready(&mut self) -> Result<(), String> {
        let line = self.line()?;
        if line.trim() == READY { Ok(()) } else { Err(format!("a program said '{}'", line.trim())) }
    }

    /// Tells the program when to begin.
    ///
    /// # Errors
    ///
    /// One line, if it has ended.
    pub fn begin(&mut self, begin: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_string(begin).map_err(|error| error.to_string())?;
        writeln!(self.stdin, "{line}").map_err(|error| format!("a program has ended: {error}"))
    }

    /// Waits for the program's results.
    ///
    /// # Errors
    ///
    /// One line, if it has ended without results.
    pub fn seen<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let line = self.line()?;
        serde_json::from_str(&line)
            .map_err(|error| format!("the output of a program has no figures: {error}"))
    }

    /// Returns the program's further lines, for a reader in another thread. Only the first call
    /// gets them.
    pub fn lines(
        &mut self,
    ) -> Option<impl Iterator<Item = std::io::Result<String>> + Send + use<>> {
        self.stdout.take().map(BufReader::lines)
    }

    /// Returns the id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program ends. Describes how it ended, in words to follow its name.
    pub fn end(&self) -> String {
        let Some((code, status)) = self.change(libc::WEXITED) else {
            return "has ended".to_owned();
        };
        if code == libc::CLD_EXITED {
            return match status {
                0 => "has ended, and said nothing".to_owned(),
                code => format!("has ended with exit code {code}; what it said is above"),
            };
        }
        let ended = ExitStatus::from_raw(status).to_string();
        format!("was killed by {}", ended.replace("signal: ", "signal "))
    }

    /// Returns whether the program is stopped, as by SIGSTOP.
    pub fn is_stopped(&self) -> bool {
        self.change(libc::WSTOPPED | libc::WNOHANG).is_some()
    }

    /// Returns a change of the program's state, of the kinds in `of`: the code of SIGCHLD, and a
    /// status. The process is not reaped, so that its id stays its own.
    fn change(&self, of: libc::c_int) -> Option<(i32, i32)> {
        let (id, flags) = (self.child.id(), of | libc::WNOWAIT);
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is a local variable; the process is a child of this one.
        let failed = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags) };
        // SAFETY: `info` was filled in for SIGCHLD, or is zero.
        let (process, status) = unsafe { (info.si_pid(), info.si_status()) };
        (failed == 0 && process != 0).then_some((info.si_code, status))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.stdout.as_mut().map_or(Ok(0), |stdout| stdout.read_line(&mut line));
        match read {
            Ok(1..) => Ok(line),
            Ok(0) => Err(format!("a program {}", self.end())),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only if the program has ended already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Called in the program: reports that it is ready, and waits until it is told when to begin.
///
/// # Errors
///
/// One line, if the process that started it is gone.
pub fn is_ready<T: DeserializeOwned>() -> Result<T, String> {
    say(READY)?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|error| error.to_string())
}

/// Called in the program: reports its results.
///
/// # Errors
///
/// One line, if the parent can't be reached.
pub fn tell(seen: &impl Serialize) -> Result<(), String> {
    say(&serde_json::to_string(seen).map_err(|error| error.to_string())?)
}

fn say(line: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("no reader: {error}"))
}
