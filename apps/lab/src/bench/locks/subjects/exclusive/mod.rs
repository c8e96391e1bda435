//! Locks with one owner at a time.

mod library;
mod ours;
mod pthread;
mod rust;

use antiphon_rivals::classic;

/// Our locks, those of the registry, and the peers.
macro_rules! table {
    (
        [$($ours:literal => $subject:ty,)+]
        [$($peer:literal => $theirs:ty,)+]
        classic: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        crate::bench::visit::subjects! {
            super::Visitor:
            OURS:
                $($ours => $subject,)+
                $($name => ours::Ours<classic::$lock<antiphon_linux::Linux>>,)+
            ;
            PEERS: $($peer => $theirs,)+;
        }

        /// Those of our locks that are there for comparison.
        pub const COMPARED: &[&str] = &[$($name),+];
    };
}

antiphon_rivals::locks!(classic => table
    [
        "shfl-mutex" => ours::Mutex,
        "shfl-mutex+light" => ours::LightMutex,
        "shfl-mutex+published" => ours::PublishedMutex,
        "shfl-mutex+none" => ours::InTurn,
        "shfl-mutex+distance" => ours::Nearest,
        "shfl-mutex+priority" => ours::Urgent,
        "shfl-mutex+wake-up" => ours::Woken,
        "shfl-spin" => ours::Spin,
    ]
    [
        "glibc" => pthread::Normal,
        "glibc-adaptive" => pthread::Adaptive,
        "std" => rust::Std,
        "parking_lot" => rust::ParkingLot,
        "nsync" => library::Nsync,
        "absl" => library::Absl,
    ]
);
