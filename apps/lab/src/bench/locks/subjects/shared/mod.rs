//! Locks with one writer or several readers at a time.

mod ours;
mod pthread;
mod rust;

crate::bench::visit::subjects! {
    super::Visitor:
    OURS:
        "shfl-rwlock" => ours::Preferred,
        "shfl-rwlock+recursive" => ours::Passing,
        "shfl-rwlock+group-readers" => ours::ReadersGrouped,
        "shfl-rwlock+group-writers" => ours::WritersGrouped,
    ;
    PEERS:
        "glibc" => pthread::Default,
        "glibc-writer" => pthread::WriterPreferred,
        "std" => rust::Std,
        "parking_lot" => rust::ParkingLot,
    ;
}
