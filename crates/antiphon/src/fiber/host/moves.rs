//! Fibers that move between threads, in pools built with `migrating`.
//!
//! ```text
//!             waits    ┌───────────┐  may go on   ┌─────────┐
//!           ┌────────► │ suspended │ ───────────► │ in line │
//!   ┌───────┴─┐        └───────────┘              └────┬────┘
//!   │  runs   │ ──────────────────────────────────────►│ released, in its turn
//!   └───────▲─┘        yields                     ┌────▼────┐
//!           └──────────────────────────────────── │ queued  │ as a task, and of no thread
//!             adopted, by the worker that takes it└─────────┘
//! ```
//!
//! - MIGRATE-1: a queued fiber is wholly suspended. Its thread has switched away from it, has
//!   neither the fiber nor its timer on any list, and does not touch it any more.
//! - MIGRATE-2: the thread that takes a fiber out of the queue owns it alone, and sees all its
//!   earlier writes, as for any task.
//! - MIGRATE-3: code on a fiber's stack keeps no state of a thread across a switch: it asks
//!   [`local`](crate::local) or Linux for the thread's state each time. A fiber that does keep
//!   such state, for example a place in the reactor, stays on its thread for that wait:
//!   [`GoesOn::Here`].
//!
//! A fiber is [timed](super::super::clocked) through its host; so fibers of such a pool are not
//! timed.

use antiphon_linux::Linux;
use antiphon_runtime::fiber::Turn;
use antiphon_runtime::task::Task;
use antiphon_sync::queue::Item;

use super::super::control::{Fiber, GoesOn, Order, Said};
use super::{Host, Next};

/// The bit of an item that marks a fiber that has begun: no address has it.
const BEGUN: u64 = 1 << 63;

/// Returns whether the item is a fiber that has begun, and not a task.
pub(crate) fn has_begun(item: Item) -> bool {
    item.word() & BEGUN != 0
}

impl Host {
    /// As [`go_on`](Host::go_on), but queues fibers that may continue with `put`, for any worker to
    /// take.
    pub(crate) fn release(&self, put: impl Fn(Item, GoesOn)) -> Next {
        self.go_on_by(|fiber| {
            let goes = fiber.get().goes.get();
            if goes == GoesOn::Here {
                return self.switch_to_move(fiber, Order::GoOn);
            }
            self.unlist(fiber);
            let item = Item::new(fiber.handle() | BEGUN).expect("an address");
            // MIGRATE-1: the last access to the fiber here.
            put(item, goes);
            Turn::Over
        })
    }

    /// Like [`run`](Host::run), but the item may be a fiber that began on another thread, which
    /// needs no new stack. A task always needs one: on the thread's own stack, it would keep the
    /// thread from serving fibers that arrive.
    ///
    /// # Errors
    ///
    /// The errors of `run`.
    ///
    /// # Safety
    ///
    /// The item is that of a task, or comes from [`release`](Self::release), and is used once.
    pub(crate) unsafe fn run_or_adopt(&self, item: Item) -> Result<(), Task<Linux>> {
        self.desk.has_none(false);
        self.began.set(true);
        if has_begun(item) {
            // SAFETY: promised by the caller: MIGRATE-2.
            self.adopt(unsafe { Fiber::of_handle(item.word() & !BEGUN) });
            return Ok(());
        }
        // SAFETY: promised by the caller.
        let task = unsafe { Task::from_item(item) };
        match self.stack() {
            Ok(fiber) => _ = self.switch_to_move(fiber, Order::Run(task)),
            Err(why) => {
                self.dries(why);
                return Err(task);
            }
        }
        Ok(())
    }

    /// Makes this thread the fiber's thread, and resumes the fiber.
    fn adopt(&self, fiber: Fiber) {
        self.list(fiber);
        fiber.get().home.set(self.mail);
        self.switch_to_move(fiber, Order::GoOn);
    }

    fn switch_to_move(&self, fiber: Fiber, order: Order) -> Turn {
        fiber.get().goes.set(GoesOn::Own);
        let said = self.runs(fiber, order);
        if let Said::Yields { soft } = said {
            fiber.get().goes.set(if soft { GoesOn::Here } else { GoesOn::Outside });
        }
        self.sees_to(fiber, said)
    }
}
