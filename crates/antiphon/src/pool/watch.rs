//! The thread that looks after workers in long tasks, and what a task says that is about to wait.

use std::sync::Arc;
use std::time::Duration;

use antiphon_linux::Linux;

use super::Policy;
use super::here;
use super::shared::Shared;
use crate::raw::nanos;

/// Who has less patience takes the CPU from those that it looks after.
pub(super) const LEAST: Duration = Duration::from_micros(100);

/// How long a hog's thread is waited for, to say where it is: others wait for that, too.
const MOST: Duration = Duration::from_millis(20);

/// Has other threads take the seats of workers that are in a task for longer than `patience`, until
/// its threads have ended.
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
                shared.bench.lend(shared, || hog.take());
            });
            // While one has not answered it does not sleep: all others may rest.
            if !shared.hogs.ask(answer, |long| shared.crew.lasts(long)) {
                break;
            }
        }
    }
}

/// Runs what may wait for something else than the pool: a file, a lock, another process. If the
/// calling thread is a worker, another takes its seat at once, with all tasks that are in its
/// queue; where there is none to be had, as the pool has no [spare](super::Builder::spares) threads
/// left, this is the same as a call.
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
/// The task goes on without a seat until it ends: what it spawns goes where tasks from outside go,
/// and what it waits for others run.
pub fn blocking<R>(work: impl FnOnce() -> R) -> R {
    here::leave();
    work()
}
