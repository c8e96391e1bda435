//! The k-FIFO queue: any thread puts items in and takes them out, and an item that is taken is one
//! of the `k` oldest.
//!
//! | lines | field | meaning |
//! |---|---|---|
//! | 0–1 | `head` | the number of the segment from which items are taken |
//! | 2–3 | `tail` | the number of the segment into which items are put |
//! | | `cells` | `k` for each segment; segments `n` and `n + segments` share a place |
//!
//! A cell has a word and an item. The word is the number of a segment, and in its lowest 2 bits:
//!
//! | bits | the cell is | next |
//! |---|---|---|
//! | 0 | free in segment `n` and in later ones | claimed, by a producer |
//! | 1 | claimed in `n` | filled, by its claimer; burnt, by a thread that would pass it |
//! | 2 | filled in `n` | free in `n + 1`, by the consumer |
//! | 3 | burnt in `n` | burnt in a later one, by a finder; free in `n + 1`, by its claimer |
//!
//! Numbers are never used again (2⁶² of them outlast any machine), so a word is unambiguous. A word
//! of 0 is free.
//!
//! - KF-1: a cell's word only grows. Only the thread that has claimed the cell writes the item,
//!   until the cell is free again.
//! - KF-2: `tail` moves on from `n` when no cell is free for `n` or will be. So a thread that puts
//!   an item into `n` has claimed its cell before that, and each cell is claimed once: a segment
//!   never has more than `k` items.
//! - KF-3: `head` moves on from `n`, at most to the segment of `tail`, when no cell is filled or
//!   claimed in `n`. So no item is left in `n`, and none will come.
//! - KF-4: an item that is taken is in the segment `head`: at most `k - 1` older items are still
//!   there, and at most `k - 1` items overtake an item. With `k = 1` it is a strict FIFO queue.
//! - KF-5: no thread waits longer than `PATIENCE` for a stopped thread: the stopped thread's cell
//!   is burnt, and it puts its item elsewhere.
//! - KF-6: two passes over all cells of a segment that give the same sum have seen the same words.
//!   So the queue was empty between the two, if both saw it empty and `head` equals `tail`.
//!
//! Segments and their bound are from Kirsch, Lippautz and Payer, "Fast and scalable, lock-free
//! k-FIFO queues" (PaCT 2013). There an item is put in by one exchange, and a thread that then
//! finds that its segment was passed takes it out again; here a cell is claimed first.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

use super::{Full, Item, Lines, Lot};

/// A bounded queue of many producers and many consumers, in which at most `k - 1` other items
/// overtake an item.
pub struct KFifo<P: Platform> {
    head: Lines<P::U64>,
    tail: Lines<P::U64>,
    cells: Box<[Cell<P>]>,
    k: usize,
}

/// A cell on a separate cache line, because other threads use its neighbours.
#[repr(C, align(64))]
struct Cell<P: Platform> {
    state: P::U64,
    item: P::U64,
}

/// How long to wait for a thread that has claimed a cell.
const PATIENCE: Budget = Budget::ns(2_000);

/// A cell's word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free(u64),
    Claimed(u64),
    Filled(u64),
    Burnt(u64),
}

impl State {
    const fn of(word: u64) -> Self {
        match word & 3 {
            0 => Self::Free(word >> 2),
            1 => Self::Claimed(word >> 2),
            2 => Self::Filled(word >> 2),
            _ => Self::Burnt(word >> 2),
        }
    }

    const fn word(self) -> u64 {
        match self {
            Self::Free(number) => number << 2,
            Self::Claimed(number) => number << 2 | 1,
            Self::Filled(number) => number << 2 | 2,
            Self::Burnt(number) => number << 2 | 3,
        }
    }
}

impl<P: Platform> KFifo<P> {
    /// An empty queue with room for at least `capacity` items, in segments of `k`.
    ///
    /// # Panics
    ///
    /// If `k` is zero, or either is above 2²⁰.
    #[must_use]
    pub fn new(capacity: usize, k: usize) -> Self {
        assert!(k > 0 && k.max(capacity) <= 1 << 20, "{capacity} items in segments of {k}");
        let segments = (capacity.div_ceil(k) + 1).max(2).next_power_of_two();
        let cell = |_| Cell { state: P::U64::ZERO, item: P::U64::ZERO };
        Self {
            head: Lines(P::U64::ZERO),
            tail: Lines(P::U64::ZERO),
            cells: (0..segments * k).map(cell).collect(),
            k,
        }
    }

    /// Puts an item into a cell of the segment, chosen by `lot`.
    ///
    /// # Errors
    ///
    /// If there is no room: all segments have items.
    pub fn push(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        loop {
            // Acquire: KF-2, for `pass`; pairs with the release in `moves_on`.
            let tail = self.tail.0.load(Acquire);
            if self.cells(tail, lot).any(|cell| cell.claim(tail) && cell.fill(tail, item)) {
                return Ok(());
            }
            if !self.moves_on(tail) {
                return Err(Full(item));
            }
        }
    }

    /// Takes an item out of a cell of the segment, chosen by `lot`. Returns `None` if at some
    /// moment of the call the queue had no items, except those that producers were about to add.
    pub fn pop(&self, lot: &mut Lot) -> Option<Item> {
        loop {
            // Acquire: what the thread that moved the head has seen of the tail; pairs with the
            // release in `pass`.
            let head = self.head.0.load(Acquire);
            let mut sum = 0_u64;
            for cell in self.cells(head, lot) {
                match cell.take(head) {
                    Ok(item) => return Some(item),
                    Err(word) => sum = sum.wrapping_add(word),
                }
            }
            // Acquire: KF-2, for `pass`; pairs with the release in `moves_on`.
            if self.tail.0.load(Acquire) > head {
                self.pass(head);
            } else if self.cells(head, lot).map(Cell::word).fold(0, u64::wrapping_add) == sum {
                // KF-6
                return None;
            }
        }
    }

