//! Locks with one owner at a time.

mod library;
mod ours;
mod pthread;
mod rust;

super::subjects! {
    super::Visitor:
    OURS:
        "shfl-mutex" => ours::Mutex,
        "shfl-mutex+light" => ours::LightMutex,
        "shfl-mutex+published" => ours::PublishedMutex,
        "shfl-mutex+none" => ours::InTurn,
        "shfl-mutex+distance" => ours::Nearest,
        "shfl-mutex+priority" => ours::Urgent,
        "shfl-mutex+wake-up" => ours::Woken,
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
