//! Starting CMD, passing signals on to it, and ending as it does.
//!
//! A signal that somebody sends to us is meant for CMD and is passed on. One that the terminal
//! sends (Ctrl-C) goes to the whole foreground group, so CMD has it already; we only don't die of
//! it, to be there for the report. A signal that was ignored when we were started stays ignored in
//! both.

use std::fmt;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The signals by which programs are told something.
const PASSED_ON: [i32; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// CMD's process id, 0 while there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The last signal that came before CMD was there, 0 for none.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// CMD, running.
pub struct Child(std::process::Child);

/// How CMD ended.
pub struct Ended(ExitStatus);

/// Starts CMD. Signals go on to it from now on.
///
/// # Errors
///
/// Those of the kernel.
pub fn start(command: &mut Command) -> io::Result<Child> {
    PASSED_ON.iter().for_each(|&signal| listen(signal));
    let child = command.spawn()?;
    // Release: pairs with the acquire in `pass_on`. A signal that comes before finds no child and
    // leaves word in `EARLY`, at which we look after.
    CHILD.store(child.id() as i32, Release);
    let early = EARLY.swap(0, Acquire);
    if early != 0 {
        // SAFETY: a child that nobody has waited for keeps its id.
        unsafe { libc::kill(child.id() as i32, early) };
    }
    Ok(Child(child))
}

/// Passes `signal` on from now on, unless it is ignored.
fn listen(signal: i32) {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the present action, into memory of ours; if it fails there is none to read.
    let known = unsafe { libc::sigaction(signal, null(), before.as_mut_ptr()) } == 0;
    // SAFETY: written above.
    if !known || unsafe { before.assume_init() }.sa_sigaction == libc::SIG_IGN {
        return;
    }
    // SAFETY: all fields are numbers or an optional pointer, of which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = pass_on;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the action is whole, and its handler calls only what may be called in one.
    unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
}

extern "C" fn pass_on(signal: i32, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid structure to a handler with SA_SIGINFO.
    let from_kernel = unsafe { (*about).si_code } > 0;
    if from_kernel {
        return;
    }
    // Acquire: pairs with the release in `start`.
    match CHILD.load(Acquire) {
        0 => EARLY.store(signal, Release),
        // SAFETY: `kill` may be called in a handler. The id is the child's: it is given back only
        // after the report, when this process ends.
        child => _ = unsafe { libc::kill(child, signal) },
    }
}

impl Child {
    /// CMD's process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for CMD to end.
    ///
    /// # Errors
    ///
    /// Those of waiting.
    pub fn wait(mut self) -> io::Result<Ended> {
        // Not `Child::wait`: its id must stay taken until no handler can send to it.
        loop {
            let mut about = MaybeUninit::<libc::siginfo_t>::zeroed();
            let options = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: `about` is ours to write.
            let waited =
                unsafe { libc::waitid(libc::P_PID, self.0.id(), about.as_mut_ptr(), options) };
            if waited == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
        CHILD.store(0, Relaxed);
        self.0.wait().map(Ended)
    }
}

impl Ended {
    /// What we exit with to say the same.
    pub fn exit_code(&self) -> ExitCode {
        let code = match (self.0.code(), self.0.signal()) {
            (Some(code), _) => code,
            (None, signal) => 128 + signal.unwrap_or(0),
        };
        ExitCode::from(code as u8)
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
