//! Lending a rank to another thread, by its nice value.
//!
//! Raising a thread needs `CAP_SYS_NICE`, or a limit `RLIMIT_NICE` that allows the value; lowering
//! it back needs nothing. So a loan that was possible can always be ended. A rank above 40, which
//! real-time threads have, lends nice value -20.
//!
//! The loans are in a table of words, one for each thread id modulo the size of the table. Of two
//! threads that share a word, only one can have loans at a time; a loan to the other is refused.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–21 | `thread` | the kernel's id; 0 if none |
//! | 22–31 | `epoch` | of the process: a parent's loans before a fork mean nothing here |
//! | 32–47 | `loans` | number of loans |
//! | 48–55 | `own` | the thread's rank without loans |
//! | 56–63 | `lent` | the highest rank that was lent to it |
//!
//! - LEND-1: while a word does not name a thread, that thread has its own rank. So the lender that
//!   writes the name asks for the rank, and no other lender does so earlier. Until `own` is set,
//!   other loans are refused.
//! - LEND-2: a thread is raised and lowered by a lender whose loan is counted. A lender that lowers
//!   the thread and finds that another has lent meanwhile raises the thread again before it removes
//!   its own loan.
//!
//! So a lent rank may be lost for a moment, but never stays after its loan. The child of a fork has
//! the rank that was lent to its parent's thread, and gives it back as soon as it asks for its id.
//! Threads and programs started while a loan is active inherit the raised rank and keep it: the
//! kernel works this way, and does not report which thread started a thread.
//! `SCHED_FLAG_RESET_ON_FORK` does not help: it resets any lower nice value to 0, whatever the
//! thread's own value was, and clearing it needs `CAP_SYS_NICE`.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{ThreadId, Unsupported};

use crate::{identity, sys};

/// Number of threads that can have loans at a time, if no two share a word.
const WORDS: usize = 64;
/// The rank of nice value -20.
const HIGHEST: u8 = 40;
/// In place of a thread's own rank, which is at least 1: a lender is asking for the rank.
const UNKNOWN: u8 = 0;

static TABLE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// A word of the table, for a thread with loans.
#[derive(Clone, Copy)]
struct Entry {
    /// The thread's id, with the epoch above it.
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

/// The name of a thread in the table.
fn name(thread: ThreadId) -> u32 {
    name_in(identity::epoch(), thread)
}

fn name_in(epoch: u32, thread: ThreadId) -> u32 {
    epoch << 22 | thread.0 & ((1 << 22) - 1)
}

/// Access to threads' ranks: the kernel, or a substitute in tests.
trait Ranks {
    /// The rank of a thread's nice value, 1 to 40.
    fn rank(&self, thread: ThreadId) -> Result<u8, Unsupported>;
    fn set_rank(&self, thread: ThreadId, rank: u8) -> Result<(), Unsupported>;
}

struct Kernel;

impl Ranks for Kernel {
    fn rank(&self, thread: ThreadId) -> Result<u8, Unsupported> {
        let args = [libc::PRIO_PROCESS as usize, thread.0 as usize];
        // SAFETY: takes only numbers.
        let told = unsafe { sys::call(libc::SYS_getpriority, args) }.map_err(|_| Unsupported)?;
        u8::try_from(told).map_err(|_| Unsupported)
    }

    fn set_rank(&self, thread: ThreadId, rank: u8) -> Result<(), Unsupported> {
        let nice = 20 - isize::from(rank);
        let args = [libc::PRIO_PROCESS as usize, thread.0 as usize, nice.cast_unsigned()];
        // SAFETY: takes only numbers.
        unsafe { sys::call(libc::SYS_setpriority, args) }.map(drop).map_err(|_| Unsupported)
    }
}

fn word(thread: ThreadId) -> &'static AtomicU64 {
    &TABLE[thread.0 as usize % WORDS]
}

/// See [`Urgency::lend`](antiphon_platform::Urgency::lend). Two system calls.
pub(crate) fn lend(thread: ThreadId, rank: u8) -> Result<(), Unsupported> {
    lend_by(&Kernel, word(thread), thread, rank)
}

