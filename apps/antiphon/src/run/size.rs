//! Creates files of ours that a limit for CMD does not affect.
//!
//! `ulimit -f` is meant for the files that CMD writes. The kernel applies it to the recording, too,
//! though that is in memory and mostly empty; so the limit is raised while the recording is
//! created, as far as that is allowed.

use std::io;

/// Calls `make` with the limit on the size of files raised, and returns its result.
///
/// # Errors
///
/// Those of `make`.
pub fn unlimited<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = limit()?;
    set(libc::rlimit { rlim_cur: before.rlim_max, ..before });
    let made = make();
    set(before);
    made
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to our memory.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the soft limit to at most the hard one, which is always allowed.
fn set(limit: libc::rlimit) {
    // SAFETY: reads a structure of ours.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_it_was() {
        let before = limit().expect("a limit");
        let meanwhile = unlimited(limit).expect("a limit");
        assert_eq!(meanwhile.rlim_cur, before.rlim_max);
        assert_eq!(limit().expect("a limit").rlim_cur, before.rlim_cur);
    }
}
