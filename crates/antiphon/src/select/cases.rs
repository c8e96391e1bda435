//! The cases of a select, as a type: one source after another, each with its closure.
//!
//! The only source in this module is a point in time. Each other type that a select waits for, such
//! as a channel or a promise, implements [`Then`] in its own module, next to the method of
//! [`Select`](super::Select) that adds such a case.

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::select::Source;

/// Sources to wait for, each with its closure; made by the methods of [`Select`](super::Select).
pub trait Cases<R>: sealed::Cases<R> {}

impl<R, C: sealed::Cases<R>> Cases<R> for C {}

/// The cases `before`, and one more.
#[derive(Debug)]
pub struct And<C, S, F> {
    pub(super) before: C,
    pub(super) source: S,
    pub(super) then: F,
}

/// The cases `before`, and several more with the same closure.
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
        /// Returns the number of cases.
        fn count(&self) -> usize;

        /// Returns the source of the case with this number.
        fn source(&self, number: usize) -> &dyn Source<Linux>;

        /// Runs the closure of the chosen case.
        fn end(self, number: usize) -> R;
    }

    /// A source that, when it is chosen, calls its closure with its result.
    pub trait Then<R, F> {
        fn then(self, then: F) -> R;
    }

    /// As [`Then`], for one of several sources with the same closure.
    pub trait ThenOf<R, F> {
        fn then_of(self, number: usize, then: F) -> R;
    }
}

pub(crate) use sealed::{Then, ThenOf};

/// A select without cases.
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

/// Implements sources for references to types of this crate, through the type of the runtime crate
/// that they wrap (`inner`). The module that uses it must import [`Then`].
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
