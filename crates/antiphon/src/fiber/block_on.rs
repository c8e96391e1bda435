//! `block_on`: waits for a future, on a fiber or a thread.
//!
//! - BLOCK-1 (no lost wake-up): a wake-up leaves the node's token due, so the next sleep with that
//!   ticket ends at once. The poll after the sleep sees all writes from before the wake-up.
//! - BLOCK-2: the waker is a ticket and nothing else. A wake-up after the end of the call finds a
//!   node of another waiter, for which it is spurious, or a node without a waiter.

use std::future::IntoFuture;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use antiphon_linux::Linux;
use antiphon_platform::{Notify, Ticket};
use antiphon_runtime::message::Park;

use crate::budget::may_be_ready;

/// Blocks until `future` is ready, and returns its output. The future is polled by the caller,
/// after each of its wake-ups. A fiber is suspended while it waits; a thread blocks, including the
/// threads of a pool without fibers or of another executor.
///
/// ```
/// use antiphon::{channel, fiber};
///
/// let (sender, receiver) = channel::bounded(1);
/// let sends = std::thread::spawn(move || fiber::block_on(sender.send_async(42)));
/// assert_eq!(fiber::block_on(async { receiver.recv_async().await }), Ok(42));
/// assert_eq!(sends.join().unwrap(), Ok(()));
/// ```
///
/// A future that needs the context of its executor should be spawned there, and its handle passed
/// to this function. If the future enters the context here, it must keep no guard of the context
/// while it waits: the guard belongs to the thread, and other fibers run meanwhile. A future that
/// is always woken and never ready lets other fibers run.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let sleeper = Sleeper(Park::<Linux>::NEW.begin());
    let waker = sleeper.waker();
    let mut context = Context::from_waker(&waker);
    loop {
        may_be_ready();
        if let Poll::Ready(returned) = future.as_mut().poll(&mut context) {
            return returned;
        }
        sleeper.sleep();
    }
}

/// The caller's wake ticket, on which it sleeps.
struct Sleeper(Ticket);

impl Sleeper {
    fn waker(&self) -> Waker {
        // SAFETY: the functions of the table only need the bits of a ticket; they may be called
        // from any thread and at any time (BLOCK-2), and own nothing.
        unsafe { Waker::from_raw(raw(ptr::without_provenance(self.0.get() as usize))) }
    }

    fn sleep(&self) {
        // The reason why the sleep ends does not matter (BLOCK-1). SAFETY: the ticket is from
        // `begin`, and has not been ended.
        let _ = unsafe { Park::<Linux>::NEW.sleep(self.0, None) };
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: the ticket is from `begin`, and is ended only here.
        unsafe { Park::<Linux>::NEW.end(self.0) };
    }
}

const _: () = assert!(size_of::<usize>() == size_of::<Ticket>());

static TABLE: RawWakerVTable = RawWakerVTable::new(raw, wake, wake, |_| ());

fn raw(ticket: *const ()) -> RawWaker {
    RawWaker::new(ticket, &TABLE)
}

fn wake(ticket: *const ()) {
    if let Some(ticket) = Ticket::new(ticket.addr() as u64) {
        Park::<Linux>::NEW.notify(ticket);
    }
}
