//! Records the state in which this process was started, so that CMD can be started in the same.
//!
//! Rust's runtime changes some of it before `main` runs, the C library when a thread is created,
//! and this command the rest:
//!
//! | what | changed by | because |
//! |---|---|---|
//! | SIGPIPE | the runtime, to ignored | a write to a closed pipe is an error |
//! | closed standard streams | the runtime, to `/dev/null` | another file could get a number |
//! | signal 33 | the C library | it makes threads change their user by this signal |
//! | SIGCHLD | us, to its default | where it is ignored, the end of a child can't be waited for |
//! | SIGXFSZ | us, to ignored | a report that is too long for the limit is an error |
//! | the mask of signals | us, to all | signals are waited for and passed on ([`super::signals`]) |
//! | the limit on the stack | us, upwards if allowed | it may be too small for this command |
//!
//! So a function that runs before the runtime starts records the state, and the child restores it
//! before CMD is executed. Handlers of signals need no restoring: executing a program resets them.

use std::sync::OnceLock;

use antiphon_report::process;

/// Standard input, output and error.
const STANDARD: [i32; 3] = [0, 1, 2];

#[derive(Debug)]
struct Inherited {
    /// The signals that were ignored, one bit each.
    ignored: u64,
    /// The mask of blocked signals, one bit each.
    blocked: u64,
    /// Which of [`STANDARD`] were closed.
    closed: [bool; STANDARD.len()],
    /// The limit on the stack, soft and hard; `None` if it was large enough.
    stack: Option<(u64, u64)>,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Makes the loader call [`look`].
#[used]
// SAFETY: a section of pointers to functions of this type, each called once before `main`.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Records the state, before Rust's runtime starts.
extern "C" fn look() {
    let found = Inherited {
        ignored: process::ignored(),
        blocked: process::mask(),
        closed: STANDARD.map(is_closed),
        stack: process::widen_stack(),
    };
    // The loader calls this function once, so the value is not set yet.
    let _ = INHERITED.set(found);
}

fn is_closed(descriptor: i32) -> bool {
    // SAFETY: reads flags; an invalid descriptor yields an error.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// Restores signals and limits to the state in which this process was started. For the child,
/// before a program is executed: it only makes system calls.
pub fn restore() {
    let Some(inherited) = INHERITED.get() else { return };
    let changed = process::ignored() ^ inherited.ignored;
    for signal in (1..=u64::BITS).filter(|signal| changed >> (signal - 1) & 1 != 0) {
        let ignored = inherited.ignored >> (signal - 1) & 1 != 0;
        process::set_ignored(signal.cast_signed(), ignored);
    }
    process::set_mask(inherited.blocked);
    if let Some(limit) = inherited.stack {
        process::set_stack(limit);
    }
}

/// Closes the standard streams that were closed when this process was started. For the child,
/// before a program is executed.
pub fn close_streams() {
    let Some(inherited) = INHERITED.get() else { return };
    for (&descriptor, _) in STANDARD.iter().zip(inherited.closed).filter(|(_, closed)| *closed) {
        // SAFETY: the runtime has opened it, and no code of ours runs after the exec that follows.
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
        // The runtime has changed SIGPIPE meanwhile.
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert!(process::ignored() & pipe != 0);
    }

    #[test]
    fn a_number_that_is_no_descriptor_is_closed() {
        assert!(is_closed(i32::MAX));
    }
}
