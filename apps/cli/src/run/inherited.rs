//! What this process was started with, so that CMD can be started with the same.
//!
//! Rust's runtime changes some of it before `main` runs, the C library when a thread is made, and
//! this command the rest:
//!
//! | what | changed by | because |
//! |---|---|---|
//! | SIGPIPE | the runtime, to ignored | a write to a closed pipe is an error |
//! | closed standard streams | the runtime, to `/dev/null` | another file could get a number |
//! | signal 33 | the C library | it has threads change their user by it |
//! | SIGCHLD | us, to its default | where it is ignored, the end of a child can't be waited for |
//! | SIGXFSZ | us, to ignored | a report that is too long for the limit is an error |
//! | the mask of signals | us, to all | signals are waited for and passed on ([`super::signals`]) |
//! | the limit on the stack | us, upwards if we may | it may be too small for this command |
//!
//! So a function that runs before the runtime starts looks how things are, and what it found is
//! restored in the child before CMD is executed. Handlers of signals need nothing: executing a
//! program resets them.

use std::process::ExitCode;
use std::sync::OnceLock;

use super::signals;

/// Standard input, output and error.
const STANDARD: [i32; 3] = [0, 1, 2];

/// What the stack of this command may need.
const STACK_BYTES: u64 = 8 << 20;

#[derive(Debug)]
struct Inherited {
    /// The signals that were ignored, one bit each.
    ignored: u64,
    /// The mask of signals, likewise.
    blocked: u64,
    /// Which of [`STANDARD`] were closed.
    closed: [bool; STANDARD.len()],
    /// The limit on the stack, soft and hard; `None` if it was large enough.
    stack: Option<(u64, u64)>,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Makes the loader call [`look`].
#[used]
// SAFETY: a section of pointers to such functions, which are called once each before `main`.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Looks how things are, before Rust's runtime starts.
extern "C" fn look() {
    let found = Inherited {
        ignored: signals::ignored(),
        blocked: signals::mask(),
        closed: STANDARD.map(is_closed),
        stack: stack().filter(|&(soft, _)| soft < STACK_BYTES),
    };
    if let Some((_, hard)) = found.stack {
        // The hard limit is raised where that is allowed, and else reached.
        if !set_stack((STACK_BYTES, hard.max(STACK_BYTES))) {
            set_stack((hard, hard));
        }
    }
    // Set once: this is called once.
    let _ = INHERITED.set(found);
}

fn is_closed(descriptor: i32) -> bool {
    // SAFETY: asks for flags; a number that is no descriptor is an error.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

fn stack() -> Option<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to memory of ours.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    known.then_some((limit.rlim_cur, limit.rlim_max))
}

fn set_stack((soft, hard): (u64, u64)) -> bool {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: reads a structure of ours.
    unsafe { libc::setrlimit(libc::RLIMIT_STACK, &raw const limit) == 0 }
}

/// Prepares this process: it can wait for its children, and a file that is too long for the limit
/// is an error.
pub fn prepare() {
    signals::set_ignored(libc::SIGCHLD, false);
    signals::set_ignored(libc::SIGXFSZ, true);
}

/// Does the work of this process where its stack has room: on a thread, if the limit is too small
/// and can't be raised.
pub fn with_room(work: fn() -> ExitCode) -> ExitCode {
    if stack().is_none_or(|(soft, _)| soft >= STACK_BYTES) {
        return work();
    }
    // This thread takes no signal meanwhile: the other one may.
    let mask = signals::mask();
    signals::hold();
    let with_signals = move || {
        signals::set_mask(mask);
        work()
    };
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES as usize);
    match builder.spawn(with_signals) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // Perhaps this stack does.
        Err(_) => with_signals(),
    }
}

/// Restores signals and limits as this process was started with them. For the child, before a
/// program is executed: it makes system calls only.
pub fn restore() {
    let Some(inherited) = INHERITED.get() else { return };
    let changed = signals::ignored() ^ inherited.ignored;
    for signal in (1..=u64::BITS).filter(|signal| changed >> (signal - 1) & 1 != 0) {
        let ignored = inherited.ignored >> (signal - 1) & 1 != 0;
        signals::set_ignored(signal.cast_signed(), ignored);
    }
    signals::set_mask(inherited.blocked);
    if let Some(limit) = inherited.stack {
        set_stack(limit);
    }
}

/// Closes the standard streams that were closed when this process was started. For the child, too.
pub fn close_streams() {
    let Some(inherited) = INHERITED.get() else { return };
    for (&descriptor, _) in STANDARD.iter().zip(inherited.closed).filter(|(_, closed)| *closed) {
        // SAFETY: the runtime has opened it, and what follows is another program.
        unsafe { libc::close(descriptor) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_was_looked_at_before_main() {
        let inherited = INHERITED.get().expect("a look");
        assert_eq!(inherited.closed, [false; 3]);
        // The runtime has changed that since.
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert!(signals::ignored() & pipe != 0);
    }

    #[test]
    fn a_number_that_is_no_descriptor_is_closed() {
        assert!(is_closed(i32::MAX));
        assert!(stack().is_some_and(|(soft, hard)| soft <= hard));
    }
}
