//! Processes that end with the process that started them, however that ends.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Makes the kernel kill this process when the thread that started it ends.
pub fn end_with_parent() {
    // It fails for no signal that there is.
    let _ = on_parents_end(libc::SIGKILL);
}

/// Makes the kernel tell what `command` starts to end (`SIGTERM`, which a process with children of
/// its own can pass on) when the thread that starts it ends, killed or not. It holds for what a
/// program executes in its place, too, unless that has other rights.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: takes nothing and can't fail.
    let parent = unsafe { libc::getpid() };
    let ask = move || {
        on_parents_end(libc::SIGTERM)?;
        // SAFETY: as above. A parent that ended before the request causes no signal.
        if unsafe { libc::getppid() } == parent {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: two system calls, which a child of any process may make; nothing is allocated.
    unsafe { command.pre_exec(ask) }
}

fn on_parents_end(signal: i32) -> io::Result<()> {
    // SAFETY: takes plain numbers.
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
