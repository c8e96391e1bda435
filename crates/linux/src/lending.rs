//! Lending a rank to another thread, by its nice value.
//!
//! Raising a thread needs `CAP_SYS_NICE`, or a limit `RLIMIT_NICE` that allows the value; lowering
//! it back needs nothing. So a loan that was possible can be ended. A rank above 40, of a real-time
//! thread, lends nice value -20.
//!
//! What was lent to whom is in a table of words, one for each thread id modulo its size: two
//! threads that meet in a word can't both be lent something, and the second is refused.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–21 | `thread` | the kernel's id; 0 is nobody |
//! | 22–31 | `epoch` | of the process: what a parent lent before a fork means nothing here |
//! | 32–47 | `loans` | how many there are |
//! | 48–55 | `own` | the thread's rank without them |
//! | 56–63 | `lent` | the highest rank that was lent to it |
//!
//! The word changes before a thread is raised, and after it was lowered. Who lowers it and finds
//! that another has lent meanwhile raises it again. So a rank that was lent may be lost for a
//! moment, and none stays.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{ThreadId, Unsupported};

use crate::{identity, sys};

/// How many threads can be lent something at a time, if they don't meet.
const WORDS: usize = 64;
/// The rank of nice value -20.
const HIGHEST: u8 = 40;

static TABLE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// A word of the table, of a thread that was lent something.
#[derive(Clone, Copy)]
struct Entry {
    /// With the epoch.
    thread: u32,
    loans: u16,
    own: u8,
    lent: u8,
}

impl Entry {
    fn from_bits(bits: u64) -> Self {
        let [lent, own, ..] = bits.to_be_bytes();
        Self { thread: bits as u32, loans: (bits >> 32) as u16, own, lent }
    }

    fn bits(self) -> u64 {
        u64::from(self.lent) << 56
            | u64::from(self.own) << 48
            | u64::from(self.loans) << 32
            | u64::from(self.thread)
    }
}

/// The thread as the table names it.
fn name(thread: ThreadId) -> u32 {
    identity::epoch() << 22 | thread.0 & ((1 << 22) - 1)
}

/// See [`Platform::lend`](antiphon_platform::Platform::lend). Two system calls.
pub(crate) fn lend(thread: ThreadId, rank: u8) -> Result<(), Unsupported> {
    let (name, rank) = (name(thread), rank.min(HIGHEST));
    let word = &TABLE[thread.0 as usize % WORDS];
    // Relaxed, all of them: each word stands for itself.
    let mut seen = word.load(Relaxed);
    let new = loop {
        let old = Entry::from_bits(seen);
        let new = if old.thread == name {
            let loans = old.loans.checked_add(1).ok_or(Unsupported)?;
            Entry { loans, lent: old.lent.max(rank), ..old }
        } else if old.thread >> 22 == name >> 22 {
            return Err(Unsupported);
        } else {
            Entry { thread: name, loans: 1, own: priority(thread)?, lent: rank }
        };
        match word.compare_exchange(seen, new.bits(), Relaxed, Relaxed) {
            Ok(_) => break new,
            Err(now) => seen = now,
        }
    };
    if new.lent > new.own && set_priority(thread, new.lent).is_err() {
        reclaim(thread);
        return Err(Unsupported);
    }
    Ok(())
}

/// See [`Platform::reclaim`](antiphon_platform::Platform::reclaim). A system call, if it is the
/// last loan.
pub(crate) fn reclaim(thread: ThreadId) {
    let name = name(thread);
    let word = &TABLE[thread.0 as usize % WORDS];
    let mut lowered = false;
    let mut seen = word.load(Relaxed);
    loop {
        let old = Entry::from_bits(seen);
        if old.thread != name || old.loans == 0 {
            return;
        }
        // A thread that has ended needs nothing any more; else anybody may be lowered.
        let raised = old.lent > old.own;
        if old.loans == 1 && raised {
            lowered = set_priority(thread, old.own).is_ok();
        }
        let new = Entry { loans: old.loans - 1, ..old };
        let bits = if new.loans == 0 { 0 } else { new.bits() };
        match word.compare_exchange(seen, bits, Relaxed, Relaxed) {
            Ok(_) => {
                if lowered && new.loans > 0 {
                    // Refused, it is as if nothing had been lent.
                    let _ = set_priority(thread, new.lent);
                }
                return;
            }
            Err(now) => seen = now,
        }
    }
}

/// Whether this process may lend its threads a rank: tries it on the calling thread.
///
/// # Errors
///
/// [`Unsupported`]: it needs `CAP_SYS_NICE`, or a limit `RLIMIT_NICE` of more than the usual 0
/// (`ulimit -e 40`).
pub fn may_lend() -> Result<(), Unsupported> {
    let me = crate::thread::current();
    lend(me, (priority(me)? + 1).min(HIGHEST))?;
    reclaim(me);
    Ok(())
}

/// The rank of a thread's nice value, 1 to 40, as the kernel tells it.
fn priority(thread: ThreadId) -> Result<u8, Unsupported> {
    let args = [libc::PRIO_PROCESS as usize, thread.0 as usize];
    // SAFETY: takes numbers.
    let told = unsafe { sys::call(libc::SYS_getpriority, args) }.map_err(|_| Unsupported)?;
    u8::try_from(told).map_err(|_| Unsupported)
}

fn set_priority(thread: ThreadId, rank: u8) -> Result<(), sys::Errno> {
    let nice = 20 - isize::from(rank);
    let args = [libc::PRIO_PROCESS as usize, thread.0 as usize, nice.cast_unsigned()];
    // SAFETY: takes numbers.
    unsafe { sys::call(libc::SYS_setpriority, args) }.map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Whether it may be done, said past what the test harness captures if not.
    fn permitted() -> bool {
        let permitted = may_lend().is_ok();
        if !permitted {
            let said = writeln!(std::io::stderr(), "skipped: may not raise a thread's priority");
            assert!(said.is_ok());
        }
        permitted
    }

    #[test]
    fn a_thread_is_lent_a_rank_and_has_its_own_back() {
        let ranks = std::thread::spawn(|| {
            let me = crate::thread::current();
            assert!(set_priority(me, 5).is_ok(), "anybody may be nicer");
            let mut seen = vec![priority(me)];
            let permitted = permitted();
            for rank in [9, 30, 7] {
                let lent = lend(me, rank);
                assert_eq!(lent.is_ok(), permitted, "{rank}");
                seen.push(priority(me));
            }
            for _ in 0..3 {
                reclaim(me);
                seen.push(priority(me));
            }
            // One too many does nothing.
            reclaim(me);
            assert_eq!(priority(me), Ok(5));
            (permitted, seen)
        });
        let Ok((permitted, seen)) = ranks.join() else { panic!("the thread has failed") };
        let expected = if permitted { [5, 9, 30, 30, 30, 30, 5] } else { [5; 7] };
        assert_eq!(seen, expected.map(Ok));
    }

    #[test]
    fn a_thread_that_is_no_more_is_lent_nothing() {
        let gone = std::thread::spawn(crate::thread::current).join();
        let Ok(gone) = gone else { panic!("the thread has failed") };
        assert!(lend(gone, HIGHEST).is_err());
        reclaim(gone);
    }
}
