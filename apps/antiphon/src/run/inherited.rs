//! The state that this process was started with, so that CMD can be started with the same.
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

use std::sync::OnceLock;

use antiphon_report::process;

/// Standard input, output and error.
const STANDARD: [i32; 3] = [0, 1, 2];

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
        ignored: process::ignored(),
        blocked: process::mask(),
        closed: STANDARD.map(is_closed),
        stack: process::widen_stack(),
    };
    // Set once: this is called once.
    let _ = INHERITED.set(found);
}

fn is_closed(descriptor: i32) -> bool {
    // SAFETY: asks for flags; a number that is no descriptor is an error.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// Restores signals and limits as this process was started with them. For the child, before a
/// program is executed: it makes system calls only.
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
        // The runtime has changed that meanwhile.
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert!(process::ignored() & pipe != 0);
    }

    #[test]
    fn a_number_that_is_no_descriptor_is_closed() {
        assert!(is_closed(i32::MAX));
    }
}
