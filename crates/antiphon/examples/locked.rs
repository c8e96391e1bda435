//! Threads that wait for a mutex and for a readers-writer lock, to be inspected with a debugger:
//! with the script that `antiphon locks --gdb` prints, `antiphon mutex locked::NUMBER` shows the
//! queue.
//!
//! ```text
//! gdb -x antiphon.py -ex 'break all_rust_threads_wait' -ex run target/debug/examples/locked
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static NUMBER: antiphon::Mutex<u64> = antiphon::Mutex::new(4711);
static TABLE: antiphon::RwLock<u32> = antiphon::RwLock::new(12);

/// A function for a breakpoint, called when all threads wait.
// SAFETY: no other function in the program has this name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn all_rust_threads_wait() {
    std::hint::black_box(());
}

fn main() {
    static COMING: AtomicUsize = AtomicUsize::new(0);
    let (number, table) = (NUMBER.lock(), (TABLE.read(), TABLE.read()));
    std::thread::scope(|scope| {
        let wait: [fn(); 3] =
            [|| drop(NUMBER.lock()), || drop(TABLE.write()), || drop(TABLE.read())];
        for (nth, wait) in wait.into_iter().enumerate() {
            scope.spawn(move || {
                COMING.fetch_add(1, Ordering::Relaxed);
                wait();
            });
            while COMING.load(Ordering::Relaxed) <= nth {
                std::thread::yield_now();
            }
            // Time for the writer to arrive before the reader, and for all to sleep.
            std::thread::sleep(Duration::from_millis(300));
        }
        all_rust_threads_wait();
        drop((number, table));
    });
}
