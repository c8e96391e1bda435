//! Critical sections, told to the kernel so that it puts a preemption off until their end.
//!
//! A lock tells when it is acquired and when it is about to be released
//! ([`Hint::SectionBegin`](antiphon_platform::Hint::SectionBegin) and the two after it), but only
//! in a process that has called [`enable_sections`]. Each thread asks once, in its first section,
//! for what heeds its sections: the first of these that serves it.
//!
//! | listener | needs | told by | at most |
//! |---|---|---|---|
//! | [`Listener::Scheduler`] | `antiphon sched --full` | a count in its slot | 0.1 ms a turn |
//! | [`Listener::SliceExtension`] | the option, glibc 2.41 | a byte of its rseq area | 5 µs |
//!
//! The scheduler tells in return how many threads wait for a CPU, and how many of this process have
//! lost theirs in a section: waiters then sleep at once, or give their CPU away.
//!
//! A thread whose scheduler has ended notices that where it waits anyway, and asks again: for the
//! next scheduler, as soon as there is one (`page.rs`).
//!
//! The kernel has the option `CONFIG_RSEQ_SLICE_EXTENSION` since version 7.0. Its limit of 5 µs can
//! be raised. A thread without a listener tells nothing. What a thread tells is a hint: a wrong one
//! costs time, and never correctness.
//!
//! - SECTION-1: only the outermost section is told: one store when it begins, and one when it ends.
//!   The thread counts the depth itself, because the kernel clears the byte when it grants time.
//! - SECTION-2: an end at depth 0 does nothing. So a lock may be released by another thread than
//!   the one that acquired it, and sections may begin before they are told.
//! - SECTION-3: a wait ends all sections of its thread, or of the thread under the fiber: a system
//!   call gives a grant back, and a fiber may go on elsewhere. So a section whose end was not told
//!   ends with the next wait. This holds for each sleep of this crate: `park`, its
//!   two halves, waits on words and in shared memory. A caller that sleeps by a system call of its
//!   own calls [`interrupt`] before.
//! - SECTION-4: a section ends before a system call of the release, such as a wake-up. Where the
//!   release is a store alone, it ends right after it.
//! - SECTION-5: a slot of the page is written only by the process that mapped it: the child of a
//!   fork has no such page, and sees by its epoch that it is another process.
//! - SECTION-6: an acquisition begins one section, and its release ends one: the locks see to it.
//!
//! A lock that has put a preemption off gives the CPU away once it is released. If the release has
//! woken a waiter by a system call, the kernel has taken the CPU at the beginning of that call: the
//! waiter then comes up late, as it would have without a grant.

mod connections;
mod page;
mod slice;

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Unsupported;

use crate::light;
use crate::local::{self, Thread};
use crate::pretend;

/// What heeds the sections of a thread, in its thread-local state; 0: not asked yet.
const NONE: u32 = 1;
const SLICE: u32 = 2;
const PAGE: u32 = 3;
const PRETENDED: u32 = 4;

/// What heeds critical sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The scheduler of `antiphon sched --full`.
    Scheduler,
    /// The kernel's time-slice extension.
    SliceExtension,
    /// A listener of the feature `pretend`, which counts what it is told.
    #[cfg(feature = "pretend")]
    Pretended,
}

/// Makes the mutexes, spinlocks and readers-writer locks of this process tell their critical
/// sections, for good. Returns what heeds those of the calling thread; other threads ask for
/// themselves. The locks then unlock by exchange, even in [light mode](crate::light). May allocate,
/// and must not be called in signal handlers.
///
/// # Errors
///
/// [`Unsupported`] if nothing heeds sections here: then the locks tell nothing.
pub fn enable_sections() -> Result<Listener, Unsupported> {
    page::connect();
    slice::find();
    let listener = local::with(|thread| {
        thread.heeded_by.store(0, Relaxed);
        match heeded_by(thread) {
            PAGE => Ok(Listener::Scheduler),
            SLICE => Ok(Listener::SliceExtension),
            #[cfg(feature = "pretend")]
            PRETENDED => Ok(Listener::Pretended),
            _ => Err(Unsupported),
        }
    });
    if listener.is_ok() {
        light::tell_sections();
    }
    listener
}

/// See [`heeds_sections`](antiphon_platform::Hints::heeds_sections).
#[inline(always)]
pub(crate) fn are_heeded() -> bool {
    light::are_sections_told()
}

