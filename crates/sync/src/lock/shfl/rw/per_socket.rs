//! The readers-writer lock whose readers are counted by socket.
//!
//! All readers of a [`ShflRwLock`] write one word, and on many sockets that word is what they wait
//! for; for this the thesis concedes reads to CST (`000_…`: "CST uses per-socket counters than a
//! centralized counter"). Here a reader counts itself in on a line of its socket, while that line
//! is open; writers, and readers that find the line closed, use the inner lock.
//!
//! ```text
//!   inside  ShflRwLock: writers, readers that found their line closed
//!   until   rest: before that time, in ns, no line is opened
//!   lines   63      40        23      8 7        1    0
//!          │ readers  │        │ name  │       WAKE OPEN │   a socket each, 64 bytes apart
//! ```
//!
//! - SEAT-1: a reader is in by a line if its own addition has found `OPEN` there. It leaves by the
//!   same line ([`Seat`]), on whatever socket it runs by then.
//! - SEAT-2: `OPEN` is set by a reader that is in through the lock inside, so no writer is in.
//! - SEAT-3: a writer that has the lock inside takes `OPEN` off each line and waits until no reader
//!   is counted there. From then on it is in, and no line is opened before it leaves.
//! - SEAT-4: a writer that sleeps until a line is empty is named there with `WAKE` set, by an
//!   exchange that finds a reader counted; the last reader to leave finds the name in the result of
//!   its subtraction, and touches nothing of the lock afterwards (RW-3).
//!
//! One word decides, so no fence is needed; a reader that finds its line open pays one locked
//! instruction each way, as with the inner lock. Readers that come and go do not starve a writer:
//! once it has the inner lock, they wait there behind it (RW-4). Closing costs a transfer per
//! socket and the readers' way out, so afterwards lines stay closed for [`RwForm::REST`] times as
//! long as it took (as in Dice and Kogan, "BRAVO: biased locking for reader-writer locks", 2019,
//! which has one table of readers for all locks).
//!
//! Price: 64 bytes, and 64 for each socket. A reader must keep its seat, so this lock is not for
//! interfaces that unlock without a seat (`pthread_rwlock_t`), and a thread that reads may not read
//! again.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Clock, Deadline, Hint, Parked, Platform, SocketId,
};

use super::super::form::Standard;
use super::super::queue::Place;
use super::wake::wake;
use super::{Central, Refused, RwForm, ShflRwLock};
use crate::nap;
use crate::policy::{Numa, Policy};

/// One reader.
const READER: u64 = 1 << 40;
const OPEN: u64 = 1;
const WAKE: u64 = 1 << 1;
const NAME_SHIFT: u32 = 8;
const NAME: u64 = 0xFFFF << NAME_SHIFT;

/// The longest time for which lines stay closed, in nanoseconds.
const LONGEST_NS: u64 = 1 << 40;

/// A NUMA-aware blocking readers-writer lock with a counter of readers for each of `SOCKETS`
/// sockets; on machines with more sockets, some share a counter. 64 bytes, and 64 for each counter.
///
/// For locks that are read from several sockets at the same time and seldom written. On a machine
/// of one socket it does what [`ShflRwLock`] does.
#[repr(C, align(64))]
pub struct PerSocket<P: Platform, Q: Policy = Numa, F: RwForm = Standard, const SOCKETS: usize = 8>
{
    inside: ShflRwLock<P, Q, Central<F>>,
    until: P::U64,
    lines: [Line<P>; SOCKETS],
}

/// The readers that are in from one socket.
#[repr(C, align(64))]
struct Line<P: Platform>(P::U64);

/// A reader's proof of how it holds the lock; the reader must release the lock with it.
#[must_use = "a reader leaves by its seat"]
#[derive(Debug)]
pub struct Seat(Option<SocketId>);

impl Seat {
    /// Returns the socket on whose line the reader is counted; `None` if it holds the inner lock.
    #[must_use]
    pub const fn socket(&self) -> Option<SocketId> {
        self.0
    }
}

impl<P: Platform, Q: Policy, F: RwForm, const SOCKETS: usize> PerSocket<P, Q, F, SOCKETS> {
    /// A free lock.
    pub const NEW: Self = Self {
        inside: ShflRwLock::NEW,
        until: P::U64::ZERO,
        lines: [const { Line(P::U64::ZERO) }; SOCKETS],
    };

