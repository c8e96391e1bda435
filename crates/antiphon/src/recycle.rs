//! Recycling of values, for memory that one thread fills and another releases.
//!
//! An allocator gives each thread its own memory. If one task makes buffers and other workers free
//! them, each buffer goes back to the thread that it came from, under a lock, and from one CPU's
//! cache to the other's. A [`Recycler`] keeps released values on the thread that released them, and
//! moves them between threads in batches.
//!
//! ```
//! use antiphon::pool::Pool;
//! use antiphon::recycle::Recycler;
//!
//! static PACKETS: Recycler<Vec<u8>> = Recycler::new(Vec::new, Vec::clear);
//!
//! let pool = Pool::new(2)?;
//! pool.scope(|scope| {
//!     for number in 0..100 {
//!         let mut packet = PACKETS.take(); // empty; its memory is that of one before
//!         packet.resize(2000, number);
//!         scope.spawn(move || assert_eq!(packet[1999], number));
//!     }
//! });
//! assert!(PACKETS.spare() > 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! After the magazines of Bonwick and Adams (USENIX ATC 2001), which belong to CPUs there and to
//! threads here.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;

use crate::{Mutex, MutexGuard};

/// Keeps released values for their next users. Meant for a `static`.
///
/// | field | used by | content |
/// |---|---|---|
/// | `shelves` | threads with one number modulo 64 | about 64 spare values, the last at the end |
/// | `depot` | all threads | batches of 32 spare values |
///
/// It keeps as many values as were ever in use at the same time, until it is
/// [trimmed](Self::trim) or dropped.
pub struct Recycler<T> {
    make: fn() -> T,
    reset: fn(&mut T),
    shelves: [Shelf<T>; SHELVES],
    depot: Mutex<Vec<Vec<T>>>,
}

/// Aligned, so that threads with different shelves don't share cache lines.
#[repr(align(128))]
struct Shelf<T>(Mutex<Vec<T>>);

/// A value of a [`Recycler`]. It goes back when this is dropped, on any thread.
pub struct Recycled<'a, T> {
    value: ManuallyDrop<T>,
    of: &'a Recycler<T>,
}

const SHELVES: usize = 64;
/// The number of values that move between a shelf and the depot at a time. A shelf with twice as
/// many gives a batch away.
const BATCH: usize = 32;

impl<T> Recycler<T> {
    /// Creates a recycler without spare values. `make` makes a value if there is no spare one, and
    /// `reset` prepares a released value for its next user: `Recycler::new(Vec::new, Vec::clear)`.
    /// A value whose `reset` panics is dropped.
    #[must_use]
    pub const fn new(make: fn() -> T, reset: fn(&mut T)) -> Self {
        let shelves = [const { Shelf(Mutex::new(Vec::new())) }; SHELVES];
        Self { make, reset, shelves, depot: Mutex::new(Vec::new()) }
    }

    /// Takes the spare value that the calling thread released last, or another spare value, or
    /// makes one. Waits for other threads only while one of them puts or takes a value.
    ///
    /// # Panics
    ///
    /// If `make` panics.
    pub fn take(&self) -> Recycled<'_, T> {
        let value = self.take_spare().unwrap_or_else(self.make);
        Recycled { value: ManuallyDrop::new(value), of: self }
    }

    fn take_spare(&self) -> Option<T> {
        let spare = self.shelf().pop();
        // The two locks are never held together, and nothing is dropped under one.
        spare.or_else(|| {
            let mut batch = self.depot.lock().pop()?;
            let spare = batch.pop();
            self.shelf().append(&mut batch);
            spare
        })
    }

    fn give_back(&self, mut value: T) {
        (self.reset)(&mut value);
        let full = {
            let mut shelf = self.shelf();
            shelf.push(value);
            // The oldest values go: the last used ones stay where they were used.
            (shelf.len() >= 2 * BATCH).then(|| shelf.drain(..BATCH).collect())
        };
        if let Some(batch) = full {
            self.depot.lock().push(batch);
        }
    }

    /// Locks the calling thread's shelf.
    fn shelf(&self) -> MutexGuard<'_, Vec<T>> {
        self.shelves[Linux::thread().0 as usize % SHELVES].0.lock()
    }

    /// Returns the number of spare values. It may be out of date at once.
    #[must_use]
    pub fn spare(&self) -> usize {
        let on_shelves: usize = self.shelves.iter().map(|shelf| shelf.0.lock().len()).sum();
        on_shelves + self.depot.lock().iter().map(Vec::len).sum::<usize>()
    }

    /// Drops all spare values.
    pub fn trim(&self) {
        for shelf in &self.shelves {
            let values = std::mem::take(&mut *shelf.0.lock());
            drop(values);
        }
        let batches = std::mem::take(&mut *self.depot.lock());
        drop(batches);
    }
}

