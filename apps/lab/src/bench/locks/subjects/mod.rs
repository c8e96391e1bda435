//! The measured locks, behind one small trait.
//!
//! Everything that measures is generic over [`Subject`] and compiled once for each, so that a
//! lock's fast path is inlined as in a program that uses it. Peers from C libraries are called
//! through a pointer, as a program calls them through its linkage table.

mod exclusive;
mod shared;

use serde::{Deserialize, Serialize};

/// A lock that can be measured.
pub trait Subject: Sized + Sync {
    /// Makes a free lock.
    ///
    /// # Errors
    ///
    /// One line, if this machine lacks it: what is missing and how to get it.
    fn new() -> Result<Self, String>;

    /// Runs `section` as the exclusive owner of the lock. `section` must not unwind.
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R;

    /// Runs `section` together with other callers of `share`, or alone if the lock can't be shared.
    /// `section` must not unwind.
    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        self.hold(section)
    }
}

/// An operation on a lock whose name is known only at run time.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Runs the operation on lock `S`.
    fn visit<S: Subject>(self) -> Self::Output;
}

/// Locks that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// One owner at a time.
    Exclusive,
    /// Readers together, or a writer alone.
    Shared,
}

impl Family {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "mutex",
            Self::Shared => "rwlock",
        }
    }

    /// Returns our locks, by their names on the command line.
    pub fn ours(self) -> &'static [&'static str] {
        match self {
            Self::Exclusive => exclusive::OURS,
            Self::Shared => shared::OURS,
        }
    }

    /// Returns those of our locks that are there for comparison.
    pub fn compared(self) -> &'static [&'static str] {
        match self {
            Self::Exclusive => exclusive::COMPARED,
            Self::Shared => &[],
        }
    }

    /// Returns the peers.
    pub fn peers(self) -> &'static [&'static str] {
        match self {
            Self::Exclusive => exclusive::PEERS,
            Self::Shared => shared::PEERS,
        }
    }

    /// Returns the peers that programs use by default. The others are for information only.
    pub fn common(self) -> &'static [&'static str] {
        match self {
            Self::Exclusive => &["glibc", "glibc-adaptive", "std", "parking_lot"],
            Self::Shared => &["glibc", "std", "parking_lot"],
        }
    }

    /// Calls `visitor` with the type of this name. Returns `None` if there is no such lock.
    pub fn visit<V: Visitor>(self, name: &str, visitor: V) -> Option<V::Output> {
        match self {
            Self::Exclusive => exclusive::visit(name, visitor),
            Self::Shared => shared::visit(name, visitor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Holds;

    impl Visitor for Holds {
        type Output = Result<u32, String>;

        fn visit<S: Subject>(self) -> Self::Output {
            let lock = S::new()?;
            Ok(lock.hold(|| 1) + lock.share(|| 2) + lock.hold(|| 3) + lock.share(|| 4))
        }
    }

    #[test]
    fn each_name_is_a_lock_that_can_be_held_again_and_again() {
        for family in [Family::Exclusive, Family::Shared] {
            for name in family.ours().iter().chain(family.peers()) {
                match family.visit(name, Holds) {
                    Some(Ok(sum)) => assert_eq!(sum, 10, "{name}"),
                    // This machine lacks a library or a kernel feature; the error says which.
                    Some(Err(missing)) => {
                        let optional = ["nsync", "absl", "shfl-mutex+light"];
                        assert!(optional.contains(name), "{missing}");
                    }
                    None => panic!("{name} has no type"),
                }
            }
            assert!(family.visit("no such lock", Holds).is_none());
            assert!(family.common().iter().all(|name| family.peers().contains(name)));
        }
    }

    struct Meets;

    impl Visitor for Meets {
        type Output = bool;

        /// Returns whether two threads can share the lock: the second enters while the first is
        /// inside.
        fn visit<S: Subject>(self) -> bool {
            let Ok(lock) = S::new() else { panic!("no lock") };
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                lock.share(|| {
                    let lock = &lock;
                    scope.spawn(move || lock.share(|| tell.send(())));
                    told.recv_timeout(std::time::Duration::from_secs(10)).is_ok()
                })
            })
        }
    }

    #[test]
    fn each_readers_writer_lock_has_two_readers_at_a_time() {
        for name in Family::Shared.ours().iter().chain(Family::Shared.peers()) {
            assert_eq!(Family::Shared.visit(name, Meets), Some(true), "{name}");
        }
    }
}
