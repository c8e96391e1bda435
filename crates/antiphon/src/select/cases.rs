//! The cases of a select, as a type: one source after another, each with its closure.

use std::sync::mpsc::{RecvError, SendError};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::select::{Awaits, Holds, Receives, Sends, Source, Stand};
use antiphon_sync::wait::Several;

use crate::cancel::Token;
use crate::pool::or_lost;
use crate::promise::Broken;
use crate::{Event, Latch};

/// Things to wait for, and what is done then: made by the methods of [`Select`](super::Select).
pub trait Cases<R>: sealed::Cases<R> {}

impl<R, C: sealed::Cases<R>> Cases<R> for C {}

/// These, and one more.
#[derive(Debug)]
pub struct And<C, S, F> {
    pub(super) before: C,
    pub(super) source: S,
    pub(super) then: F,
}

/// These, and several more of one kind.
#[derive(Debug)]
pub struct Each<C, S, F> {
    pub(super) before: C,
    pub(super) sources: Vec<S>,
    pub(super) then: F,
}

pub(super) mod sealed {
    use super::{Linux, Source};

    pub trait Cases<R> {
        /// How many there are.
        fn count(&self) -> usize;

        /// The one of this number.
        fn source(&self, number: usize) -> &dyn Source<Linux>;

        /// Runs the closure of the one that was chosen.
        fn end(self, number: usize) -> R;
    }

    /// Of a source that was chosen, what its closure has.
    pub trait Then<R, F> {
        fn then(self, then: F) -> R;
    }

    /// The same, of several.
    pub trait ThenOf<R, F> {
        fn then_of(self, number: usize, then: F) -> R;
    }
}

use sealed::{Then, ThenOf};

/// No cases.
impl<R> sealed::Cases<R> for () {
    fn count(&self) -> usize {
        0
    }

    fn source(&self, _: usize) -> &dyn Source<Linux> {
        unreachable!("there is none")
    }

    fn end(self, _: usize) -> R {
        unreachable!("there is none")
    }
}

impl<R, C, S, F> sealed::Cases<R> for And<C, S, F>
where
    C: sealed::Cases<R>,
    S: Source<Linux> + Then<R, F>,
{
    fn count(&self) -> usize {
        self.before.count() + 1
    }

    fn source(&self, number: usize) -> &dyn Source<Linux> {
        if number < self.before.count() { self.before.source(number) } else { &self.source }
    }

    fn end(self, number: usize) -> R {
        if number < self.before.count() {
            self.before.end(number)
        } else {
            self.source.then(self.then)
        }
    }
}

impl<R, C, S, F> sealed::Cases<R> for Each<C, S, F>
where
    C: sealed::Cases<R>,
    S: Source<Linux> + ThenOf<R, F>,
{
    fn count(&self) -> usize {
        self.before.count() + self.sources.len()
    }

    fn source(&self, number: usize) -> &dyn Source<Linux> {
        match number.checked_sub(self.before.count()) {
            Some(of_these) => &self.sources[of_these],
            None => self.before.source(number),
        }
    }

    fn end(mut self, number: usize) -> R {
        match number.checked_sub(self.before.count()) {
            Some(of_these) => self.sources.swap_remove(of_these).then_of(of_these, self.then),
            None => self.before.end(number),
        }
    }
}

fn received<T>(source: Receives<'_, Linux, T>) -> Result<T, RecvError> {
    source.into_received().expect("it was chosen").map_err(|_| RecvError)
}

impl<R, T, F: FnOnce(Result<T, RecvError>) -> R> Then<R, F> for Receives<'_, Linux, T> {
    fn then(self, then: F) -> R {
        then(received(self))
    }
}

impl<R, T, F: FnOnce(usize, Result<T, RecvError>) -> R> ThenOf<R, F> for Receives<'_, Linux, T> {
    fn then_of(self, number: usize, then: F) -> R {
        then(number, received(self))
    }
}

impl<R, T, F: FnOnce(Result<(), SendError<()>>) -> R> Then<R, F> for Sends<'_, Linux, T> {
    fn then(self, then: F) -> R {
        then(if self.is_refused() { Err(SendError(())) } else { Ok(()) })
    }
}

impl<R, F: FnOnce() -> R> Then<R, F> for Deadline {
    fn then(self, then: F) -> R {
        then()
    }
}

impl<R, W, F: FnOnce() -> R> Then<R, F> for Holds<'_, Linux, W> {
    fn then(self, then: F) -> R {
        then()
    }
}

impl<R, T, F> Then<R, F> for Awaits<'_, Linux, thread::Result<T>>
where
    F: FnOnce(thread::Result<T>) -> R,
{
    fn then(self, then: F) -> R {
        then(or_lost(self.into_returned()))
    }
}

/// The promised value.
#[derive(Debug)]
pub struct Promised<'a, T>(pub(super) Awaits<'a, Linux, T>);

impl<T> Source<Linux> for Promised<'_, T> {
    fn try_take(&self) -> bool {
        self.0.try_take()
    }

    fn stand<'a>(&'a self, several: &'a Several<Linux>) -> Option<Stand<'a, Linux>> {
        self.0.stand(several)
    }
}

impl<R, T, F: FnOnce(Result<T, Broken>) -> R> Then<R, F> for Promised<'_, T> {
    fn then(self, then: F) -> R {
        then(self.0.into_returned().ok_or(Broken))
    }
}

/// For types of this crate that hold one of the runtime crate's, and nothing else.
macro_rules! as_inner {
    ($($name:ty),*) => {$(
        impl Source<Linux> for &$name {
            fn try_take(&self) -> bool {
                Source::try_take(self.inner())
            }

            fn stand<'a>(&'a self, several: &'a Several<Linux>) -> Option<Stand<'a, Linux>> {
                Source::stand(self.inner(), several)
            }

            fn deadline(&self) -> Option<Deadline> {
                Source::deadline(self.inner())
            }
        }

        impl<R, F: FnOnce() -> R> Then<R, F> for &$name {
            fn then(self, then: F) -> R {
                then()
            }
        }
    )*};
}

as_inner!(Event, Latch, Token);