/// See [`Hint::SectionBegin`](antiphon_platform::Hint::SectionBegin).
pub(crate) fn begin() {
    local::with(|thread| {
        let depth = thread.sections.load(Relaxed);
        thread.sections.store(depth.saturating_add(1), Relaxed);
        if depth == 0 {
            match heeded_by(thread) {
                SLICE => slice::begin(),
                PAGE => page::begin(thread),
                PRETENDED => pretend::section_begins(thread),
                _ => {}
            }
        }
    });
}

/// See [`Hint::SectionEnd`](antiphon_platform::Hint::SectionEnd).
pub(crate) fn end() {
    local::with(|thread| {
        let depth = thread.sections.load(Relaxed);
        // SECTION-2.
        thread.sections.store(depth.saturating_sub(1), Relaxed);
        if depth == 1 {
            end_outermost(thread);
        }
    });
}

fn end_outermost(thread: &Thread) {
    match thread.heeded_by.load(Relaxed) {
        SLICE => slice::end(),
        PAGE => page::end(thread),
        PRETENDED => pretend::section_ends(thread),
        _ => {}
    }
}

/// See [`Hint::Released`](antiphon_platform::Hint::Released).
pub(crate) fn released() {
    local::with(|thread| {
        if thread.sections.load(Relaxed) > 0 {
            return;
        }
        match thread.heeded_by.load(Relaxed) {
            SLICE => slice::released(),
            PAGE => page::released(thread),
            _ => {}
        }
    });
}

/// Ends all sections of the calling thread, which is about to sleep (SECTION-3).
#[inline]
pub fn interrupt() {
    if are_heeded() {
        interrupt_told();
    }
}

fn interrupt_told() {
    local::with(|thread| {
        if thread.sections.load(Relaxed) > 0 {
            thread.sections.store(0, Relaxed);
            end_outermost(thread);
        }
        look_around(thread);
    });
}

/// Called by a thread that begins to wait without a sleep: it may never come to one.
#[inline]
pub(crate) fn wait_begins() {
    if are_heeded() {
        local::with(look_around);
    }
}

/// Returns whether threads wait for a CPU, where the scheduler tells that.
#[inline]
pub(crate) fn threads_wait() -> Option<bool> {
    told(page::threads_wait)
}

/// Returns the number of threads of this process that have lost the CPU in a section, where the
/// scheduler counts them.
#[inline]
pub(crate) fn stalled() -> Option<&'static AtomicU32> {
    told(page::stalled)
}

/// Returns what the scheduler tells the calling thread, if it heeds its sections.
#[inline]
fn told<R>(what: fn(&Thread) -> Option<R>) -> Option<R> {
    if !are_heeded() {
        return None;
    }
    local::with(|thread| if thread.heeded_by.load(Relaxed) == PAGE { what(thread) } else { None })
}

/// Checks whether the thread must ask again for what heeds its sections.
fn look_around(thread: &Thread) {
    let is_served = thread.heeded_by.load(Relaxed) == PAGE;
    if page::must_ask(thread, is_served) {
        if thread.sections.load(Relaxed) > 0 {
            end_outermost(thread);
        }
        thread.heeded_by.store(0, Relaxed);
    }
}

/// Returns what heeds the sections of the calling thread. Asks in the first call, and after
/// [`look_around`] has found that the answer is outdated.
#[inline]
fn heeded_by(thread: &Thread) -> u32 {
    match thread.heeded_by.load(Relaxed) {
        0 => ask(thread),
        listener => listener,
    }
}

#[cold]
#[inline(never)]
fn ask(thread: &Thread) -> u32 {
    let listener = if pretend::is_on() {
        PRETENDED
    } else if page::register_at(thread) {
        PAGE
    } else if slice::enable() {
        SLICE
    } else {
        NONE
    };
    thread.heeded_by.store(listener, Relaxed);
    listener
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth() -> u32 {
        local::with(|thread| thread.sections.load(Relaxed))
    }

    #[test]
    fn sections_nest_end_once_and_end_with_a_wait() {
        end();
        assert_eq!(depth(), 0, "SECTION-2");
        begin();
        begin();
        end();
        assert_eq!(depth(), 1);
        interrupt_told();
        assert_eq!(depth(), 0, "SECTION-3");
        end();
        released();
        assert_eq!(depth(), 0);
    }
}
