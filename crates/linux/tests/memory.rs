//! Tests that locks work without address space for nodes.

mod support;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline, Parked, Platform, Waiter, WaiterId};
use support::{FORKS, arena, in_child};

fn limit_address_space(bytes: u64) -> bool {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: only reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) == 0 }
}

/// Runs in a child, so that memory is first requested there.
fn without_nodes(limit: u64) -> bool {
    let waiter = Waiter::<Linux>::NEW;
    let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
    limit_address_space(limit)
        && arena().take().is_none()
        && arena().resolve_any(WaiterId::new(1, 1)).is_none()
        && arena().take().is_none()
        && (1..=1023).contains(&Linux::epoch())
        && Linux::epoch() == Linux::epoch()
        && Linux::thread() == Linux::thread()
        && Linux::park(&waiter, past) == Parked::TimedOut
        && in_child(FORKS[0].1, || arena().take().is_none())
}

/// The address space that the program already uses, in bytes.
fn used() -> u64 {
    let used = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: u64 = used.split(' ').next().and_then(|word| word.parse().ok()).expect("a size");
    pages * 4096
}

#[test]
fn no_room_for_the_nodes() {
    // The page of the process, but not a piece of nodes.
    let limit = used() + (64 << 10);
    assert!(in_child(FORKS[0].1, || without_nodes(limit)));
}

/// Each thousand nodes is requested when it is needed: as many as there is room for, and more when
/// there is more room.
#[test]
fn room_for_a_few_nodes_only() {
    let limit = used() + (1 << 20);
    assert!(in_child(FORKS[0].1, || {
        let before = used();
        let few = (0..5_000).all(|_| arena().take().is_some());
        let grown = used() - before;
        let soft = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
        let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, ..soft };
        // SAFETY: only reads the limit.
        let set = |limit: libc::rlimit| unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) == 0 };
        // Not all: some are of pieces that are there.
        few && grown < 1 << 20
            && set(soft)
            && (0..20_000).any(|_| arena().take().is_none())
            && set(none)
            && (0..20_000).all(|_| arena().take().is_some())
    }));
}

#[test]
fn no_room_for_anything() {
    assert!(in_child(FORKS[0].1, || without_nodes(4096)));
}
