//! Starts programs, waits for them, and ends those that are left.
//!
//! Daemons leave their parents. This process adopts them ([`adopt_orphans`]), so that it learns how
//! they end, and that all of them have.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Failure;

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Makes orphans among the descendants of this process its children.
pub fn adopt_orphans() -> Result<(), Failure> {
    // SAFETY: sets a flag of this process, and takes no pointer.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(format!("prctl: {}", io::Error::last_os_error()).into()),
    }
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: takes no arguments and can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Starts a command in its own session. Its output goes to the files `stdout` and `stderr`: daemons
/// would hold a pipe open.
pub fn start(command: &mut Command, stdout: &Path, stderr: &Path) -> Result<Child, Failure> {
    command.stdin(Stdio::null()).stdout(File::create(stdout)?).stderr(File::create(stderr)?);
    // SAFETY: `setsid` is async-signal-safe, touches no memory, and nothing else is called.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
    Ok(command.spawn()?)
}

/// Waits until `end` for a child; returns its status, if it has ended.
pub fn wait(child: &mut Child, end: Instant) -> Result<Option<ExitStatus>, Failure> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        sleep(PAUSE);
    }
}

/// Waits for an adopted process. An error if it is not a child of this process.
pub fn wait_adopted(pid: libc::pid_t, end: Instant) -> Result<Option<ExitStatus>, Failure> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is ours; the process is no `Child`, which would be waited for twice.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() >= end => return Ok(None),
            0 => sleep(PAUSE),
            -1 => return Err(format!("process {pid}: {}", io::Error::last_os_error()).into()),
            _ => return Ok(Some(ExitStatus::from_raw(status))),
        }
    }
}

/// Sends a signal to a process.
pub fn signal(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: takes no pointer. A process that has ended but was not waited for ignores the signal.
    unsafe { libc::kill(pid, signal) };
}

/// The status in words, in a shell's form: `antiphon` exits with 128 + N where signal N killed CMD.
pub fn words(status: ExitStatus) -> String {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.map_or_else(|| "unknown".to_owned(), |code| format!("code {code}"))
}

/// Waits until `end` for all descendants to end, and kills the others; returns their names, in
/// order. The caller must have waited for every `Child`.
pub fn end_all(end: Instant) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        reap();
        let left = children();
        if left.is_empty() {
            names.sort();
            return names;
        }
        if Instant::now() >= end {
            for &pid in &left {
                names.push(name(pid));
                signal(pid, libc::SIGKILL);
                // The process was killed, so this does not take long.
                let _ = wait_adopted(pid, Instant::now() + Duration::from_secs(20));
            }
        }
        sleep(PAUSE);
    }
}

/// Reaps adopted processes that have ended.
fn reap() {
    // SAFETY: the pointer to the status may be null. By the contract of `end_all`, no `Child` is
    // left whose process this could reap.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// The children of all threads of this process.
fn children() -> Vec<libc::pid_t> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    let lists: Vec<String> = tasks.flatten().filter_map(read).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

fn name(pid: libc::pid_t) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}
