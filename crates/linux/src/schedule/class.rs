//! The scheduling class and the time slice of a thread.

use core::fmt;
use core::ops::RangeInclusive;

use antiphon_platform::ThreadId;

use super::permitted::{Asked, Refused};
use crate::sys;

/// Children of a thread with this flag are ordinary (sched(7)).
const RESET_ON_FORK: u32 = 0x4000_0000;
/// The same flag for `sched_setattr`.
const FLAG_RESET_ON_FORK: u64 = 1;

/// The slices that the kernel grants (`sched_setattr`, since Linux 6.12): others are rounded.
pub const SLICES_NS: RangeInclusive<u64> = 100_000..=100_000_000;

/// The policy by which a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Time-sharing: `SCHED_OTHER`.
    Other,
    /// `SCHED_FIFO`: runs until it sleeps, before all threads of lower priority.
    Fifo,
    /// `SCHED_RR`: like `SCHED_FIFO`, but threads of one priority take turns.
    RoundRobin,
    /// Time-sharing, never urgent: `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`: runs when no other thread would run.
    Idle,
    /// `SCHED_DEADLINE`: scheduled by deadlines and reservations.
    Deadline,
    /// `SCHED_EXT`: scheduled by a loaded (BPF) scheduler.
    Extended,
    /// A policy that this library does not know, by its number.
    Unknown(u32),
}

impl Policy {
    fn of(number: u32) -> Self {
        match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::RoundRobin,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            7 => Self::Extended,
            other => Self::Unknown(other),
        }
    }

    /// The kernel's number of the policy, if it is a time-sharing one.
    fn timeshared(self) -> Option<u32> {
        match self {
            Self::Other => Some(0),
            Self::Batch => Some(3),
            Self::Idle => Some(5),
            Self::Extended => Some(7),
            _ => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo => "SCHED_FIFO",
            Self::RoundRobin => "SCHED_RR",
            Self::Batch => "SCHED_BATCH",
            Self::Idle => "SCHED_IDLE",
            Self::Deadline => "SCHED_DEADLINE",
            Self::Extended => "SCHED_EXT",
            Self::Unknown(number) => return write!(f, "policy {number}"),
        })
    }
}

/// A thread's policy, and whether its children are ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The policy by which the thread is scheduled.
    pub policy: Policy,
    /// Whether `SCHED_RESET_ON_FORK` is set.
    pub resets_on_fork: bool,
}

/// Returns the class of a thread.
///
/// # Errors
///
/// If there is no such thread, or a filter forbids the call.
pub fn class(thread: ThreadId) -> Result<Class, Refused> {
    // SAFETY: takes only a number.
    let told = unsafe { sys::call(libc::SYS_sched_getscheduler, [thread.0 as usize]) };
    let told = told.map_err(Refused::by)? as u32;
    let policy = Policy::of(told & !RESET_ON_FORK);
    Ok(Class { policy, resets_on_fork: told & RESET_ON_FORK != 0 })
}

/// Puts a thread into `SCHED_FIFO`, with a priority of 1 to 99; threads that it starts from now on
/// are ordinary. Its nice value and its slice are kept, and apply when it shares time again.
///
/// # Errors
///
/// If the class is not permitted, or there is no such thread.
pub fn set_fifo(thread: ThreadId, priority: u8) -> Result<(), Refused> {
    set(thread, 1 | RESET_ON_FORK, priority)
}

/// Like [`set_fifo`], for `SCHED_RR`: threads of one priority take turns.
///
/// # Errors
///
/// See [`set_fifo`].
pub fn set_round_robin(thread: ThreadId, priority: u8) -> Result<(), Refused> {
    set(thread, 2 | RESET_ON_FORK, priority)
}

/// Puts a thread back into the time-sharing class `class`; a real-time class counts as
/// `SCHED_OTHER`.
///
/// `SCHED_RESET_ON_FORK` stays set where only a privileged process may clear it: for a time-sharing
/// thread its only effect is that children have no negative nice value.
///
/// # Errors
///
/// If there is no such thread, or a filter forbids the call: sharing time needs no permission.
pub fn set_timeshared(thread: ThreadId, class: Class) -> Result<(), Refused> {
    let policy = class.policy.timeshared().unwrap_or(0);
    if !class.resets_on_fork && set(thread, policy, 0).is_ok() {
        return Ok(());
    }
    set(thread, policy | RESET_ON_FORK, 0)
}

fn set(thread: ThreadId, policy: u32, priority: u8) -> Result<(), Refused> {
    let parameter = libc::sched_param { sched_priority: priority.into() };
    let args = [thread.0 as usize, policy as usize, (&raw const parameter) as usize];
    // SAFETY: the kernel reads the structure, which is alive for the call.
    let set = unsafe { sys::call(libc::SYS_sched_setscheduler, args) };
    let asked = if priority > 0 { Asked::RealTime(priority) } else { Asked::Other };
    set.map(drop).map_err(|errno| Refused::by(errno).of(asked))
}

