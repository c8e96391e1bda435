//! The memory of a task that is spawned and has not run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use antiphon::pool::Pool;

/// Counts the allocated bytes, and the number of allocations.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static TIMES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        TIMES.fetch_add(1, Relaxed);
        // SAFETY: promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: promised by the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

const TASKS: usize = 100_000;
/// Maximum size of a task in bytes, with its place in the queue.
const MOST: usize = 128;

/// Returns the bytes of each of the `TASKS` tasks that `spawn_all` spawns on the only worker.
fn bytes_each(spawn_all: impl FnOnce()) -> usize {
    let before = ALLOCATED.load(Relaxed);
    spawn_all();
    (ALLOCATED.load(Relaxed) - before) / TASKS
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn a_task_takes_up_128_bytes_at_most_and_its_memory_is_used_again() {
    a_queued_task_takes_up_128_bytes_at_most();
    memory_is_used_again_though_another_worker_frees_it();
}

fn memory_is_used_again_though_another_worker_frees_it() {
    const BATCH: usize = 1_000;
    const BATCHES: usize = 200;
    let pool = Pool::new(2).unwrap();
    let batch = || pool.scope(|scope| (0..BATCH).for_each(|_| scope.spawn(|| ())));
    let times = pool.run(|| {
        (0..BATCHES).for_each(|_| batch());
        let before = TIMES.load(Relaxed);
        (0..BATCHES).for_each(|_| batch());
        TIMES.load(Relaxed) - before
    });
    // A hundredth of the tasks.
    assert!(times <= BATCH * BATCHES / 100, "{times} allocations");
}

fn a_queued_task_takes_up_128_bytes_at_most() {
    let pool = Pool::new(1).unwrap();
    let (mut with_handle, mut borrowing) = (0, 0);
    pool.scope(|outer| {
        outer.spawn(|| {
            let mut handles = Vec::with_capacity(TASKS);
            with_handle = bytes_each(|| {
                handles.extend((0..TASKS).map(|number| pool.spawn(move || number)));
            });
            // The memory of the earlier tasks is still in use.
            pool.scope(|scope| {
                borrowing = bytes_each(|| (0..TASKS).for_each(|_| scope.spawn(|| ())));
            });
            assert!(handles.into_iter().enumerate().all(|(n, handle)| handle.join().unwrap() == n));
        });
    });
    // Must be more than a word; otherwise the memory was not counted.
    assert!((9..=MOST).contains(&with_handle), "{with_handle} bytes with a handle");
    assert!((9..=MOST).contains(&borrowing), "{borrowing} bytes in a scope");
}
