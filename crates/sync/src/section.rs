//! Critical sections of locks, told to a platform that heeds them
//! ([`heeds_sections`](antiphon_platform::Hints::heeds_sections)).
//!
//! A lock begins a section once it is acquired, and ends it before the releasing store: whatever
//! the release goes on to do, such as a system call that wakes a waiter, is outside. Then it tells
//! that it has released.

use antiphon_platform::{Hint, Platform};

/// Tells that the caller has acquired a lock.
#[inline]
pub(crate) fn begin<P: Platform>() {
    if P::heeds_sections() {
        tell_beginning::<P>();
    }
}

/// Tells what [`begin`] does, if the caller has acquired the lock. Returns whether it has.
#[inline]
pub(crate) fn begin_if<P: Platform>(acquired: bool) -> bool {
    if acquired {
        begin::<P>();
    }
    acquired
}

#[cold]
fn tell_beginning<P: Platform>() {
    P::hint(Hint::SectionBegin);
}

/// Releases a lock by `release`, on a platform that heeds sections.
pub(crate) fn end<P: Platform>(release: impl FnOnce()) {
    P::hint(Hint::SectionEnd);
    release();
    P::hint(Hint::Released);
}
