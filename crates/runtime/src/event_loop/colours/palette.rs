//! The colours of each loop and their queues, under one lock.
//!
//! ```text
//!              put                    take: its loop, or a thief
//!   (absent) ───────► ready, of a loop ─────────────────────────► runs, on one loop
//!       ▲                  ▲                                          │
//!       │ done, nothing    └─────────── done, and there is more ──────┤
//!       └─────────────────────────────────────────────────────────────┘
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::cmp::Reverse;

use antiphon_platform::Platform;
use antiphon_sync::lock::ShflMutex;

/// The key of an event: its importance, and then its order of arrival.
type Place = (u64, u64);

/// Events of type `T` by colour, and loops, each with a `B` to wake it. On cache lines of its own.
#[repr(align(64))]
pub struct Palette<P: Platform, T, B> {
    lock: ShflMutex<P>,
    state: UnsafeCell<State<T, B>>,
}

struct State<T, B> {
    /// The colours that are ready or running.
    colours: BTreeMap<u64, Colour<T>>,
    loops: Vec<Seat<B>>,
    turn: u64,
}

struct Colour<T> {
    /// The waiting events.
    events: BTreeMap<Place, T>,
    home: usize,
    runs: bool,
}

struct Seat<B> {
    /// The ready colours, by their first event.
    ready: BTreeMap<Place, u64>,
    bell: Option<B>,
    /// Whether the loop has found nothing, and no thread is about to wake it.
    idle: bool,
    /// The importance of the entry among its loop's own work; 0 while it runs, after which it looks
    /// again by itself.
    stands: u64,
    /// The turn at which the loop last took an event, or last got its first ready colour.
    since: u64,
}

/// After this many turns per loop, any loop may take events that one loop has not looked at. So a
/// loop that is sometimes busy with other work keeps its colours.
const PATIENCE: u64 = 64;

/// An event to call, on the loop that has taken it and on no other.
#[derive(Debug)]
pub struct Taken<T> {
    /// The colour of the event. No other event of it runs until [`Palette::done`].
    pub colour: u64,
    /// The importance of the event.
    pub importance: u64,
    /// The event itself.
    pub event: T,
}

/// A loop that must be notified of an event with a given importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Call<B> {
    /// The bell of the loop.
    pub bell: B,
    /// The loop must look before it does anything less important.
    pub importance: u64,
    /// Whether the loop looked and found nothing: if it does not sleep either, it has other work,
    /// and another loop must be notified, too.
    pub was_idle: bool,
}

/// The next action of a loop after an event, and the loop that it must wake before.
#[derive(Debug)]
#[must_use]
pub struct Next<B> {
    /// Another loop, for which there is an event.
    pub wake: Option<Call<B>>,
    /// The importance of the event that the loop can take now. `None`: there is none, and the loop
    /// is woken when there is one.
    pub importance: Option<u64>,
}

// SAFETY: the state is used only under the lock, and its contents may be sent.
unsafe impl<P: Platform, T: Send, B: Send> Sync for Palette<P, T, B> {}
// SAFETY: its contents may be sent; nothing in it is bound to a thread.
unsafe impl<P: Platform, T: Send, B: Send> Send for Palette<P, T, B> {}

impl<P: Platform, T, B: Clone> Palette<P, T, B> {
    /// Creates a palette for `loops` loops, none of which has joined yet.
    ///
    /// # Panics
    ///
    /// If `loops` is 0.
    #[must_use]
    pub fn new(loops: usize) -> Self {
        assert!(loops > 0, "events of no loop");
        let seat =
            |_| Seat { ready: BTreeMap::new(), bell: None, idle: false, stands: 0, since: 0 };
        let loops = (0..loops).map(seat).collect();
        let state = State { colours: BTreeMap::new(), loops, turn: 0 };
        Self { lock: ShflMutex::NEW, state: UnsafeCell::new(state) }
    }

