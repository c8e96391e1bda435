//! Requests of a scheme to the kernel's scheduler.

use std::thread;

use antiphon_linux::schedule::{Refused, set_fifo, set_slice};
use antiphon_platform::ThreadId;

/// The calling thread.
pub const ME: ThreadId = ThreadId(0);
/// Slice that is requested to find out whether the kernel supports slices.
const TRIED_NS: u64 = 1_000_000;

/// The rights that a scheme needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// No rights beyond those of every user.
    Nothing,
    /// A custom slice, which each thread may request from a kernel that supports slices.
    Slice,
    /// Real-time priorities up to this one.
    Realtime(u8),
}

impl Needs {
    /// Returns its name in tables and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Slice => "slice",
            Self::Realtime(_) => "real-time",
        }
    }

    /// Returns what the system lacks and how to get it; tries it on a new thread.
    pub fn missing(self) -> Option<String> {
        let tried = thread::spawn(move || match self {
            Self::Nothing => Ok(()),
            Self::Slice => set_slice(ME, TRIED_NS).map(drop),
            Self::Realtime(priority) => set_fifo(ME, priority),
        });
        let refused = tried.join().unwrap_or(Err(Refused::FAILED)).err();
        refused.map(|why| format!("{}: {why}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(Needs::Nothing.missing(), None);
        for needs in [Needs::Slice, Needs::Realtime(50)] {
            let said = needs.missing();
            assert!(said.is_none_or(|why| why.starts_with(needs.name())), "{needs:?}");
        }
        // No such priority exists.
        assert!(Needs::Realtime(100).missing().is_some_and(|why| why.contains("real-time: ")));
    }
}
