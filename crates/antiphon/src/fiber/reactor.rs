//! The reactor of a thread: waits of its fibers for files, by `epoll`.
//!
//! ```text
//!   fiber                      host, same thread             kernel
//!   ─────                      ─────────────────             ──────
//!   read ─► would block
//!   tick, register (once) ─────────────────────────────────► epoll: both ways, edges
//!   wait_after(tick) ────────► has others go on
//!                              poll ◄─────────────────────── edge
//!                              ready, tick + 1
//!   read again  ◄───────────── goes on
//! ```
//!
//! - FILE-1: a reactor and its slots belong to one thread at a time, except for its gate, by which
//!   other threads end a poll and remove registrations.
//! - FILE-2 (no lost edge): a side's tick counts the edges that polls have reported. A fiber that
//!   has found that a file would block waits until the tick differs from its value before the try;
//!   and a fiber marks a side as not ready only if the tick is the same as before the try. Data
//!   that arrives after the try is an edge of a later poll.
//! - FILE-3: a slot that a poll reports may belong to another file by now, or be free. The cost is
//!   one unsuccessful try.
//! - FILE-4: a gate is never freed: the thread that ends a poll may be late, and the polling thread
//!   gone (READY-2); and a file may outlive the thread that has registered it. The reactor is kept
//!   for the next thread, with its registrations: the next thread receives their events.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Mutex;

use antiphon_linux::Linux;
use antiphon_linux::files::{Epoll, Event, Events, Way};
use antiphon_linux::notify::EventFd;
use antiphon_platform::{Deadline, Platform as _};

use crate::unpoisoned::lock;

/// The files that the fibers of a thread wait for.
pub(super) struct Reactor {
    gate: &'static Gate,
    slots: RefCell<Vec<Slot>>,
    events: RefCell<Events>,
}

/// The part of a reactor that other threads may use.
#[derive(Debug)]
pub(crate) struct Gate {
    epoll: Epoll,
    /// The epoch of the process that made it: a child of that process shares the `epoll` file with
    /// it.
    epoch: u32,
    /// Slots that no file uses any more.
    free: Mutex<Vec<u32>>,
}

/// A file that is registered with a reactor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    gate: &'static Gate,
    slot: u32,
}

/// The readiness of a registered file.
#[derive(Default)]
struct Slot {
    read: Side,
    write: Side,
    /// Whether a short read does not mean that there is no more: see [`Event::odd`].
    odd: Cell<bool>,
}

#[derive(Default)]
struct Side {
    /// Whether to try; otherwise the file would block.
    ready: Cell<bool>,
    tick: Cell<u32>,
    /// The handles of the fibers that wait.
    waiters: RefCell<Vec<u64>>,
}

/// Maximum number of events of a poll.
const ROOM: usize = 512;

/// The reactors of threads that have ended: FILE-4.
static REACTORS: Mutex<Vec<Reactor>> = Mutex::new(Vec::new());

impl Reactor {
    /// Takes the reactor of a thread that has ended, or makes a new one.
    ///
    /// # Errors
    ///
    /// Too many files are open.
    pub(super) fn take() -> io::Result<Self> {
        let epoch = Linux::epoch();
        loop {
            let used = lock(&REACTORS).pop();
            match used {
                Some(used) if !used.is_inherited() => return Ok(used),
                // A reactor of the parent process.
                Some(_) => {}
                None => break,
            }
        }
        let gate = Gate { epoll: Epoll::new()?, epoch, free: Mutex::default() };
        let (slots, events) = (RefCell::default(), RefCell::new(Events::new(ROOM)));
        Ok(Self { gate: Box::leak(Box::new(gate)), slots, events })
    }

    /// Leaves the reactor to the next thread.
    pub(super) fn put_back(self) {
        lock(&REACTORS).push(self);
    }

