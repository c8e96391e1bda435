//! A process without privilege, as a user's: what it gets, and what it can't do.
//!
//! The cases of `life` start this program as such a process, with the name of a part to play.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use antiphon_hints::{Hints, PAGE_BYTES, SLOTS, SOCKET, Standing, now_ns};
use antiphon_scx::loader::Failure;

use crate::scheduler::PATIENCE;
use crate::thread::{stay_on, work};

/// The argument by which this program is a client.
pub const VERB: &str = "client";
/// A user without any privilege.
pub const USER: u32 = 1_000;

/// Starts a client. The caller waits for it.
pub fn start(part: &str) -> io::Result<Child> {
    start_of(part, USER)
}

/// Starts a client of that user and group.
pub fn start_of(part: &str, user: u32) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args([VERB, part]).uid(user).gid(user).stdin(Stdio::piped());
    if part == HOLDER {
        // One that is refused says so, which is what the case expects.
        command.stdout(Stdio::piped()).stderr(Stdio::null());
    }
    command.spawn()
}

/// The part of a process that only has a page.
pub const HOLDER: &str = "hold";
/// What it says when it has one.
pub const HELD: &str = "held";

/// Plays a part.
pub fn run(part: Option<String>) -> ExitCode {
    let done = match part.as_deref() {
        Some("polite") => polite(),
        Some("threads") => threads(),
        Some(HOLDER) => hold(),
        Some("forger") => forger(),
        Some("sleeper") => sleeper(),
        Some("thief") => thief(),
        Some("stranger") => stranger(),
        Some("loop") => crate::loops::client(),
        Some(crate::locks::PART) => crate::locks::client(),
        other => Err(format!("no part {other:?}").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("client: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Registers, polls, and sees that it is served.
fn polite() -> Result<(), Failure> {
    let hints = Hints::connect(SOCKET)?;
    let thread = hints.register()?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        thread.poll(Some(now_ns() + 2_000_000), None);
        sleep(Duration::from_millis(2));
        if thread.is_served(now_ns()) && thread.answer().standing == Standing::Cooperative {
            return Ok(());
        }
    }
    Err(format!("not served: {:?}", thread.answer()).into())
}

/// Registers more threads than a process has slots for.
fn threads() -> Result<(), Failure> {
    let hints = Hints::connect(SOCKET)?;
    let all = std::sync::Barrier::new(40);
    let registered = scope(|threads| {
        let one = || {
            let done = hints.register();
            // None leaves before all have tried.
            all.wait();
            done.is_ok()
        };
        let all: Vec<_> = (0..40).map(|_| threads.spawn(one)).collect();
        all.into_iter().map(|one| one.join()).filter(|one| matches!(one, Ok(true))).count()
    });
    if registered == SLOTS - 1 { Ok(()) } else { Err(format!("{registered} registered").into()) }
}

/// Connects, registers, says so, and stays until its input ends. Fails if it is refused.
fn hold() -> Result<(), Failure> {
    let hints = Hints::connect(SOCKET)?;
    let _thread = hints.register()?;
    println!("{HELD}");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Writes chance all over its page, for two seconds, while it runs.
fn forger() -> Result<(), Failure> {
    stay_on(1)?;
    let hints = Hints::connect(SOCKET)?;
    let thread = hints.register()?;
    let page = std::ptr::from_ref(hints.page()).cast::<[AtomicU32; PAGE_BYTES / 4]>();
    // SAFETY: a page is as large, as aligned, and mapped as long as `hints` is; all of it is
    // atomics that any content is valid for.
    let words = unsafe { &*page };
    let begin = Instant::now();
    let mut chance = 1_u64;
    while begin.elapsed() < Duration::from_secs(2) {
        for word in words {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.store((chance >> 32) as u32, Ordering::Relaxed);
        }
        // And what is worth most to it.
        thread.poll(Some(now_ns() - 1_000_000), None);
        work(100_000);
        std::thread::yield_now();
    }
    Ok(())
}

/// Is due at each wake-up, and wakes up as often as it can, for two seconds.
fn sleeper() -> Result<(), Failure> {
    stay_on(1)?;
    crate::thread::exact_timers();
    let hints = Hints::connect(SOCKET)?;
    let thread = hints.register()?;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        thread.poll(Some(1), None);
        crate::thread::sleep_until(now_ns() + 1_000);
    }
    Ok(())
}

/// Is not of the group that may use the scheduler.
fn stranger() -> Result<(), Failure> {
    match Hints::connect(SOCKET) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => Err(format!("a connection gave {other:?}").into()),
    }
}

/// Tries what only root may: to open the maps of the scheduler, and to take its socket's place.
fn thief() -> Result<(), Failure> {
    /// `BPF_MAP_GET_NEXT_ID`, `BPF_MAP_GET_FD_BY_ID`.
    const COMMANDS: [libc::c_long; 2] = [12, 14];
    for command in COMMANDS {
        let mut attributes = [0_u32; 32];
        // SAFETY: as large as stated, without pointers.
        let done = unsafe {
            libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(&attributes))
        };
        let error = io::Error::last_os_error();
        if done >= 0 || error.raw_os_error() != Some(libc::EPERM) {
            return Err(format!("bpf({command}) gave {done}, {error}").into());
        }
    }
    match std::fs::remove_file(SOCKET) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => Err(format!("the socket's removal gave {other:?}").into()),
    }
}