    /// Acquires the lock for reading; blocks until the caller has it. The caller waits behind a
    /// writer.
    ///
    /// # Errors
    ///
    /// The same as for [`ShflRwLock::read`].
    #[inline]
    pub fn read(&self) -> Result<Seat, Refused> {
        match self.sit_down() {
            Some(seat) => Ok(seat),
            None => self.inside.read().map(|()| self.open()),
        }
    }

    /// Does what [`read`](Self::read) does, but gives up when the deadline has passed.
    ///
    /// # Errors
    ///
    /// The same as for [`ShflRwLock::read_until`].
    #[inline]
    pub fn read_until(&self, deadline: Deadline) -> Result<Seat, Refused> {
        match self.sit_down() {
            Some(seat) => Ok(seat),
            None => self.inside.read_until(deadline).map(|()| self.open()),
        }
    }

    /// Acquires the lock for reading if that is possible without waiting; never fails on a free
    /// lock, never blocks.
    ///
    /// # Errors
    ///
    /// The same as for [`ShflRwLock::try_read`].
    #[inline]
    pub fn try_read(&self) -> Result<Seat, Refused> {
        match self.sit_down() {
            Some(seat) => Ok(seat),
            None => self.inside.try_read().map(|()| self.open()),
        }
    }

    /// Releases what was acquired for reading; the last reader of a socket wakes a writer that
    /// sleeps until its line is empty.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading, by this seat.
    #[inline]
    pub unsafe fn unlock_read(&self, seat: Seat) {
        match seat.0 {
            Some(socket) => self.line(socket).leave(),
            // SAFETY: the caller's promise; the caller is in through the lock inside.
            None => unsafe { self.inside.unlock_read() },
        }
    }

    /// Acquires the lock for writing; blocks until the caller has it.
    pub fn write(&self) {
        self.inside.write();
        self.close(None);
    }

    /// Acquires the lock for writing, or gives up when the deadline has passed; returns whether the
    /// caller has it. A free lock is acquired whatever the deadline.
    pub fn write_until(&self, deadline: Deadline) -> bool {
        if !self.inside.write_until(deadline) {
            return false;
        }
        let had = self.close(Some(deadline));
        if !had {
            // SAFETY: acquired above.
            unsafe { self.inside.unlock_write() };
        }
        had
    }

    /// Acquires the lock for writing if it is free; never blocks. It fails while a reader checks
    /// whether it may come in.
    pub fn try_write(&self) -> bool {
        // Relaxed: checked again below. A failing try closes no line.
        if self.lines.iter().any(|line| line.0.load(Relaxed) >= READER) || !self.inside.try_write()
        {
            return false;
        }
        let empty = self.lines.iter().all(|line| line.shut() < READER);
        if !empty {
            // SAFETY: acquired above.
            unsafe { self.inside.unlock_write() };
        }
        empty
    }

    /// Releases what was acquired for writing; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise; lines stay closed until a reader is in.
        unsafe { self.inside.unlock_write() };
    }

    /// Turns what was acquired for writing into what was acquired for reading, with no writer in
    /// between; never blocks.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) -> Seat {
        // SAFETY: the caller's promise.
        unsafe { self.inside.downgrade() };
        Seat(None)
    }

    fn line(&self, socket: SocketId) -> &Line<P> {
        &self.lines[socket.0 as usize % SOCKETS]
    }

    /// Counts the caller in on its socket's line, if that line is open.
    #[inline]
    fn sit_down(&self) -> Option<Seat> {
        let socket = P::socket();
        let line = self.line(socket);
        // Relaxed: checked again below; a reader that finds a line closed does not write to it.
        if line.0.load(Relaxed) & OPEN == 0 {
            return None;
        }
        // Acquire: what the writers have done before; pairs with the release in `open`.
        if line.0.fetch_add(READER, Acquire) & OPEN != 0 {
            return Some(Seat(Some(socket)));
        }
        // SEAT-1: the caller is not in. A writer may have counted it, and then waits for this.
        line.leave();
        None
    }

    /// Opens the line of the caller's socket, if it is time. The caller is in through the lock
    /// inside, and stays so.
    #[inline]
    fn open(&self) -> Seat {
        if P::numa() && self.is_time() {
            // SEAT-2. Release: orders a reader that sits down there after the writers that we are
            // ordered after.
            self.line(P::socket()).0.fetch_or(OPEN, Release);
        }
        Seat(None)
    }

    fn is_time(&self) -> bool {
        // Relaxed: it orders nothing.
        let until = self.until.load(Relaxed);
        F::REST == 0 || until == 0 || now::<P>() >= until
    }

    /// SEAT-3: closes all lines and waits until they are empty; called by the owner of the lock
    /// inside. Returns whether they were empty before the deadline.
    fn close(&self, deadline: Option<Deadline>) -> bool {
        let mut begun = None;
        for line in &self.lines {
            let seen = line.shut();
            if seen != 0 {
                begun = begun.or_else(|| (F::REST != 0).then(now::<P>));
            }
            if seen >= READER && !line.wait_until_empty::<F>(deadline) {
                return false;
            }
        }
        if let Some(begun) = begun {
            let now = now::<P>();
            let rest = now.saturating_sub(begun).saturating_mul(F::REST.into()).min(LONGEST_NS);
            // Relaxed: it orders nothing.
            self.until.store(now.saturating_add(rest), Relaxed);
        }
        true
    }
}

