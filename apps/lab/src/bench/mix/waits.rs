//! How parts wait: suspended until the time, or yielding repeatedly.

use std::sync::mpsc::{TryRecvError, TrySendError};
use std::time::Duration;

use antiphon::channel::{Receiver, Sender};
use antiphon::fiber;

use super::cases::Wait;
use crate::compete::work::now_ns;

/// Waits until this time of the monotonic clock, in nanoseconds.
pub fn wait_until(due_ns: u64, wait: Wait) {
    loop {
        let left = due_ns.saturating_sub(now_ns());
        match wait {
            _ if left == 0 => return,
            Wait::Sleep => fiber::sleep(Duration::from_nanos(left)),
            Wait::Yield => fiber::yield_now(),
        }
    }
}

/// Puts a value into a slot. Returns `None` if the receiver is gone.
pub fn put<T: Send>(slot: &Sender<T>, mut value: T, wait: Wait) -> Option<()> {
    if wait == Wait::Sleep {
        return slot.send(value).ok();
    }
    loop {
        value = match slot.try_send(value) {
            Ok(()) => return Some(()),
            Err(TrySendError::Full(back)) => back,
            Err(TrySendError::Disconnected(_)) => return None,
        };
        fiber::yield_now();
    }
}

/// Takes a value out of a slot. Returns `None` if the sender is gone.
pub fn take<T: Send>(slot: &Receiver<T>, wait: Wait) -> Option<T> {
    if wait == Wait::Sleep {
        return slot.recv().ok();
    }
    loop {
        match slot.try_recv() {
            Ok(value) => return Some(value),
            Err(TryRecvError::Empty) => fiber::yield_now(),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
}
