//! Errors of opening and joining a domain.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use antiphon_linux::schedule::Refused;
use antiphon_runtime::coop::{NoSeat, PLACES, VERSION};

/// Why a domain cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The name is empty, longer than 64 bytes, or has characters other than letters, digits, `-`
    /// and `_`.
    Name,
    /// No memory could be allocated for a private domain.
    Private(io::Error),
    /// The user's directory cannot be used.
    Directory(io::Error),
    /// The file cannot be opened, or has the wrong owner, mode or kind.
    File(PathBuf, io::Error),
    /// Its members use another version of the shared memory.
    Version {
        /// The version of the members.
        found: u32,
        /// The path of the file.
        path: PathBuf,
    },
    /// Its members are in another PID namespace: for example inside a container, or outside of it.
    Namespace,
    /// Another process has begun to make the domain, and has not finished within a second.
    Busy(PathBuf),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str(
                "a domain's name has 1 to 64 letters, digits, `-` and `_`, and nothing else",
            ),
            Self::Private(why) => write!(f, "no memory for a private domain: {why}"),
            Self::Directory(why) => write!(f, "the directory for domains can't be used: {why}"),
            Self::File(path, why) => write!(f, "{} can't be used: {why}", path.display()),
            Self::Version { found, path } => write!(
                f,
                "the members of {} speak version {found} and this program version {VERSION}: \
                 end them, or use another name",
                path.display()
            ),
            Self::Namespace => f.write_str(
                "the members of this domain are in another PID namespace: use another name",
            ),
            Self::Busy(path) => write!(
                f,
                "another program has begun to make {} and has not finished: check whether a \
                program is stopped",
                path.display()
            ),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Private(why) | Self::Directory(why) | Self::File(_, why) => Some(why),
            _ => None,
        }
    }
}

/// Why a thread is not a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The domain already has [`PLACES`] live members.
    Full,
    /// Other threads kept this one from running each time it tried to join, for a second: the CPU
    /// does not have time for all threads that want it.
    KeptFromRunning,
    /// The thread may not run on the domain's CPU.
    Cpu(u32),
    /// The process is the child of a fork made after the domain was opened: the child must open it
    /// itself.
    Forked,
    /// This process may not raise the weight of its threads, or the weight cannot be changed.
    Weight(Refused),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(
                f,
                "{PLACES} threads share this CPU already: end one of them, or use another CPU"
            ),
            Self::KeptFromRunning => f.write_str(
                "other threads kept this one from running while it joined, for a second: try again \
                 when the CPU is less busy, or use another CPU",
            ),
            Self::Cpu(cpu) => write!(f, "this thread may not run on CPU {cpu}"),
            Self::Forked => f.write_str("a child of a fork has to open the domain itself"),
            Self::Weight(refused) => write!(f, "it shares no group by weights: {refused}"),
        }
    }
}

impl Error for JoinError {}

impl From<NoSeat> for JoinError {
    fn from(why: NoSeat) -> Self {
        match why {
            NoSeat::Full => Self::Full,
            NoSeat::KeptFromRunning => Self::KeptFromRunning,
        }
    }
}
