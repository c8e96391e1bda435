//! The rank of a thread in the kernel's scheduler.
//!
//! | the thread is | rank |
//! |---|---|
//! | ordinary, of nice value `n` | 20 − n: 1 to 40 |
//! | idle (`SCHED_IDLE`) | 0 |
//! | real-time, of priority `p` | 100 + p: 101 to 199 |
//! | scheduled by deadline | 255 |

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::RANK;
use libc::sched_attr;

use crate::sys;

fn nothing() -> sched_attr {
    // SAFETY: it consists of integers only.
    unsafe { core::mem::zeroed() }
}

/// The calling thread's rank: one system call. The rank of an ordinary thread if the kernel refuses
/// to answer, for example because of a filter.
pub(crate) fn own() -> u8 {
    let mut attributes = nothing();
    let size = size_of::<sched_attr>();
    let args = [0, (&raw mut attributes) as usize, size, 0];
    // SAFETY: the structure is a writable local of the given size.
    let told = unsafe { sys::call(libc::SYS_sched_getattr, args) };
    if told.is_ok() { rank(&attributes) } else { RANK }
}

/// When [`urgency`] asks the kernel.
static ASKS: AtomicU8 = AtomicU8::new(ALWAYS);
const ALWAYS: u8 = 0;
const WHEN_TOLD: u8 = 1;
const TOLD: u8 = 2;

/// Makes `urgency` ask the kernel for a waiter's real-time priority only after
/// [`real_time_is_about`], apart from occasional checks by `look`. For a library that sees the
/// priorities that the process gives to its threads; without this, each wait that sleeps asks.
pub fn ask_when_told() {
    // Relaxed, as for all accesses to this word: it affects only the order of service.
    if !has_real_time() {
        let _ = ASKS.compare_exchange(ALWAYS, WHEN_TOLD, Relaxed, Relaxed);
    }
}

/// Announces that a thread of this process has a real-time priority, or will soon.
pub fn real_time_is_about() {
    if ASKS.load(Relaxed) != TOLD {
        ASKS.store(TOLD, Relaxed);
    }
}

/// Checks whether another process has given the calling thread a real-time priority, if nothing
/// else would notice.
pub(crate) fn look() {
    if ASKS.load(Relaxed) == WHEN_TOLD && has_real_time() {
        real_time_is_about();
    }
}

/// The calling thread's rank if it has a real-time priority, otherwise 0: one system call for a
/// time-sharing thread.
///
/// Also 0 where the kernel refuses to answer.
pub(crate) fn urgency() -> u8 {
    if ASKS.load(Relaxed) == WHEN_TOLD || !has_real_time() {
        return 0;
    }
    match own() {
        rank if rank > 100 => rank,
        _ => 0,
    }
}

/// Returns whether the calling thread has a policy other than time-sharing: one system call.
fn has_real_time() -> bool {
    // SAFETY: takes only a number.
    let told = unsafe { sys::call(libc::SYS_sched_getscheduler, [0]) };
    let Ok(policy) = told else { return false };
    let policy = policy as i32 & !libc::SCHED_RESET_ON_FORK;
    ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy)
}

fn rank(attributes: &sched_attr) -> u8 {
    const DEADLINE: u32 = 6;
    let policy = attributes.sched_policy;
    if policy == DEADLINE {
        u8::MAX
    } else if policy == libc::SCHED_FIFO.cast_unsigned() || policy == libc::SCHED_RR.cast_unsigned()
    {
        // At most 99.
        100 + attributes.sched_priority.min(99) as u8
    } else if policy == libc::SCHED_IDLE.cast_unsigned() {
        0
    } else {
        (20 - attributes.sched_nice.clamp(-20, 19)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_urgent_has_the_higher_rank() {
        let of = |policy: i32, nice, priority| {
            rank(&sched_attr {
                sched_policy: policy.cast_unsigned(),
                sched_nice: nice,
                sched_priority: priority,
                ..nothing()
            })
        };
        let ascending = [
            of(libc::SCHED_IDLE, 0, 0),
            of(libc::SCHED_OTHER, 19, 0),
            of(libc::SCHED_BATCH, 0, 0),
            of(libc::SCHED_OTHER, -20, 0),
            of(libc::SCHED_RR, 0, 1),
            of(libc::SCHED_FIFO, 0, 99),
            of(6, 0, 0),
        ];
        assert_eq!(ascending, [0, 1, RANK, 40, 101, 199, 255]);
    }

    #[test]
    fn a_thread_that_was_made_nicer_has_a_lower_rank() {
        let ranks = std::thread::spawn(|| {
            let before = own();
            // SAFETY: affects only the calling thread; any thread may raise its nice value.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) }, 0);
            (before, own())
        });
        let Ok((before, after)) = ranks.join() else { panic!("the thread has failed") };
        assert!(after == 1 && (before > after || before <= 1), "{before}, then {after}");
    }
}
