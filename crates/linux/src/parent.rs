//! Processes that end with the process that started them, even if that is killed.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes the kernel kill this process when the thread that started it ends.
pub fn end_with_parent() {
    // The call fails only for invalid signals.
    let _ = on_parents_end(libc::SIGKILL);
}

/// Makes the kernel send `SIGTERM` to the process of `command` when the thread that starts it ends,
/// killed or not; a process with children can pass that signal on. It also holds for programs that
/// the process executes, unless these have other rights.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: takes no arguments and can't fail.
    let parent = unsafe { libc::getpid() };
    let ask = move || {
        on_parents_end(libc::SIGTERM)?;
        // SAFETY: takes no arguments and can't fail. A parent that ended before the request causes
        // no signal.
        if unsafe { libc::getppid() } == parent {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: the closure makes two system calls, which any child may make, and allocates nothing.
    unsafe { command.pre_exec(ask) }
}

fn on_parents_end(signal: i32) -> io::Result<()> {
    // SAFETY: takes only numbers.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::thread;

    use super::*;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let begin = || die_with_parent(Command::new("sleep").arg("600")).spawn();
        let child = thread::spawn(begin).join().expect("no panic");
        let ended = child.expect("there is a `sleep`").wait().expect("a child");
        assert_eq!(ended.signal(), Some(libc::SIGTERM));
    }
}
