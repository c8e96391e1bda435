//! `Once`, `OnceLock` and `LazyLock`, as in the standard library, but never poisoned.

use std::cell::UnsafeCell;
use std::convert::Infallible;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

use antiphon_linux::Linux;
use antiphon_sync::wait;

/// Runs an initialization once, for all threads that need it. It takes 4 bytes.
///
/// A run that panics does not count: the next caller runs its own closure. A closure that calls the
/// same `Once` again deadlocks.
///
/// ```
/// static READY: antiphon::Once = antiphon::Once::new();
///
/// READY.call_once(|| println!("once"));
/// READY.call_once(|| unreachable!());
/// assert!(READY.is_completed());
/// ```
#[repr(transparent)]
pub struct Once(wait::Once<Linux>);

impl Once {
    /// Creates a `Once` that has not run.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::Once::NEW)
    }

    /// Runs `f` if no call has completed. Blocks while another call is in progress.
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        self.0.call_once(f);
    }

    /// Like [`call_once`](Self::call_once), but if `f` fails, the next caller runs its own closure.
    ///
    /// # Errors
    ///
    /// The error of `f`.
    #[inline]
    pub fn try_call_once<E>(&self, f: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.0.try_call_once(f)
    }

    /// Returns whether a call has completed. If so, its effects are visible.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.0.is_completed()
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("is_completed", &self.is_completed()).finish()
    }
}

/// A value that is set once, by the first thread that needs it. It takes 4 bytes besides the value.
///
/// ```
/// static HOME: antiphon::OnceLock<String> = antiphon::OnceLock::new();
///
/// assert_eq!(HOME.get(), None);
/// assert_eq!(HOME.get_or_init(|| "a house".to_owned()), "a house");
/// assert_eq!(HOME.set("a tent".to_owned()), Err("a tent".to_owned()));
/// ```
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads share `&T`, hence `Sync`; one thread may set the value and another drop it, hence
// `Send`. The value is written by one thread, before any other can see that it is set.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// A run that panics sets no value.
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates a cell without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Returns the value, if it has been set. Never blocks.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: `once` is completed, so the write of the value happens before; and no thread
        // writes it again.
        self.once.is_completed().then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Returns the value, if it has been set.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: `once` is completed, so the value was written; the borrow is the only one.
        self.once.is_completed().then(|| unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Sets the value if it is not set. Blocks while another thread sets it.
    ///
    /// # Errors
    ///
    /// `value`, if the cell has a value already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.once.call_once(|| {
            if let Some(value) = value.take() {
                // SAFETY: one thread at a time runs this, and no thread reads before it is
                // completed.
                unsafe { (*self.value.get()).write(value) };
            }
        });
        value.map_or(Ok(()), Err)
    }

    /// Returns the value; if it is not set, sets it to the result of `make`. Blocks while another
    /// thread makes it. If `make` panics, the cell stays empty.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let Ok(value) = self.get_or_try_init(|| Ok::<T, Infallible>(make()));
        value
    }

    /// Like [`get_or_init`](Self::get_or_init), but `make` may fail: then the cell stays empty.
    ///
    /// # Errors
    ///
    /// The error of `make`.
    #[inline]
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        self.once.try_call_once(|| {
            let value = make()?;
            // SAFETY: as in `set`.
            unsafe { (*self.value.get()).write(value) };
            Ok(())
        })?;
        // SAFETY: as in `get`: `try_call_once` returns when it is completed.
        Ok(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Takes the value out, and leaves the cell empty.
    pub fn take(&mut self) -> Option<T> {
        let set = std::mem::take(&mut self.once).is_completed();
        // SAFETY: the value was written, and the new `once` marks it as not set.
        set.then(|| unsafe { self.value.get_mut().assume_init_read() })
    }

    /// Returns the value, if it has been set.
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let lock = Self::new();
        lock.get_or_init(|| value);
        lock
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceLock").field(&self.get()).finish()
    }
}

/// A value that is made at the first use.
///
/// If the closure panics, there is no value, and the next use calls it again. So the closure must
/// be callable more than once (`Fn`).
///
/// ```
/// static WORDS: antiphon::LazyLock<Vec<&str>> =
///     antiphon::LazyLock::new(|| "a value on demand".split(' ').collect());
///
/// assert_eq!(WORDS.len(), 4);
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    make: F,
}

impl<T, F: Fn() -> T> LazyLock<T, F> {
    /// Creates the cell; `make` is not called yet.
    pub const fn new(make: F) -> Self {
        Self { value: OnceLock::new(), make }
    }

    /// Returns the value. Makes it at the first use; blocks while another thread makes it.
    #[inline]
    pub fn force(this: &Self) -> &T {
        this.value.get_or_init(&this.make)
    }
}

impl<T, F: Fn() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyLock").field(&self.value.get()).finish()
    }
}
