//! The terminal of a live view: the alternate screen, without a cursor, and unbuffered keys. All of
//! that is undone when the [`Screen`] is dropped, also after a signal that ends programs.

use std::io::{self, IsTerminal as _, Write as _};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// Whether a signal that ends programs has arrived.
static ENDED: AtomicBool = AtomicBool::new(false);

/// The terminal in use by a live view.
pub struct Screen {
    /// The earlier settings, if keys come from a terminal.
    before: Option<libc::termios>,
}

/// A key of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Ends the view.
    Quit,
    /// Changes the order.
    Sort,
    /// No key within the time.
    None,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// Those of writing to it.
    pub fn enter() -> io::Result<Self> {
        let note: extern "C" fn(i32) = note;
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
            // SAFETY: the handler does only what a signal handler may do.
            unsafe { libc::signal(signal, note as *const () as usize) };
        }
        let screen = Self { before: raw_keys() };
        write(ENTER)?;
        Ok(screen)
    }

    /// Shows `lines`, cut to the size of the terminal. A line that begins with `>` is highlighted.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn show(&self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = size();
        let shown = lines.iter().take(rows.saturating_sub(1));
        let mut text = HOME.to_owned();
        for line in shown {
            let line = line.strip_prefix('>').map_or((line.as_str(), false), |line| (line, true));
            let cut: String = line.0.chars().take(columns).collect();
            text += &if line.1 { format!("\x1b[7m{cut:columns$}\x1b[0m") } else { cut };
            text += REST_OF_LINE;
            text += "\r\n";
        }
        write(&(text + REST_OF_SCREEN))
    }

    /// Waits at most `patience` for a key that has a meaning.
    pub fn key(&self, patience: Duration) -> Key {
        let end = Instant::now() + patience;
        loop {
            if ENDED.load(Relaxed) {
                return Key::Quit;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Key::None;
            }
            if self.before.is_none() {
                // No keyboard: a signal takes effect after at most this sleep.
                std::thread::sleep(left.min(Duration::from_millis(100)));
                continue;
            }
            match read_byte(left) {
                Some(b'q' | b'Q' | CTRL_C | CTRL_D) => return Key::Quit,
                Some(b's' | b'S') => return Key::Sort,
                _ => {}
            }
        }
    }
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = write(LEAVE);
        if let Some(before) = &self.before {
            // SAFETY: the settings were read from the same terminal.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before) };
        }
    }
}

/// Notes the first signal; a second one ends the process, for example while it writes to a blocked
/// terminal.
extern "C" fn note(signal: i32) {
    ENDED.store(true, Relaxed);
    // SAFETY: `signal` may be called in a signal handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Switches the terminal to single keys without echo, and returns the old setting; `None` if there
/// is no keyboard.
fn raw_keys() -> Option<libc::termios> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut before = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: memory of ours, written if the call succeeds.
    let known = unsafe { libc::tcgetattr(libc::STDIN_FILENO, before.as_mut_ptr()) } == 0;
    // SAFETY: written above.
    let before = known.then(|| unsafe { before.assume_init() })?;
    let mut raw = before;
    raw.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
    // SAFETY: the settings that were read, with fewer flags.
    let taken = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw) } == 0;
    taken.then_some(before)
}

fn read_byte(patience: Duration) -> Option<u8> {
    let mut ready = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    let ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: one structure of ours.
    if unsafe { libc::poll(&raw mut ready, 1, ms) } <= 0 {
        return None;
    }
    let mut byte = 0_u8;
    // SAFETY: room for one byte.
    let read = unsafe { libc::read(libc::STDIN_FILENO, (&raw mut byte).cast(), 1) };
    // A terminal that was closed sends no more keys.
    if read == 1 { Some(byte) } else { Some(CTRL_D) }
}

/// Columns and rows of the terminal.
pub fn size() -> (usize, usize) {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: memory for the result; zero is valid if the call fails.
    let size = unsafe {
        libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    let or = |value: u16, other: usize| if value == 0 { other } else { usize::from(value) };
    (or(size.ws_col, 80), or(size.ws_row, 24))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