/// The slice of a time-sharing thread, in nanoseconds; 0 if the kernel reports none.
///
/// # Errors
///
/// If there is no such thread, or a filter forbids the call.
pub fn slice_ns(thread: ThreadId) -> Result<u64, Refused> {
    let read = attributes(thread)?;
    Ok(if Policy::of(read.sched_policy).timeshared().is_some() { read.sched_runtime } else { 0 })
}

/// Sets the slice of a time-sharing thread; returns its previous slice. With a shorter slice, the
/// thread runs sooner after it has slept, and other threads run sooner after it; its share of the
/// CPU stays the same. 0 is the kernel's default.
///
/// # Errors
///
/// If the thread does not share time, there is no such thread, or the kernel knows no slices
/// (before Linux 6.12).
pub fn set_slice(thread: ThreadId, slice_ns: u64) -> Result<u64, Refused> {
    let mut new = attributes(thread)?;
    let before = new.sched_runtime;
    if Policy::of(new.sched_policy).timeshared().is_none() {
        return Err(Refused::by(sys::Errno(libc::EINVAL)));
    }
    new.sched_runtime = slice_ns;
    new.sched_flags &= FLAG_RESET_ON_FORK;
    let args = [thread.0 as usize, (&raw mut new) as usize, 0];
    // SAFETY: the structure is a local of the size in its first word, which the kernel may write.
    unsafe { sys::call(libc::SYS_sched_setattr, args) }.map_err(Refused::by)?;
    // An older kernel accepts the value and ignores it.
    if slice_ns != 0 && attributes(thread)?.sched_runtime == 0 {
        return Err(Refused::by(sys::Errno(libc::EOPNOTSUPP)));
    }
    Ok(before)
}

/// Sets the timer slack of the calling thread, in nanoseconds: how late a timer may wake it while
/// it shares time. At least 1; the default is 50 µs. Threads that it starts inherit the value.
pub fn set_timer_slack(slack_ns: u64) {
    let args = [libc::PR_SET_TIMERSLACK as usize, slack_ns.max(1) as usize];
    // SAFETY: takes only numbers. If the call is refused, timers are a little late.
    let _ = unsafe { sys::call(libc::SYS_prctl, args) };
}

fn attributes(thread: ThreadId) -> Result<libc::sched_attr, Refused> {
    // SAFETY: the structure consists of integers, for which 0 is valid.
    let mut read: libc::sched_attr = unsafe { core::mem::zeroed() };
    let size = size_of_val(&read);
    let args = [thread.0 as usize, (&raw mut read) as usize, size, 0];
    // SAFETY: the structure is a writable local of the given size.
    unsafe { sys::call(libc::SYS_sched_getattr, args) }.map_err(Refused::by)?;
    // The length that the kernel has filled in, but at most that of our structure.
    read.size = read.size.min(size as u32);
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_set_and_set_back() {
        let slices = std::thread::spawn(|| {
            let me = ThreadId(0);
            let before = slice_ns(me);
            let set = set_slice(me, 3_000_000);
            let between = slice_ns(me);
            (before, set, between, set_slice(me, before.unwrap_or(0)), slice_ns(me))
        });
        let (before, set, between, back, after) = slices.join().expect("the thread has failed");
        if set.is_err() {
            eprintln!("skipped: no slices here: {set:?}");
            return;
        }
        assert_eq!((set, back), (before, Ok(3_000_000)));
        assert_eq!((between, after), (Ok(3_000_000), before));
    }

    #[test]
    fn a_thread_in_fifo_has_ordinary_children_and_comes_back_as_it_was() {
        let seen = std::thread::spawn(|| {
            let me = ThreadId(0);
            let before = class(me).expect("one may ask for one's own class");
            if let Err(refused) = set_fifo(me, 1) {
                eprintln!("skipped: {refused}");
                return None;
            }
            let between = class(me).expect("as above");
            let child = std::thread::spawn(|| class(ThreadId(0)).expect("as above")).join();
            set_timeshared(me, before).expect("who has time to share may");
            Some((before, between, child.expect("it ends"), class(me).expect("as above")))
        });
        let seen = seen.join().expect("the thread has failed");
        if let Some((before, between, child, after)) = seen {
            assert_eq!((between.policy, between.resets_on_fork), (Policy::Fifo, true));
            assert_eq!((child.policy, after.policy), (Policy::Other, before.policy));
        }
    }

    #[test]
    fn a_thread_that_is_no_more_has_no_class() {
        let gone = ThreadId(i32::MAX.cast_unsigned());
        assert!(class(gone).is_err() && set_fifo(gone, 1).is_err() && slice_ns(gone).is_err());
    }
}
