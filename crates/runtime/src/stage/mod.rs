//! Stages of a pipeline: items wait in a bounded queue, and as many servers run as the items are
//! worth, up to a width. The caller provides the servers' threads, and their turns.
//!
//! | bits of `state` | meaning |
//! |---|---|
//! | 0–29 | number of servers, including those that were asked for |
//! | 30 | `CLOSED`: no more items are sent |
//! | 31 | `OVER`: closed, no item is left, and there is no server |
//!
//! ```text
//!           send: "start one"                 next: none left, "left"
//!   ┌──────┐ ───────────────► ┌────────────┐ ────────────────► ┌──────┐
//!   │  —   │                  │ a server   │ ─── next: item    │  —   │
//!   └──────┘                  └────────────┘ ◄──┘              └──────┘
//! ```
//!
//! - STAGE-1 (no item left): a thread puts an item in, and then checks whether there are enough
//!   servers; a server leaves, and then checks for an item that is ready. At least one of them sees
//!   the other. A server that was asked for is counted.
//! - STAGE-2 (one end): a stage is over once, because one exchange decides; it comes after all
//!   accesses of servers, and there is no server, nor will there be.
//! - STAGE-3: there are no more servers than the width. With one, items are served in order.

use core::fmt;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};

use crate::channel::{Channel, NotSent};
use crate::lines::Lines;

/// A queue of items, and the number of servers.
pub struct Stage<P: Platform, T> {
    items: Channel<P, T>,
    state: Lines<P::U32>,
    width: u32,
}

/// The next action of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// Serve this item.
    Item(T),
    /// Leave: no item is left for this server, which is no longer counted.
    Left,
    /// Leave, and the stage is over: this server must handle that.
    Over,
}

const CLOSED: u32 = 1 << 30;
const OVER: u32 = 1 << 31;

const fn servers(state: u32) -> u32 {
    state & (CLOSED - 1)
}

impl<P: Platform, T: Send> Stage<P, T> {
    /// Creates a stage with room for `room` items, rounded up to a power of two, and at most
    /// `width` servers.
    ///
    /// # Panics
    ///
    /// If `room` is 0, or more than 2³¹; or if `width` is 0, or 2³⁰ or more.
    #[must_use]
    pub fn new(room: usize, width: usize) -> Self {
        let most = (CLOSED - 1) as usize;
        assert!(
            (1..=most).contains(&width),
            "a stage {width} wide: the width must be from 1 to 2^30 - 1"
        );
        Self { items: Channel::new(room), state: Lines(P::U32::ZERO), width: width as u32 }
    }

    /// Sends an item when there is room; waits for room, until the deadline if there is one.
    /// Returns whether the caller must start a server. Must not be called when the stage is closed.
    ///
    /// # Errors
    ///
    /// The item, if the deadline has passed.
    pub fn send(&self, item: T, deadline: Option<Deadline>) -> Result<bool, NotSent<T>> {
        self.items.send(item, deadline)?;
        Ok(self.ask())
    }

    /// Like [`send`](Self::send), but does not block.
    ///
    /// # Errors
    ///
    /// The item, if there is no room.
    pub fn try_send(&self, item: T) -> Result<bool, NotSent<T>> {
        self.items.try_send(item)?;
        Ok(self.ask())
    }

    /// Counts another server, if the waiting items are worth one: the first for the first item, and
    /// the whole width if half of the room is taken.
    fn ask(&self) -> bool {
        // STAGE-1: the notification of a receiver, as the item was put in, has made the fence that
        // pairs with the one in `next`.
        let mut state = self.state.0.load(Relaxed);
        let waiting = (self.items.len() as u64).max(1);
        let wanted = (waiting * 2 * u64::from(self.width)).div_ceil(self.items.room() as u64);
        let wanted = wanted.min(self.width.into()) as u32;
        while servers(state) < wanted {
            // Relaxed, both: the item to serve is acquired from the queue; STAGE-3 is about one
            // word.
            match self.state.0.compare_exchange(state, state + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Called by a server: returns its next action. Does not block.
    pub fn next(&self) -> Next<T> {
        loop {
            if let Ok(item) = self.items.try_recv() {
                return Next::Item(item);
            }
            // Release: STAGE-2, the server's accesses; pairs with the acquire in `end`. The fence
            // below acquires those of earlier servers.
            let mut state = self.state.0.fetch_sub(1, Release) - 1;
            // STAGE-1: pairs with the fence of a notification, as in `ask`.
            P::fence(SeqCst);
            if !self.items.has_next() {
                return self.end();
            }
            // The caller becomes a server again, unless there are enough.
            loop {
                if servers(state) == self.width {
                    return Next::Left;
                }
                // Relaxed, both: as in `ask`.
                match self.state.0.compare_exchange(state, state + 1, Relaxed, Relaxed) {
                    Ok(_) => break,
                    Err(now) => state = now,
                }
            }
        }
    }

    /// Closes the stage: no more items are sent; must be called once. Returns whether the stage is
    /// over by that: then the caller must handle that.
    #[must_use]
    pub fn close(&self) -> bool {
        // Release: the accesses of threads that have sent; Acquire: of threads that have served.
        // Pairs with itself, and the exchange in `next`.
        self.state.0.fetch_or(CLOSED, AcqRel);
        // STAGE-1: if there is an item and no server, one that has left is coming back.
        !self.items.has_next() && matches!(self.end(), Next::Over)
    }

    /// Called when no item is left: ends the stage, if it is closed and there is no server.
    fn end(&self) -> Next<T> {
        // Acquire: STAGE-2; pairs with the releases in `next` and `close`.
        let ended = self.state.0.compare_exchange(CLOSED, CLOSED | OVER, Acquire, Relaxed);
        if ended.is_ok() { Next::Over } else { Next::Left }
    }
}

impl<P: Platform, T> Stage<P, T> {
    /// Returns how many items wait; may be stale at once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether no item waits; may be stale at once.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity, in items.
    #[must_use]
    pub fn room(&self) -> usize {
        self.items.room()
    }

    /// Returns the number of servers; may be stale at once.
    #[must_use]
    pub fn servers(&self) -> usize {
        // Relaxed: a hint.
        servers(self.state.0.load(Relaxed)) as usize
    }
}

impl<P: Platform, T> fmt::Debug for Stage<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("len", &self.len())
            .field("room", &self.room())
            .field("servers", &self.servers())
            .finish_non_exhaustive()
    }
}
