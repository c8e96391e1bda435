//! Values of threads.
//!
//! A key has a place for each thread, by the thread's number. A value is made when its thread asks
//! for it first, and dropped at the end of that thread, if [`spawn`](crate::thread::spawn) has
//! started it.

use core::cell::Cell;
use core::fmt;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;
use memory::boxed::Box;

use antiphon_metal::kernel::cpu;

/// The greatest number of a thread that has values, exclusive.
pub const MOST: usize = 2048;

/// A key, made by [`thread_local!`](crate::thread_local).
pub struct LocalKey<T: 'static> {
    make: fn() -> T,
    places: &'static [AtomicPtr<T>; MOST],
}

/// The thread has ended its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

/// The last value of a thread that was made; each names the one that was made before it.
struct End {
    /// Drops the value of the thread of this number.
    drop: fn(*const (), usize),
    key: *const (),
    next: *mut End,
}

static ENDS: [AtomicPtr<End>; MOST] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST];

impl<T: 'static> LocalKey<T> {
    /// For the macro.
    #[doc(hidden)]
    pub const fn new(make: fn() -> T, places: &'static [AtomicPtr<T>; MOST]) -> Self {
        Self { make, places }
    }

    /// Calls `ask` with the value of the calling thread.
    #[inline]
    pub fn with<R>(&'static self, ask: impl FnOnce(&T) -> R) -> R {
        let number = cpu::current().number() as usize;
        // Relaxed: only this thread uses the place.
        let value = self.places[number].load(Relaxed);
        let value = if value.is_null() { self.make(number) } else { value };
        // SAFETY: dropped at the end of this thread.
        ask(unsafe { &*value })
    }

    /// Like [`with`](Self::with); never fails.
    pub fn try_with<R>(&'static self, ask: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        Ok(self.with(ask))
    }

    #[cold]
    fn make(&'static self, number: usize) -> *mut T {
        let value = Box::into_raw(Box::new((self.make)()));
        self.places[number].store(value, Relaxed);
        // Relaxed, both: only this thread uses its ends.
        let next = ENDS[number].load(Relaxed);
        let end = End { drop: Self::end, key: ptr::from_ref(self).cast(), next };
        ENDS[number].store(Box::into_raw(Box::new(end)), Relaxed);
        value
    }

    fn end(key: *const (), number: usize) {
        // SAFETY: made of a key of this type, which is static.
        let key = unsafe { &*key.cast::<Self>() };
        let value = key.places[number].swap(ptr::null_mut(), Relaxed);
        if !value.is_null() {
            // SAFETY: made by `make`, and taken out here.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: Copy + 'static> LocalKey<Cell<T>> {
    /// A copy of the calling thread's value.
    #[inline]
    pub fn get(&'static self) -> T {
        self.with(Cell::get)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey")
    }
}

/// Drops the values of the calling thread, the last first, and those that are made meanwhile.
pub(crate) fn end_all() {
    let number = cpu::current().number() as usize;
    loop {
        let end = ENDS[number].load(Relaxed);
        if end.is_null() {
            return;
        }
        // SAFETY: made by `make`, and taken off the list here.
        let end = unsafe { Box::from_raw(end) };
        ENDS[number].store(end.next, Relaxed);
        (end.drop)(end.key, number);
    }
}

/// Declares values of threads.
#[macro_export]
macro_rules! thread_local {
    () => {};
    (
        $(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = const $make:block
        $(; $($rest:tt)*)?
    ) => {
        $crate::thread_local!($(#[$attribute])* $visible static $name: $type = $make);
        $($crate::thread_local!($($rest)*);)?
    };
    (
        $(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $make:expr
        $(; $($rest:tt)*)?
    ) => {
        $(#[$attribute])*
        $visible static $name: $crate::thread::LocalKey<$type> = {
            use $crate::sync::atomic::AtomicPtr;
            static PLACES: [AtomicPtr<$type>; $crate::thread::MOST] =
                [const { AtomicPtr::new($crate::ptr::null_mut()) }; $crate::thread::MOST];
            $crate::thread::LocalKey::new(|| $make, &PLACES)
        };
        $($crate::thread_local!($($rest)*);)?
    };
}
