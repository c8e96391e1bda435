//! Critical sections of locks, told to a platform that heeds them
//! ([`heeds_sections`](antiphon_platform::Hints::heeds_sections)).
//!
//! Where it does not, a free lock must cost what it costs otherwise. So a lock asks before the
//! exchange that acquires it, and after the store that releases it: the load is done while the
//! other is under way. Asked right before the store, it made a free spinlock a twentieth slower
//! (`docs/sched.md` has the figures).
//!
//! A release that may make a system call, to wake a waiter, ends its section first.
//!
//! - SECTION-6: an acquisition begins one section, and its release ends one, whether either had to
//!   wait or not: otherwise the release of an inner lock would end the section of an outer one. A
//!   lock that is a part of another lock tells nothing. Functions whose names end in `uncontended`,
//!   `at_once` or `alone` tell nothing either: their callers do, or know that nothing is told.

use antiphon_platform::{Hint, Platform};

/// Tells that the caller has acquired a lock.
#[inline]
pub(crate) fn begin<P: Platform>() {
    if P::heeds_sections() {
        tell_beginning::<P>();
    }
}

/// Acquires a lock, on a platform that heeds sections: by `take`, or else by `wait`. The section
/// begins before `take`, as in [`attempt`].
pub(crate) fn acquire<P: Platform>(take: impl FnOnce() -> bool, wait: impl FnOnce()) {
    if !attempt::<P>(take) {
        wait();
        P::hint(Hint::SectionBegin);
    }
}

/// Tries to acquire a lock by `take`, and returns whether that was done. The section begins before
/// `take`: a preemption between the exchange and the telling would be one of a holder that has told
/// nothing. For callers that record a wait, and for locks that are not of this crate.
pub fn attempt<P: Platform>(take: impl FnOnce() -> bool) -> bool {
    if !P::heeds_sections() {
        return take();
    }
    P::hint(Hint::SectionBegin);
    let acquired = take();
    if !acquired {
        P::hint(Hint::SectionEnd);
    }
    acquired
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
#[inline(never)]
fn tell_beginning<P: Platform>() {
    P::hint(Hint::SectionBegin);
}

/// Tells that the caller has released a lock. To be called after the releasing store; touches
/// nothing of the lock, whose memory may be gone.
#[inline]
pub fn is_over<P: Platform>() {
    if P::heeds_sections() {
        tell_end::<P>();
    }
}

#[cold]
#[inline(never)]
fn tell_end<P: Platform>() {
    end::<P>(|| ());
}

/// Releases a lock by `release`, which may make system calls.
#[inline]
pub(crate) fn release<P: Platform>(release: impl FnOnce()) {
    if P::heeds_sections() { end::<P>(release) } else { release() }
}

/// [`release`] on a platform that heeds sections.
pub(crate) fn end<P: Platform>(release: impl FnOnce()) {
    P::hint(Hint::SectionEnd);
    release();
    P::hint(Hint::Released);
}