    /// Returns whether the queue seems to be empty; may be stale at once.
    pub fn is_empty(&self) -> bool {
        // Relaxed, all: a guess.
        let (head, tail) = (self.head.0.load(Relaxed), self.tail.0.load(Relaxed));
        let filled = |cell: &Cell<P>| State::of(cell.state.load(Relaxed)) == State::Filled(head);
        head == tail && !self.segment(head).iter().any(filled)
    }

    fn segments(&self) -> u64 {
        (self.cells.len() / self.k) as u64
    }

    fn segment(&self, number: u64) -> &[Cell<P>] {
        let place = (number & (self.segments() - 1)) as usize;
        &self.cells[place * self.k..][..self.k]
    }

    /// Returns the cells of a segment, starting at one chosen by `lot`.
    fn cells(&self, number: u64, lot: &mut Lot) -> impl Iterator<Item = &Cell<P>> {
        let (before, from) = self.segment(number).split_at(lot.below(self.k));
        from.iter().chain(before)
    }

    /// Moves the tail on from a segment without a free cell; returns `false` if there is no room.
    fn moves_on(&self, tail: u64) -> bool {
        // Acquire: the cells of `tail + 1` as they were passed; pairs with the release in `pass`.
        let head = self.head.0.load(Acquire);
        if tail + 1 >= head + self.segments() && !self.pass(head) {
            return false;
        }
        // Release: that no cell is free; pairs with the acquires in `push` and `pop`. If it fails,
        // another thread has moved the tail.
        let _ = self.tail.0.compare_exchange(tail, tail + 1, Release, Relaxed);
        true
    }

    /// KF-3: moves the head on, which is not the tail; returns `false` if its segment has an item.
    fn pass(&self, head: u64) -> bool {
        if !self.segment(head).iter().all(|cell| cell.is_over(head)) {
            return false;
        }
        // Release: the tail and the cells that we have seen; pairs with the acquires in `pop` and
        // `moves_on`. If it fails, another thread has moved the head.
        let _ = self.head.0.compare_exchange(head, head + 1, Release, Relaxed);
        true
    }
}

impl<P: Platform> Cell<P> {
    fn word(&self) -> u64 {
        // Acquire: KF-6, what was done before the cell got this word; pairs with the releases
        // below.
        self.state.load(Acquire)
    }

    /// KF-1: claims the cell for a segment; returns whether it was free. If not, it will not be
    /// free again for this segment (KF-2): that it was passed in an older segment has been acquired
    /// with the tail.
    fn claim(&self, number: u64) -> bool {
        // Relaxed, here and below: the exchange checks it.
        let mut word = self.state.load(Relaxed);
        loop {
            let (then, is_ours) = match State::of(word) {
                State::Free(from) if from <= number => (State::Claimed(number), true),
                State::Burnt(from) if from < number => (State::Burnt(number), false),
                _ => return false,
            };
            // Acquire: the item is no longer read or written; pairs with the releases below.
            match self.state.compare_exchange(word, then.word(), Acquire, Relaxed) {
                Ok(_) => return is_ours,
                Err(now) => word = now,
            }
        }
    }

    /// Fills the cell that the caller has claimed; returns `false` if it was burnt, and is free
    /// again.
    fn fill(&self, number: u64, item: Item) -> bool {
        let [claimed, filled] = [State::Claimed(number), State::Filled(number)].map(State::word);
        // Relaxed: published by the exchange.
        self.item.store(item.word(), Relaxed);
        // Release: the item; pairs with the acquire in `take`.
        match self.state.compare_exchange(claimed, filled, Release, Relaxed) {
            Ok(_) => return true,
            Err(burnt) => self.give_back(burnt),
        }
        false
    }

    /// Frees a burnt cell that the caller has claimed.
    fn give_back(&self, mut word: u64) {
        while let State::Burnt(number) = State::of(word) {
            let free = State::Free(number + 1).word();
            // Release: the item is written; pairs with the acquire in `claim`.
            match self.state.compare_exchange(word, free, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the item, if the cell is filled in the segment `number`; otherwise returns the cell's
    /// word.
    fn take(&self, number: u64) -> Result<Item, u64> {
        // Acquire, by `word`: the item.
        let word = self.word();
        if word != State::Filled(number).word() {
            return Err(word);
        }
        // Relaxed: it was acquired.
        let item = Item::new(self.item.load(Relaxed));
        let free = State::Free(number + 1).word();
        // Release: the item is read; pairs with the acquire in `claim`. Also what came before, for
        // `word`. Acquire, if it fails: as in `word`.
        self.state.compare_exchange(word, free, Release, Acquire)?;
        item.ok_or(free)
    }

    /// Returns whether the cell has no item in the segment `number`, and will get none.
    fn is_over(&self, number: u64) -> bool {
        let claimed = State::Claimed(number).word();
        // Relaxed, all: KF-2 was acquired with the tail.
        let mut word = self.state.load(Relaxed);
        while word == claimed {
            word = match self.state.spin_while(Relaxed, PATIENCE, |now| now == claimed) {
                Ok(now) => now,
                // KF-5
                Err(_) => self.burn(number),
            };
        }
        word != State::Filled(number).word()
    }

    /// Takes the cell from the thread that has claimed it; returns the cell's word.
    fn burn(&self, number: u64) -> u64 {
        let [claimed, burnt] = [State::Claimed(number), State::Burnt(number)].map(State::word);
        // Relaxed: the caller has done nothing else to the cell.
        self.state
            .compare_exchange(claimed, burnt, Relaxed, Relaxed)
            .map_or_else(|now| now, |_| burnt)
    }
}
