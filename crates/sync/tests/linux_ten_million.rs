//! Ten million locks: their memory, and that they take no more until they are contended.
//!
//! Source: `004_…`, "Issues with NUMA-aware primitives": the locks of ten million inodes, which
//! take gigabytes in other designs. In its own process, because it counts each node, and each byte
//! that its thread allocates.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};
use support::arena;

const LOCKS: usize = 10_000_000;

/// The system's allocator, with a count of the bytes that each thread has allocated.
struct Counting;

thread_local! {
    // Counts only this thread: the harness's own thread allocates at any time. Needs no memory.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes all calls on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + layout.size());
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller makes the same promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads a number of kB from a line of a file of `/proc/self`; returns it in bytes.
fn proc_bytes(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(file).expect("procfs");
    let line = text.lines().find(|line| line.starts_with(key)).expect("the kernel says it");
    let kb = line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok());
    1024 * kb.expect("a number of kB")
}

/// Returns the private memory that the process has touched, in bytes.
fn touched() -> u64 {
    proc_bytes("/proc/self/smaps_rollup", "Anonymous:")
}

/// Returns the size of the address space, in bytes.
fn mapped() -> u64 {
    proc_bytes("/proc/self/status", "VmSize:")
}

/// Makes the locks, locks and unlocks each, and returns the memory that was touched and mapped for
/// all of them.
fn fill<L: Lock>(locks: &mut Vec<L>) -> (u64, u64) {
    let (touched_before, mapped_before) = (touched(), mapped());
    let asked_before = ASKED.get();
    locks.reserve_exact(LOCKS);
    locks.extend((0..LOCKS).map(|_| L::NEW));
    for lock in &*locks {
        lock.lock();
        assert!(!lock.try_lock());
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    }
    assert_eq!(ASKED.get() - asked_before, LOCKS * size_of::<L>(), "and not a byte more");
    assert_eq!(arena().high_water(), 0, "nobody has contended, so there are no nodes");
    (touched() - touched_before, mapped() - mapped_before)
}

/// A page or two at each end, and the kernel's addition to a mapping.
const SLACK: u64 = 256 << 10;

// One test only, because it measures the whole process.
#[test]
fn ten_million_locks_take_their_own_bytes() {
    let mut mutexes = Vec::<ShflMutex<Linux>>::new();
    let (touched_by, mapped_by) = fill(&mut mutexes);
    println!("10 000 000 mutexes: {touched_by} bytes touched, {mapped_by} mapped");
    assert!((80_000_000..80_000_000 + SLACK).contains(&touched_by), "{touched_by}");
    assert!(mapped_by < 80_000_000 + SLACK, "{mapped_by}");

    let mut spinlocks = Vec::<ShflSpin<Linux>>::new();
    let (touched_by, mapped_by) = fill(&mut spinlocks);
    println!("10 000 000 spinlocks: {touched_by} bytes touched, {mapped_by} mapped");
    assert!((40_000_000..40_000_000 + SLACK).contains(&touched_by), "{touched_by}");
    assert!(mapped_by < 40_000_000 + SLACK, "{mapped_by}");

    // Contention takes nodes, one for each waiter.
    let lock = &mutexes[LOCKS / 2];
    lock.lock();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                lock.lock();
                // SAFETY: locked above.
                unsafe { lock.unlock() };
            });
        }
        while arena().high_water() < 3 {
            thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    });
    assert_eq!(arena().high_water(), 3);
}
