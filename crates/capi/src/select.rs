//! The C interface of `antiphon_select`: waits for the first of several cases.

use core::ffi::{c_int, c_void};

use antiphon::fiber::may_be_ready;
use antiphon_linux::Linux;
use antiphon_platform::{Deadline, Platform as _};
use antiphon_runtime::cancel;
use antiphon_runtime::select::{self, Awaits, Lot, Receives, Sends, Source, Sources, Stand};
use antiphon_sync::wait::{self, Several};
use libc::{EAGAIN, EINVAL, EPIPE, ETIMEDOUT, timespec};

use crate::channel::Channel;
use crate::code::timed;
use crate::event::{Event, Latch};
use crate::export::exports;
use crate::item::Item;
use crate::promise::{Awaited, Value};
use crate::token::Token;

/// `antiphon_case_t`.
#[repr(C)]
pub struct Case {
    kind: c_int,
    code: c_int,
    object: *mut c_void,
    item: *mut c_void,
}

// `enum antiphon_case_kind`.
const NEVER: c_int = 0;
const RECV: c_int = 1;
const SEND: c_int = 2;
const EVENT: c_int = 3;
const LATCH: c_int = 4;
const TOKEN: c_int = 5;
const AWAITED: c_int = 6;

/// The number of cases that need no allocation.
const FEW: usize = 8;

/// A case as a source to wait for.
enum Each<'a> {
    Never(wait::Latch<Linux>),
    Receives(Receives<'a, Linux, Item>),
    Sends(Sends<'a, Linux, Item>),
    Event(&'a wait::Event<Linux>),
    Latch(&'a wait::Latch<Linux>),
    Token(&'a cancel::Token<Linux>),
    Awaits(Awaits<'a, Linux, Value>),
    /// The awaited value was received before: the case is ready.
    Had,
}

impl<'a> Each<'a> {
    /// Returns `None` for an unknown kind. An item to send is stored in `value`.
    ///
    /// # Safety
    ///
    /// The object is of the case's kind, and object and item live for `'a`.
    unsafe fn new(case: &Case, value: &'a mut Option<Item>) -> Option<Self> {
        let Case { kind, object, item, .. } = *case;
        // SAFETY: the caller's promise, for all kinds.
        Some(unsafe {
            match kind {
                NEVER => Self::Never(wait::Latch::new(1)),
                RECV => Self::Receives(Receives::new(&(*object.cast::<Channel>()).items)),
                SEND => {
                    let channel = &*object.cast::<Channel>();
                    *value = Some(channel.shape.copy_in(item));
                    Self::Sends(Sends::new(&channel.items, value))
                }
                EVENT => Self::Event(&(*object.cast::<Event>()).0),
                LATCH => Self::Latch(&(*object.cast::<Latch>()).0),
                TOKEN => Self::Token(&(*object.cast::<Token>()).0),
                AWAITED => match (*object.cast::<Awaited>()).waits() {
                    Some(awaited) => Self::Awaits(Awaits::new(awaited.handle())),
                    None => Self::Had,
                },
                _ => return None,
            }
        })
    }

    /// Returns `None` if the case is ready already.
    fn source(&self) -> Option<&dyn Source<Linux>> {
        Some(match self {
            Self::Never(latch) => latch,
            Self::Receives(it) => it,
            Self::Sends(it) => it,
            Self::Event(it) => *it,
            Self::Latch(it) => *it,
            Self::Token(it) => *it,
            Self::Awaits(it) => it,
            Self::Had => return None,
        })
    }

    /// Ends the chosen case: writes its result to the caller's memory, and returns its code.
    ///
    /// # Safety
    ///
    /// `self` was made of that case.
    unsafe fn end(self, case: &Case) -> c_int {
        // SAFETY: by the promise of `new`, for all kinds.
        unsafe {
            match self {
                Self::Receives(it) => {
                    let received = it.into_received().expect("it was chosen");
                    (*case.object.cast::<Channel>()).received(received, case.item, EAGAIN)
                }
                Self::Sends(it) if it.is_refused() => EPIPE,
                Self::Awaits(it) => {
                    let awaited = case.object.cast::<Awaited>();
                    (*awaited).had(it.into_returned());
                    (*awaited).get(&mut *case.item.cast())
                }
                Self::Had => (*case.object.cast::<Awaited>()).get(&mut *case.item.cast()),
                _ => 0,
            }
        }
    }
}

impl Source<Linux> for Each<'_> {
    fn try_take(&self) -> bool {
        self.source().is_none_or(Source::try_take)
    }

    fn stand<'a>(&'a self, several: &'a Several<Linux>) -> Option<Stand<'a, Linux>> {
        self.source()?.stand(several)
    }

    fn deadline(&self) -> Option<Deadline> {
        self.source()?.deadline()
    }
}

/// All cases by number; each of them is `Some`.
struct All<'a, 'b>(&'b [Option<Each<'a>>]);

impl Sources<Linux> for All<'_, '_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn source(&self, number: usize) -> &dyn Source<Linux> {
        self.0[number].as_ref().expect("each was made")
    }
}

/// Returns places for `count` cases: in `few`, or, if that is too small, in `many`.
fn places<'a, T>(
    few: &'a mut [Option<T>],
    many: &'a mut Vec<Option<T>>,
    count: usize,
) -> &'a mut [Option<T>] {
    if count <= few.len() {
        return &mut few[..count];
    }
    many.resize_with(count, || None);
    many
}