impl<P: Platform> Line<P> {
    /// Closes the line; called by the owner of the lock inside. Returns the line's word before. A
    /// line that is closed and empty is not written to.
    fn shut(&self) -> u64 {
        // Acquire, both: what its readers have done; pairs with the release in `leave`.
        match self.0.load(Acquire) {
            0 => 0,
            _ => self.0.fetch_and(!OPEN, Acquire),
        }
    }

    /// Removes one reader. SEAT-4: the result of the subtraction names the writer to wake.
    #[inline]
    fn leave(&self) {
        // Release: pairs with the acquires of the writer that waits for this.
        let left = self.0.fetch_sub(READER, Release) - READER;
        if left < READER && left & WAKE != 0 {
            wake::<P>((left >> NAME_SHIFT) as u16);
        }
    }

    /// Waits until no reader is counted, or the deadline has passed; returns whether none is.
    #[cold]
    #[inline(never)]
    fn wait_until_empty<F: RwForm>(&self, deadline: Option<Deadline>) -> bool {
        const NAP_NS: u64 = 200_000;
        let budget = if P::crowded() { Budget::NONE } else { F::HEAD_SPIN };
        P::hint(Hint::SpinBegin);
        // Acquire, here and below: as in `shut`.
        let spun = self.0.spin_while(Acquire, budget, |line| line >= READER);
        P::hint(Hint::SpinEnd);
        if spun.is_ok() {
            return true;
        }
        let me = Place::take(crate::policy::None);
        let empty = loop {
            let name = me.filter(|me| !me.is_lost()).map(|me| (me, me.id.index() as u16));
            if !self.ask_for_wake(name.map(|(_, name)| name)) {
                break true;
            }
            let parked = match name {
                Some((me, _)) => P::park(me.node, deadline),
                None => {
                    nap::nap::<P>(NAP_NS);
                    Parked::TimedOut
                }
            };
            if parked == Parked::TimedOut && nap::passed::<P>(deadline) {
                break self.0.load(Acquire) < READER;
            }
        };
        // Relaxed: a thread that still reads the name wakes a node that is never freed.
        self.0.fetch_and(!(WAKE | NAME), Relaxed);
        if let Some(me) = me {
            me.give();
        }
        empty
    }

    /// Names the caller, if it has a node, as the writer to wake; returns `false` if no reader is
    /// counted.
    fn ask_for_wake(&self, name: Option<u16>) -> bool {
        let mut seen = self.0.load(Acquire);
        loop {
            if seen < READER {
                return false;
            }
            let asked = name.map_or(0, |name| WAKE | u64::from(name) << NAME_SHIFT);
            // Release: pairs with the acquire in `wake`: our node's generation comes with its name.
            match self.0.compare_exchange(seen, seen & !NAME | asked, Release, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }
}

fn now<P: Platform>() -> u64 {
    P::now(Clock::Monotonic)
}

super::super::super::impl_lock!(
    unsafe writer: [P: Platform, Q: Policy, F: RwForm, const SOCKETS: usize]
    PerSocket<P, Q, F, SOCKETS>
);
