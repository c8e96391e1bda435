//! The cases of a select, as a type: one source after another, each with its closure.
//!
//! This module knows no source but a point in time. Each other type that a select waits for, such
//! as a channel or a promise, implements [`Then`] in its own module, beside the method of
//! [`Select`](super::Select) that adds such a case.

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::select::Source;

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
    use antiphon_linux::Linux;
    use antiphon_runtime::select::Source;

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

pub(crate) use sealed::{Then, ThenOf};

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

impl<R, F: FnOnce() -> R> Then<R, F> for Deadline {
    fn then(self, then: F) -> R {
        then()
    }
}

/// Makes references to types of this crate sources that hold one of the runtime crate's, and
/// nothing else. The module that uses it imports [`Then`].
macro_rules! as_inner {
    ($($name:ty),*) => {$(
        const _: () = {
            use antiphon_linux::Linux;
            use antiphon_platform::Deadline;
            use antiphon_runtime::select::{Source, Stand};
            use antiphon_sync::wait::Several;

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
        };

        impl<R, F: FnOnce() -> R> Then<R, F> for &$name {
            fn then(self, then: F) -> R {
                then()
            }
        }
    )*};
}

pub(crate) use as_inner;