/// Lets `wait` choose a case; stores its number, and returns its code, or `missed` if none was
/// chosen.
///
/// # Safety
///
/// `cases` points to `count` cases as the header defines them.
unsafe fn choose(
    cases: *mut Case,
    count: usize,
    chosen: &mut usize,
    missed: c_int,
    wait: impl FnOnce(&All<'_, '_>, &Lot) -> Option<usize>,
) -> c_int {
    if count == 0 {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    let cases = unsafe { core::slice::from_raw_parts_mut(cases, count) };
    let (mut few_values, mut many_values) = ([const { None }; FEW], Vec::new());
    let (mut few, mut many) = ([const { None }; FEW], Vec::new());
    let values = places(&mut few_values, &mut many_values, count);
    let sources = places(&mut few, &mut many, count);
    for ((case, value), source) in cases.iter().zip(values).zip(&mut *sources) {
        // SAFETY: the caller's promise.
        *source = unsafe { Each::new(case, value) };
        if source.is_none() {
            return EINVAL;
        }
    }
    let lot = Lot::new(Linux::random().into());
    let Some(number) = wait(&All(sources), &lot) else { return missed };
    let source = sources[number].take().expect("it was chosen");
    // SAFETY: the source was made of that case.
    cases[number].code = unsafe { source.end(&cases[number]) };
    *chosen = number;
    0
}

exports! {
    /// Waits for the first of several cases.
    fn antiphon_select(cases: *mut Case, count: usize, chosen: &mut usize) -> c_int {
        may_be_ready();
        let wait = |all: &All<'_, '_>, lot: &Lot| loop {
            let number = select::select(all, None, lot);
            if number.is_some() {
                return number;
            }
        };
        // SAFETY: the caller passes `count` cases.
        unsafe { choose(cases, count, chosen, EAGAIN, wait) }
    }

    /// Takes a case if one is ready.
    fn antiphon_tryselect(cases: *mut Case, count: usize, chosen: &mut usize) -> c_int {
        // SAFETY: the caller passes `count` cases.
        unsafe { choose(cases, count, chosen, EAGAIN, |all, lot| select::try_select(all, lot)) }
    }

    /// Waits for the first of several cases, or gives up at the deadline.
    fn antiphon_timedselect(
        cases: *mut Case,
        count: usize,
        chosen: &mut usize,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            may_be_ready();
            let wait = |all: &All<'_, '_>, lot: &Lot| select::select(all, Some(deadline), lot);
            // SAFETY: the caller passes `count` cases.
            unsafe { choose(cases, count, chosen, ETIMEDOUT, wait) }
        })
    }
}
