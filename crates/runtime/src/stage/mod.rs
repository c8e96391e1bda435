//! Stages: items that wait in a line with a bound, and as many servers as they are worth, up to a
//! width. Who serves, and when a server has its turn, is the caller's to say.
//!
//! | bits of `state` | meaning |
//! |---|---|
//! | 0–29 | how many servers there are: they serve, or were asked for |
//! | 30 | `CLOSED`: nothing is sent any more |
//! | 31 | `OVER`: and nothing is left, and nobody serves |
//!
//! ```text
//!           send: "start one"                 next: none left, "left"
//!   ┌──────┐ ───────────────► ┌────────────┐ ────────────────► ┌──────┐
//!   │  —   │                  │ a server   │ ─── next: item    │  —   │
//!   └──────┘                  └────────────┘ ◄──┘              └──────┘
//! ```
//!
//! - STAGE-1 (no item left): who puts one in, and then looks whether there are servers enough; and
//!   a server that leaves, and then looks for an item that is ready: one of them sees the other. A
//!   server that was asked for is one.
//! - STAGE-2 (one end): it is over once, as one exchange decides; then all that servers have done
//!   was done before, and nobody serves, or will.
//! - STAGE-3: there are no more servers than the width. With one, items are served in order.

use core::fmt;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};

use crate::channel::{Channel, NotSent};
use crate::lines::Lines;

/// A line of items, and the count of those who serve them.
pub struct Stage<P: Platform, T> {
    items: Channel<P, T>,
    state: Lines<P::U32>,
    width: u32,
}

/// What a server does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// Serves this.
    Item(T),
    /// It is no server any more: there is nothing left for it.
    Left,
    /// As that, and the stage is over: it is the one to see to that.
    Over,
}

const CLOSED: u32 = 1 << 30;
const OVER: u32 = 1 << 31;

const fn servers(state: u32) -> u32 {
    state & (CLOSED - 1)
}

impl<P: Platform, T: Send> Stage<P, T> {
    /// With room for so many items, rounded up to a power of two, and so many servers at the most.
    ///
    /// # Panics
    ///
    /// If there is to be no room, or more than 2³¹; or no width, or 2³⁰ or more.
    #[must_use]
    pub fn new(room: usize, width: usize) -> Self {
        let most = (CLOSED - 1) as usize;
        assert!((1..=most).contains(&width), "a stage {width} wide: 1 to 2^30 - 1 it can be");
        Self { items: Channel::new(room), state: Lines(P::U32::ZERO), width: width as u32 }
    }

    /// Puts an item in when there is room; waits for that, until the deadline if there is one.
    /// Whether the caller is to start a server. Not to be called when the stage is closed.
    ///
    /// # Errors
    ///
    /// If the deadline has passed: the item.
    pub fn send(&self, item: T, deadline: Option<Deadline>) -> Result<bool, NotSent<T>> {
        self.items.send(item, deadline)?;
        Ok(self.ask())
    }

    /// As [`send`](Self::send). Does not block.
    ///
    /// # Errors
    ///
    /// If there is no room: the item.
    pub fn try_send(&self, item: T) -> Result<bool, NotSent<T>> {
        self.items.try_send(item)?;
        Ok(self.ask())
    }

    /// Counts another server, if what waits is worth one: the first for the first item, and all of
    /// the width where half of the room is taken.
    fn ask(&self) -> bool {
        // STAGE-1: pairs with the fence in `next`.
        P::fence(SeqCst);
        let mut state = self.state.0.load(Relaxed);
        let waiting = (self.items.len() as u64).max(1);
        let wanted = (waiting * 2 * u64::from(self.width)).div_ceil(self.items.room() as u64);
        let wanted = wanted.min(self.width.into()) as u32;
        while servers(state) < wanted {
            // Relaxed, both: what it is to serve is acquired from the line; STAGE-3 is about one
            // word.
            match self.state.0.compare_exchange(state, state + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// For a server: what it does next. Does not block.
    pub fn next(&self) -> Next<T> {
        loop {
            if let Ok(item) = self.items.try_recv() {
                return Next::Item(item);
            }
            // Release: STAGE-2, what it has done; pairs with the acquire in `end`. Acquire: what
            // others have that were servers, for the next who is.
            let mut state = self.state.0.fetch_sub(1, AcqRel) - 1;
            // STAGE-1: pairs with the fence in `ask`.
            P::fence(SeqCst);
            if !self.items.has_next() {
                return self.end();
            }
            // It is one again, unless there are enough.
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

    /// Nothing is sent any more, from now on; once. Whether the stage is over by that: then the
    /// caller is the one to see to it.
    #[must_use]
    pub fn close(&self) -> bool {
        // Release: what was done by those who have sent; Acquire: by those who have served. Pairs
        // with itself, and the exchange in `next`.
        self.state.0.fetch_or(CLOSED, AcqRel);
        // STAGE-1: where there is an item and no server, one that has left is coming back.
        !self.items.has_next() && matches!(self.end(), Next::Over)
    }

    /// Nothing is left: it is over, if it is closed and nobody serves.
    fn end(&self) -> Next<T> {
        // Acquire: STAGE-2; pairs with the releases in `next` and `close`.
        let ended = self.state.0.compare_exchange(CLOSED, CLOSED | OVER, Acquire, Relaxed);
        if ended.is_ok() { Next::Over } else { Next::Left }
    }
}

impl<P: Platform, T> Stage<P, T> {
    /// How many items wait; may be stale at once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none waits; may be stale at once.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how many items there is room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.items.room()
    }

    /// How many servers there are; may be stale at once.
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
