//! The thread that watches for workers in long tasks; and `blocking`, the call for a task that is
//! about to block.

use std::sync::Arc;
use std::time::Duration;

use antiphon_linux::Linux;

use super::Policy;
use super::shared::Shared;
use crate::deadline::nanos;
use crate::worker;

/// With less patience the watching thread would take the CPU from the workers that it watches.
pub(super) const LEAST: Duration = Duration::from_micros(100);

/// Longest wait for the answer of a hog's thread. Other tasks wait meanwhile, too.
const MOST: Duration = Duration::from_millis(20);

/// Lets backup threads take the seats of workers that are in a task for longer than `patience`,
/// until the pool's threads have ended.
pub(super) fn watch<Y: Policy<Linux> + 'static>(shared: &Arc<Shared<Y>>, patience: Duration) {
    let Some(mut watchdog) = shared.crew.watchdog(nanos(patience.max(LEAST))) else {
        return;
    };
    let answer = (patience / 2).clamp(LEAST, MOST);
    while watchdog.wait() {
        loop {
            shared.desks.tick();
            watchdog.look(|hog| {
                shared.hogs.note(hog.long());
                shared.lend(|| hog.take());
            });
            // While a hog has not answered, the watching thread does not sleep: all other workers
            // may rest.
            if !shared.hogs.ask(answer, |long| shared.crew.lasts(long)) {
                break;
            }
        }
    }
}

/// Runs `work`, which may wait for something other than the pool: a file, a lock, another process.
/// If the caller is a worker, a [backup thread](super::Builder::spares) takes over its queue at
/// once, with all tasks in it. Without a backup thread, or on any other thread, this is a plain
/// call.
///
/// ```
/// use antiphon::pool::{self, Pool};
///
/// let pool = Pool::new(1)?;
/// let (ask, asked) = std::sync::mpsc::channel();
/// let waits = pool.spawn(move || pool::blocking(|| asked.recv()));
/// // The only worker waits, and yet:
/// pool.spawn(move || ask.send(42).unwrap()).join().unwrap();
/// assert_eq!(waits.join().unwrap(), Ok(42));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Until the task ends, its thread then no longer counts as a worker: tasks that it spawns count as
/// tasks from outside, and a task that it waits for is run by other threads.
pub fn blocking<R>(work: impl FnOnce() -> R) -> R {
    worker::leave();
    work()
}