    /// Returns the bell by which other threads end a poll, or the next one.
    pub(super) fn bell(&self) -> &'static EventFd {
        self.gate.epoll.bell()
    }

    /// Returns whether it belongs to the parent of this process.
    #[inline]
    pub(super) fn is_inherited(&self) -> bool {
        self.gate.epoch != Linux::epoch()
    }

    pub(super) fn owns(&self, seat: &Seat) -> bool {
        ptr::eq(self.gate, seat.gate)
    }

    /// Registers a file of which one side, `tried`, would block.
    ///
    /// # Errors
    ///
    /// The errors of [`Epoll::add`].
    pub(super) fn register(&self, file: BorrowedFd<'_>, tried: Way) -> io::Result<Seat> {
        let free = self.gate.free().pop();
        let mut slots = self.slots.borrow_mut();
        let slot = free.unwrap_or_else(|| {
            slots.push(Slot::default());
            u32::try_from(slots.len() - 1).expect("fewer files")
        });
        slots[slot as usize].begin(tried);
        if let Err(error) = self.gate.epoll.add(file, slot.into()) {
            self.gate.free().push(slot);
            return Err(error);
        }
        Ok(Seat { gate: self.gate, slot })
    }

    /// Calls `ask` with a side of a file that is registered here.
    fn side<R>(&self, seat: Seat, way: Way, ask: impl FnOnce(&Side) -> R) -> R {
        ask(self.slots.borrow()[seat.slot as usize].side(way))
    }

    /// Returns the state to remember before a try: the tick, and whether to try.
    pub(super) fn before(&self, seat: Seat, way: Way) -> (u32, bool) {
        self.side(seat, way, |side| (side.tick.get(), side.ready.get()))
    }

    /// Records that a try would have blocked; or, if `drained`, that there was less than it asked
    /// for.
    pub(super) fn spent(&self, seat: Seat, way: Way, tick: u32, drained: bool) {
        let slots = self.slots.borrow();
        let slot = &slots[seat.slot as usize];
        let side = slot.side(way);
        // FILE-2.
        if side.tick.get() == tick && !(drained && slot.odd.get()) {
            side.ready.set(false);
        }
    }

    /// Adds a waiting fiber to a side.
    pub(super) fn enter(&self, seat: Seat, way: Way, handle: u64) {
        self.side(seat, way, |side| side.waiters.borrow_mut().push(handle));
    }

    /// Removes a fiber that no longer waits from a side.
    pub(super) fn leave(&self, seat: Seat, way: Way, handle: u64) {
        self.side(seat, way, |side| side.waiters.borrow_mut().retain(|&other| other != handle));
    }

    /// Waits for edges, or a notification, until the deadline; a deadline in the past means a poll.
    /// Calls `wake` for each fiber that waited for one of the edges, and returns their number.
    ///
    /// # Panics
    ///
    /// If the program has closed the `epoll` file.
    pub(super) fn poll(&self, deadline: Option<Deadline>, wake: impl Fn(u64)) -> usize {
        let mut events = self.events.borrow_mut();
        if let Err(error) = self.gate.epoll.wait(&mut events, deadline) {
            panic!("the files that fibers wait for: {error}");
        }
        let slots = self.slots.borrow();
        let mut waited = 0;
        for event in events.iter() {
            // FILE-3.
            slots[event.key as usize].tell(event, |handle| {
                waited += 1;
                wake(handle);
            });
        }
        waited
    }
}

impl Gate {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        lock(&self.free)
    }
}

impl Seat {
    /// Removes the registration of a file that no fiber waits for. On any thread.
    pub(crate) fn give_up(self, file: BorrowedFd<'_>) {
        // Registrations of the parent process must not be changed.
        if self.gate.epoch == Linux::epoch() {
            self.gate.epoll.remove(file);
            self.gate.free().push(self.slot);
        }
    }
}

impl Slot {
    /// Resets the slot for another file.
    fn begin(&self, tried: Way) {
        self.odd.set(false);
        for way in [Way::Read, Way::Write] {
            // The state of the other side is not known.
            self.side(way).ready.set(way != tried);
        }
    }

    fn side(&self, way: Way) -> &Side {
        match way {
            Way::Read => &self.read,
            Way::Write => &self.write,
        }
    }

    fn tell(&self, event: Event, mut wake: impl FnMut(u64)) {
        self.odd.set(self.odd.get() || event.odd);
        for (is, side) in [(event.read, &self.read), (event.write, &self.write)] {
            if is {
                side.ready.set(true);
                side.tick.set(side.tick.get().wrapping_add(1));
                side.waiters.borrow_mut().drain(..).for_each(&mut wake);
            }
        }
    }
}
