//! The back end by which fibers wait for sockets, and event loops for files; chosen once per
//! process.

use std::fmt;

/// How fibers wait for sockets, and event loops for files: see [`backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// `epoll`: the fiber is resumed when a socket is ready, and then reads it by a system call.
    Epoll,
    /// `io_uring`: the kernel reads for the fiber, and one system call serves many fibers.
    IoUring,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
        })
    }
}

/// Returns how the fibers of this process wait for sockets, and its event loops for files. It is
/// `io_uring` if this crate has the feature of that name, the kernel has rings that it can use
/// (Linux 6.1) and lets this process have them (`kernel.io_uring_disabled`, the filters of
/// containers), and the environment variable `ANTIPHON_IO_URING` is not `0`; otherwise `epoll`. The
/// first call, or the first wait, decides for the whole process. A thread or a loop for which the
/// kernel later refuses a ring uses `epoll`.
#[must_use]
pub fn backend() -> Backend {
    #[cfg(feature = "io_uring")]
    {
        static BACKEND: std::sync::OnceLock<Backend> = std::sync::OnceLock::new();
        *BACKEND.get_or_init(decide)
    }
    #[cfg(not(feature = "io_uring"))]
    Backend::Epoll
}

#[cfg(feature = "io_uring")]
fn decide() -> Backend {
    use antiphon_linux::{files::Ring, notify::EventFd};

    let wanted = std::env::var_os("ANTIPHON_IO_URING").is_none_or(|it| it != "0");
    match wanted.then(|| Ring::new(&EventFd::new()?)) {
        Some(Ok(_)) => Backend::IoUring,
        _ => Backend::Epoll,
    }
}
