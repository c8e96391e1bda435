//! The locks under measurement, behind one small trait.
//!
//! Everything that measures is generic over [`Subject`] and compiled once for each, so that a
//! lock's fast path is inlined as it is in a program that uses it. Peers from C libraries are
//! called through a pointer, as a program calls them through its linkage table.

mod library;
mod ours;
mod pthread;
mod rust;

/// A mutual-exclusion lock that can be measured.
pub trait Subject: Sized + Sync {
    /// A free lock.
    ///
    /// # Errors
    ///
    /// One line, if this machine can't have it: what is missing and how to get it.
    fn new() -> Result<Self, String>;

    /// Runs `section` under the lock. `section` must not unwind.
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R;
}

/// Something to be done with a lock whose name is known only when the program runs.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<S: Subject>(self) -> Self::Output;
}

macro_rules! subjects {
    ($($list:ident: $($name:literal => $subject:ty,)+;)+) => {
        $(
            /// Names, as the command line has them.
            pub const $list: &[&str] = &[$($name),+];
        )+

        /// Calls `visitor` with the type of that name. `None` if there is no such lock.
        pub fn visit<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($($name => Some(visitor.visit::<$subject>()),)+)+
                _ => None,
            }
        }
    };
}

subjects! {
    OURS:
        "shfl-mutex" => ours::Mutex,
        "shfl-mutex+light" => ours::LightMutex,
        "shfl-mutex+published" => ours::PublishedMutex,
        "shfl-spin" => ours::Spin,
        "tas" => ours::Tas,
        "ttas" => ours::Ttas,
        "ticket" => ours::Ticket,
        "mcs" => ours::Mcs,
        "mcs-stp" => ours::McsStp,
        "clh" => ours::Clh,
        "futex" => ours::Futex,
    ;
    PEERS:
        "glibc" => pthread::Normal,
        "glibc-adaptive" => pthread::Adaptive,
        "std" => rust::Std,
        "parking_lot" => rust::ParkingLot,
        "nsync" => library::Nsync,
        "absl" => library::Absl,
    ;
}

/// The mutexes that programs have without asking. The others are there to be seen.
pub const COMMON: &[&str] = &["glibc", "glibc-adaptive", "std", "parking_lot"];

#[cfg(test)]
mod tests {
    use super::*;

    struct Holds;

    impl Visitor for Holds {
        type Output = Result<u32, String>;

        fn visit<S: Subject>(self) -> Self::Output {
            let lock = S::new()?;
            Ok(lock.hold(|| 1) + lock.hold(|| 2))
        }
    }

    #[test]
    fn each_name_is_a_lock_that_can_be_held_twice_in_turn() {
        for name in OURS.iter().chain(PEERS) {
            match visit(name, Holds) {
                Some(Ok(sum)) => assert_eq!(sum, 3, "{name}"),
                // A library or a kernel feature that this machine lacks: then it says which.
                Some(Err(missing)) => {
                    assert!(["nsync", "absl", "shfl-mutex+light"].contains(name), "{missing}");
                }
                None => panic!("{name} has no type"),
            }
        }
        assert!(visit("no such lock", Holds).is_none());
        assert!(COMMON.iter().all(|name| PEERS.contains(name)));
    }
}