fn lend_by(
    ranks: &impl Ranks,
    word: &AtomicU64,
    thread: ThreadId,
    rank: u8,
) -> Result<(), Unsupported> {
    let (name, rank) = (name(thread), rank.min(HIGHEST));
    // Relaxed, here and below: a word publishes nothing but itself.
    let mut seen = word.load(Relaxed);
    let mut new = loop {
        let old = Entry::from_bits(seen);
        let new = if old.thread == name && old.own != UNKNOWN {
            let loans = old.loans.checked_add(1).ok_or(Unsupported)?;
            Entry { loans, lent: old.lent.max(rank), ..old }
        } else if old.thread >> 22 == name >> 22 {
            return Err(Unsupported);
        } else {
            Entry { thread: name, loans: 1, own: UNKNOWN, lent: rank }
        };
        match word.compare_exchange(seen, new.bits(), Relaxed, Relaxed) {
            Ok(_) => break new,
            Err(now) => seen = now,
        }
    };
    if new.own == UNKNOWN {
        // LEND-1: until the store below, no other thread changes the word.
        let own = ranks.rank(thread);
        new.own = own.unwrap_or(UNKNOWN);
        word.store(if own.is_ok() { new.bits() } else { 0 }, Relaxed);
        own?;
    }
    if new.lent > new.own && ranks.set_rank(thread, new.lent).is_err() {
        reclaim_by(ranks, word, thread);
        return Err(Unsupported);
    }
    Ok(())
}

/// See [`Urgency::reclaim`](antiphon_platform::Urgency::reclaim). A system call, if it is the
/// last loan.
pub(crate) fn reclaim(thread: ThreadId) {
    reclaim_by(&Kernel, word(thread), thread);
}

