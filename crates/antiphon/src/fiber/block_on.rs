//! Futures that a fiber, or a thread, waits for.
//!
//! - BLOCK-1 (no lost wake): a wake leaves the node's token due, and the next sleep with that
//!   ticket ends at once. It is looked for what was done before it, by a poll after the sleep.
//! - BLOCK-2: the waker is a ticket, and no more: one that comes when the call is over finds a node
//!   that is another's, whom it wakes for no reason, or nobody.

use std::future::IntoFuture;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use antiphon_linux::Linux;
use antiphon_platform::{Notify, Ticket};
use antiphon_runtime::message::Park;

use super::may_be_ready;

/// Waits for a future, and returns what that does: it is polled here, when it was woken. A fiber is
/// suspended meanwhile; a thread blocks, also one of a pool without fibers, and one of another
/// executor.
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
/// A future that needs its executor's context is spawned there, and its handle waited for; or it is
/// polled within that, and keeps no guard of it while it waits: the guard is the thread's, and
/// other fibers run meanwhile. A future that is woken always, and never ready, lets those run.
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

/// Where the caller sleeps.
struct Sleeper(Ticket);

impl Sleeper {
    fn waker(&self) -> Waker {
        // SAFETY: the functions of the table take the bits of a ticket for what they are, from any
        // thread and at any time (BLOCK-2), and nothing is owned.
        unsafe { Waker::from_raw(raw(ptr::without_provenance(self.0.get() as usize))) }
    }

    fn sleep(&self) {
        // How it ended is of no matter (BLOCK-1). SAFETY: of `begin`, and not ended with.
        let _ = unsafe { Park::<Linux>::NEW.sleep(self.0, None) };
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: of `begin`, and this is the end of it.
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