impl<T> Recycled<'_, T> {
    /// Returns the value, which does not go back to the recycler.
    #[must_use]
    pub fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken only here, because `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.value) }
    }
}

impl<T> Drop for Recycled<'_, T> {
    fn drop(&mut self) {
        // SAFETY: it is taken only here, and not used after the drop.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        self.of.give_back(value);
    }
}

impl<T> Deref for Recycled<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Recycled<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Recycled<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for Recycler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recycler").field("spare", &self.spare()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    fn address(value: &Recycled<'_, Vec<u8>>) -> usize {
        value.as_ptr().addr()
    }

    fn buffer() -> Vec<u8> {
        Vec::with_capacity(100)
    }

    #[test]
    fn what_was_used_last_is_used_again_and_reset() {
        let recycler = Recycler::new(buffer, Vec::clear);
        let mut first = recycler.take();
        first.push(1);
        let was = address(&first);
        drop(first);
        assert_eq!(recycler.spare(), 1);
        let again = recycler.take();
        assert_eq!((address(&again), again.len(), recycler.spare()), (was, 0, 0));
        assert_eq!(again.into_inner().capacity(), 100);
        assert_eq!(recycler.spare(), 0);
    }

    #[test]
    fn what_one_thread_has_too_much_of_goes_to_others() {
        let recycler = Recycler::new(buffer, Vec::clear);
        let many = || (0..3 * BATCH).map(|_| recycler.take()).collect::<Vec<_>>();
        let end = || many().iter().map(address).collect::<BTreeSet<_>>();
        let first = thread::scope(|scope| scope.spawn(end).join().expect("it ends"));
        assert_eq!(recycler.spare(), 3 * BATCH);
        let again = many();
        let known = again.iter().filter(|buffer| first.contains(&address(buffer))).count();
        assert!(known >= BATCH, "{known}");
    }

    #[test]
    fn each_value_has_one_user() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let recycler = Recycler::new(|| Cell::new(MADE.fetch_add(1, Relaxed)), |_| {});
        let hold = |count| {
            let all: Vec<_> = (0..count).map(|_| recycler.take()).collect();
            let numbers: BTreeSet<_> = all.iter().map(|one| one.get()).collect();
            assert_eq!(numbers.len(), count);
        };
        thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || (0..200).for_each(|round| hold((seed + round * 7) % 100)));
            }
        });
        assert_eq!(recycler.spare(), MADE.load(Relaxed), "none is lost");
        assert!(MADE.load(Relaxed) <= 4 * 100 + SHELVES * 2 * BATCH);
        recycler.trim();
        assert_eq!(recycler.spare(), 0);
    }

    #[test]
    fn a_value_whose_reset_panics_is_dropped() {
        let recycler = Recycler::new(buffer, |_| panic!("it can't be reset"));
        let used = recycler.take();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(used))).is_err());
        assert_eq!(recycler.spare(), 0);
        drop(recycler.take().into_inner());
    }
}