fn reclaim_by(ranks: &impl Ranks, word: &AtomicU64, thread: ThreadId) {
    let name = name(thread);
    let mut lowered = false;
    let mut seen = word.load(Relaxed);
    loop {
        let old = Entry::from_bits(seen);
        if old.thread != name || old.loans == 0 {
            return;
        }
        // LEND-2. A thread that has ended needs no change; any other thread may be lowered. If
        // raising it again is refused, the effect is as if nothing had been lent.
        if old.loans == 1 && old.lent > old.own {
            lowered = ranks.set_rank(thread, old.own).is_ok();
        } else if lowered {
            let _ = ranks.set_rank(thread, old.lent);
        }
        let new = Entry { loans: old.loans - 1, ..old };
        let bits = if new.loans == 0 { 0 } else { new.bits() };
        match word.compare_exchange(seen, bits, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

/// Ends the loans that the calling thread had before a fork, when it was `thread` in the process of
/// `epoch`: the table still has them.
pub(crate) fn forked(epoch: u32, thread: ThreadId) {
    let word = word(thread);
    let seen = word.load(Relaxed);
    let old = Entry::from_bits(seen);
    let lent = old.thread == name_in(epoch, thread) && old.own != UNKNOWN && old.lent > old.own;
    // The caller that removes the entry must lower the thread; others may use the word by now.
    if lent && word.compare_exchange(seen, 0, Relaxed, Relaxed).is_ok() {
        // Any thread may be lowered; 0 names the caller.
        let _ = Kernel.set_rank(ThreadId(0), old.own);
    }
}

/// Checks whether this process may lend a rank to its threads, by a loan to the calling thread.
///
/// # Errors
///
/// [`Unsupported`] without `CAP_SYS_NICE` and without a limit `RLIMIT_NICE` above the usual 0
/// (`ulimit -e 40`).
pub fn may_lend() -> Result<(), Unsupported> {
    let me = crate::thread::current();
    lend(me, (Kernel.rank(me)? + 1).min(HIGHEST))?;
    reclaim(me);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    /// Returns whether lending is permitted; if not, reports it on the uncaptured standard error.
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
            assert!(Kernel.set_rank(me, 5).is_ok(), "anybody may be nicer");
            let mut seen = vec![Kernel.rank(me)];
            let permitted = permitted();
            for rank in [9, 30, 7] {
                let lent = lend(me, rank);
                assert_eq!(lent.is_ok(), permitted, "{rank}");
                seen.push(Kernel.rank(me));
            }
            for _ in 0..3 {
                reclaim(me);
                seen.push(Kernel.rank(me));
            }
            // One call too many does nothing.
            reclaim(me);
            assert_eq!(Kernel.rank(me), Ok(5));
            (permitted, seen)
        });
        let Ok((permitted, seen)) = ranks.join() else { panic!("the thread has failed") };
        let expected = if permitted { [5, 9, 30, 30, 30, 30, 5] } else { [5; 7] };
        assert_eq!(seen, expected.map(Ok));
    }

    /// The action of another thread right before or after a system call.
    #[derive(Clone, Copy)]
    enum Between {
        Nothing,
        Lend(u8),
        Reclaim,
    }

    /// A thread's rank, with loans by other threads in between.
    struct Crossing {
        rank: Cell<u8>,
        word: AtomicU64,
        /// The actions in between, in base 4 from the lowest digit.
        script: Cell<u32>,
        lent: Cell<u32>,
        inside: Cell<bool>,
    }

    impl Crossing {
        const OWN: u8 = 5;
        const TARGET: ThreadId = ThreadId(77);

        fn between(&self) {
            if self.inside.replace(true) {
                return;
            }
            use Between::{Lend, Nothing, Reclaim};
            let act = [Nothing, Lend(20), Lend(40), Reclaim];
            let script = self.script.get();
            self.script.set(script / 4);
            match act[script as usize % 4] {
                Nothing => {}
                Lend(rank) => {
                    let had = lend_by(self, &self.word, Self::TARGET, rank).is_ok();
                    self.lent.set(self.lent.get() + u32::from(had));
                }
                Reclaim => {
                    if let Some(left) = self.lent.get().checked_sub(1) {
                        self.lent.set(left);
                        reclaim_by(self, &self.word, Self::TARGET);
                    }
                }
            }
            self.inside.set(false);
        }
    }

    impl Ranks for Crossing {
        fn rank(&self, _: ThreadId) -> Result<u8, Unsupported> {
            self.between();
            let rank = self.rank.get();
            self.between();
            Ok(rank)
        }

        fn set_rank(&self, _: ThreadId, rank: u8) -> Result<(), Unsupported> {
            self.between();
            self.rank.set(rank);
            self.between();
            Ok(())
        }
    }

    #[test]
    fn loans_that_cross_leave_nothing_behind() {
        // Before and after each of four system calls, and before the fifth; there are three calls
        // if no other thread comes in between.
        for script in 0..4_u32.pow(9) {
            let all = Crossing {
                rank: Cell::new(Crossing::OWN),
                word: AtomicU64::new(0),
                script: Cell::new(script),
                lent: Cell::new(0),
                inside: Cell::new(false),
            };
            if lend_by(&all, &all.word, Crossing::TARGET, 30).is_ok() {
                reclaim_by(&all, &all.word, Crossing::TARGET);
            }
            all.script.set(0);
            for _ in 0..all.lent.get() {
                assert!(all.rank.get() > Crossing::OWN, "lent, and not lost: script {script}");
                reclaim_by(&all, &all.word, Crossing::TARGET);
            }
            assert_eq!((all.rank.get(), all.word.load(Relaxed)), (Crossing::OWN, 0), "{script}");
        }
    }

    #[test]
    fn a_child_does_not_keep_what_its_parent_was_lent() {
        let kept = std::thread::spawn(|| {
            let me = crate::thread::current();
            assert!(Kernel.set_rank(me, 5).is_ok());
            if !permitted() {
                return 5;
            }
            assert!(lend(me, 30).is_ok());
            // SAFETY: the child only makes system calls, and exits.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let rank = Kernel.rank(crate::thread::current()).map_or(0, i32::from);
                // SAFETY: ends the child.
                unsafe { libc::_exit(rank) }
            }
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: the status word is a local.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(Kernel.rank(me), Ok(30), "the parent has it still");
            reclaim(me);
            libc::WEXITSTATUS(status)
        });
        let Ok(kept) = kept.join() else { panic!("the thread has failed") };
        assert_eq!(kept, 5);
    }

    #[test]
    fn a_thread_that_is_no_more_is_lent_nothing() {
        let gone = std::thread::spawn(crate::thread::current).join();
        let Ok(gone) = gone else { panic!("the thread has failed") };
        assert!(lend(gone, HIGHEST).is_err());
        reclaim(gone);
    }
}
