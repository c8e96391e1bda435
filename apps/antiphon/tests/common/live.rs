//! The command on a terminal, for `top` and other live views.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A terminal of 100 columns and 20 rows: our side, and the program's.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 20, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let none = std::ptr::null();
    // SAFETY: writes two descriptors; the name is not requested, and the mode is left as it is.
    let made = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, std::ptr::null_mut(), none, &raw const size)
    };
    assert_eq!(made, 0);
    // SAFETY: a descriptor of ours. A process with both sides is never told that one has closed.
    unsafe { libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: new descriptors that no other code owns.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

pub fn modes(terminal: &OwnedFd) -> libc::tcflag_t {
    let mut modes = std::mem::MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: room for the structure; zero is valid.
    unsafe {
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), modes.as_mut_ptr()), 0);
        modes.assume_init().c_lflag
    }
}

/// The command on a pseudo-terminal.
pub struct Live {
    pub top: Child,
    pub ours: File,
    pub theirs: OwnedFd,
    pub before: libc::tcflag_t,
    /// The output since the last call of `sees`.
    pub seen: String,
}

impl Live {
    pub fn new(pid: &str) -> Self {
        Self::of(&["top", pid])
    }

    pub fn of(arguments: &[&str]) -> Self {
        let (ours, theirs) = terminal();
        let before = modes(&theirs);
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut top = Command::new(super::PROGRAM);
        top.args(arguments).stdin(end()).stdout(end()).stderr(end());
        let top = top.spawn().expect("the command starts");
        Self { top, ours, theirs, before, seen: String::new() }
    }

    /// Reads until the output after the previous call contains `words`.
    pub fn sees(&mut self, words: &str) {
        self.seen.clear();
        let end = Instant::now() + Duration::from_secs(60);
        while !self.seen.contains(words) {
            let mut ready =
                libc::pollfd { fd: self.ours.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure of ours.
            unsafe { libc::poll(&raw mut ready, 1, 100) };
            if ready.revents & libc::POLLIN != 0 {
                let mut bytes = [0; 4096];
                let read = self.ours.read(&mut bytes).expect("bytes");
                self.seen += &String::from_utf8_lossy(&bytes[..read]);
            }
            assert!(Instant::now() < end, "no {words}: {}", self.seen);
        }
    }

    /// Reads the next text that shows how long the program has run.
    pub fn age(&mut self) -> String {
        self.sees(" processes · ");
        let age = self.seen.split(" · ").find(|part| part.contains("s\r\n") || part.ends_with('s'));
        age.and_then(|age| age.rsplit('\n').next()).expect("an age").to_owned()
    }

    /// Waits for the end; checks that the terminal is restored.
    pub fn ends(mut self) {
        self.sees("\x1b[?1049l");
        self.has_ended();
    }

    /// Waits for the end of a command whose last output has been read.
    pub fn has_ended(mut self) {
        assert!(self.top.wait().is_ok_and(|status| status.success()));
        assert_eq!(modes(&self.theirs), self.before);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // If it has not ended, a test has failed already.
        let _ = self.top.kill();
        let _ = self.top.wait();
    }
}