    fn with<R>(&self, f: impl FnOnce(&mut State<T, B>) -> R) -> R {
        self.lock.lock();
        // SAFETY: locked; `f` does not re-enter, and drops no value of a caller.
        let result = f(unsafe { &mut *self.state.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }

    /// Adds a loop, which must look for events at once. Returns the bell that it had before.
    pub fn join(&self, number: usize, bell: B) -> Option<B> {
        self.with(|state| {
            let seat = &mut state.loops[number];
            (seat.idle, seat.stands) = (false, 0);
            seat.bell.replace(bell)
        })
    }

    /// Removes a loop. Returns its bell, and the loop to wake for the events that it has left.
    pub fn leave(&self, number: usize) -> (Option<B>, Option<Call<B>>) {
        self.with(|state| {
            let seat = &mut state.loops[number];
            seat.idle = false;
            let bell = seat.bell.take();
            // The loop may have been woken for events of another loop.
            let call = state.idler().or_else(|| state.tell(number));
            (bell, call)
        })
    }

    /// Returns another loop that must look, because the loop that was woken has other work.
    #[must_use]
    pub fn idler(&self) -> Option<Call<B>> {
        self.with(State::idler)
    }

    /// Returns the bells of all loops.
    #[must_use]
    pub fn bells(&self) -> Vec<B> {
        self.with(|state| state.loops.iter().filter_map(|seat| seat.bell.clone()).collect())
    }

    /// Adds an event of a colour. Returns the loop to notify.
    #[must_use]
    pub fn put(&self, colour: u64, importance: u64, event: T) -> Option<Call<B>> {
        self.with(|state| {
            state.turn += 1;
            let place = (importance, state.turn);
            let is_new = state.insert(colour, place, event);
            let home = state.colours.get(&colour)?.home;
            state.tell(home).or_else(|| if is_new { state.idler() } else { None })
        })
    }

    /// Takes the event that a loop must call next: of its own colours, or else of another loop's,
    /// which moves to this loop; or one that another loop has not looked at for long, and that goes
    /// before its own. `None`: there is none, and the loop is woken when there is one.
    #[must_use]
    pub fn take(&self, number: usize) -> Option<Taken<T>> {
        self.with(|state| {
            let seat = &mut state.loops[number];
            (seat.since, seat.stands) = (state.turn, 0);
            let from = state.source(number);
            let Some(from) = from else {
                // COLOUR-3: nothing is ready, and a thread that changes that sees this.
                state.loops[number].idle = true;
                return None;
            };
            let (_, colour) = state.loops[from].ready.pop_first()?;
            let of = state.colours.get_mut(&colour)?;
            // COLOUR-1: the colour is in no queue until `done`.
            (of.runs, of.home) = (true, number);
            let ((importance, _), event) = of.events.pop_first()?;
            Some(Taken { colour, importance, event })
        })
    }

    /// Called when a loop has called the event that it took. `again`: the event must be called
    /// again with that importance, after those of its colour with the same importance.
    pub fn done(&self, number: usize, colour: u64, again: Option<(u64, T)>) -> Next<B> {
        self.with(|state| {
            if let Some(of) = state.colours.get_mut(&colour) {
                of.runs = false;
                if let Some((importance, event)) = again {
                    state.turn += 1;
                    of.events.insert((importance, state.turn), event);
                }
                match of.events.first_key_value() {
                    Some((&place, _)) => state.make_ready(number, place, colour),
                    None => {
                        state.colours.remove(&colour);
                    }
                }
            }
            let importance = state.importance(number);
            let seat = &mut state.loops[number];
            (seat.idle, seat.stands) = (importance.is_none(), importance.unwrap_or(0));
            // The loop takes one of them itself.
            let several = seat.ready.len() > 1;
            Next { wake: if several { state.idler() } else { None }, importance }
        })
    }
}

impl<T, B: Clone> State<T, B> {
    /// Adds an event to its colour; returns whether the colour is new.
    fn insert(&mut self, colour: u64, place: Place, event: T) -> bool {
        let home = (colour % self.loops.len() as u64) as usize;
        let is_new = !self.colours.contains_key(&colour);
        let new = || Colour { events: BTreeMap::new(), home, runs: false };
        let of = self.colours.entry(colour).or_insert_with(new);
        let first = of.events.first_key_value().map(|(&first, _)| first);
        of.events.insert(place, event);
        // COLOUR-1: a running colour is in no queue.
        if !of.runs && first.is_none_or(|first| place < first) {
            let home = of.home;
            let Some(first) = first else {
                self.make_ready(home, place, colour);
                return is_new;
            };
            self.loops[home].ready.remove(&first);
            self.loops[home].ready.insert(place, colour);
        }
        is_new
    }

    /// Makes a colour ready that was not, on loop `number`.
    fn make_ready(&mut self, number: usize, place: Place, colour: u64) {
        let seat = &mut self.loops[number];
        if seat.ready.is_empty() {
            seat.since = self.turn;
        }
        seat.ready.insert(place, colour);
    }

    /// Returns the first event that a loop has not looked at for long, or never will, and that
    /// loop.
    fn left(&self) -> Option<(Place, usize)> {
        let long = PATIENCE * self.loops.len() as u64;
        let is_left = |seat: &Seat<B>| seat.bell.is_none() || seat.since + long <= self.turn;
        let left = self.loops.iter().enumerate().filter(|(_, seat)| is_left(seat));
        left.filter_map(|(at, seat)| Some((*seat.ready.first_key_value()?.0, at))).min()
    }

    /// Returns the loop from whose colours loop `number` must take: its own, unless it has none,
    /// another has at least two more (COLOUR-4), or has left an event that goes before all of them
    /// (COLOUR-3).
    fn source(&self, number: usize) -> Option<usize> {
        let own = self.loops[number].ready.len();
        if let (Some((place, at)), Some((first, _))) =
            (self.left(), self.loops[number].ready.first_key_value())
            && place < *first
        {
            return Some(at);
        }
        let all = self.loops.iter().enumerate().map(|(at, seat)| (seat.ready.len(), Reverse(at)));
        let (most, Reverse(at)) = all.max()?;
        if own > 0 && most <= own + 1 {
            return Some(number);
        }
        (most > 0).then_some(at)
    }

    /// Returns the importance of the event that the loop must take next.
    fn importance(&self, number: usize) -> Option<u64> {
        let from = self.source(number)?;
        self.loops[from].ready.first_key_value().map(|((importance, _), _)| *importance)
    }

    /// Notifies a loop of its first event, if it does not know of it. If that loop is gone,
    /// notifies the one whose entry is the least important.
    fn tell(&mut self, number: usize) -> Option<Call<B>> {
        let is_there = |number: &usize| self.loops[*number].bell.is_some();
        let last = || {
            let there = (0..self.loops.len()).filter(is_there);
            there.max_by_key(|&number| self.loops[number].stands)
        };
        let number = Some(number).filter(is_there).or_else(last)?;
        let importance = self.importance(number)?;
        let seat = &mut self.loops[number];
        let was_idle = core::mem::take(&mut seat.idle);
        if !was_idle && importance >= seat.stands {
            return None;
        }
        seat.stands = importance;
        seat.bell.clone().map(|bell| Call { bell, importance, was_idle })
    }

    /// Notifies a loop that is idle, if there is one.
    fn idler(&mut self) -> Option<Call<B>> {
        let idle = self.loops.iter().position(|seat| seat.idle)?;
        self.tell(idle)
    }
}
