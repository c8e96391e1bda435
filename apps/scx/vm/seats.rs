//! Registrations: a slot that had another thread, and the policy of a thread that leaves.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::scope;

use antiphon_hints::{Hints, Registered, Slot, now_ns};
use antiphon_scx::loader::Failure;

use crate::life::wait_for;
use crate::policy::FAIR;
use crate::scheduler::under;
use crate::thread::{Policy, become_of};

/// A thread that gets a slot finds nothing there of the thread that had it before.
pub fn slot() -> Result<String, Failure> {
    under(&[], |scheduler| {
        let hints = scheduler.connect()?;
        let first = apart(|| tell_and_end(&hints))?;
        let is_free = || scheduler.count("registered").is_ok_and(|count| count == 0);
        wait_for(is_free, "the slot is still taken")?;
        let (second, left) = apart(|| {
            // Not under the scheduler, which would write there.
            let thread = hints.register_unmoved()?;
            Ok((std::ptr::from_ref(thread.slot()).addr(), content(thread.slot())))
        })?;
        if first != second {
            return Err("the second thread has another slot".into());
        }
        match left.iter().find(|(_, value)| *value != 0) {
            None => Ok(format!("{} words of the slot are 0 again", left.len())),
            Some((name, value)) => Err(format!("{name} is still {value}").into()),
        }
    })
}

/// Tells all that a thread can, and ends within a section. Returns the slot's address.
fn tell_and_end(hints: &Hints) -> Result<usize, Failure> {
    become_of(FAIR)?;
    let thread = hints.register()?;
    thread.share(7);
    thread.enter();
    thread.poll(Some(now_ns() + 1_000_000), Some(3));
    // The scheduler looks, and answers.
    std::thread::yield_now();
    let told = content(thread.slot());
    match told.iter().find(|(name, value)| *value == 0 && *name != "preempted") {
        None => Ok(std::ptr::from_ref(thread.slot()).addr()),
        Some((name, _)) => Err(format!("{name} was not told").into()),
    }
}

/// The hints, and answers of which all but the last are told at each turn.
fn content(slot: &Slot) -> [(&'static str, u64); 8] {
    [
        ("release_ns", slot.release_ns.load(Relaxed)),
        ("section", slot.section.load(Relaxed).into()),
        ("polls", slot.polls.load(Relaxed).into()),
        ("importance", slot.importance.load(Relaxed)),
        ("group", slot.group.load(Relaxed).into()),
        ("seen_ns", slot.seen_ns.load(Relaxed)),
        ("standing", slot.standing.load(Relaxed).into()),
        ("preempted", slot.preempted.load(Relaxed).into()),
    ]
}

/// A thread that leaves has its former policy again, unless it was given another one meanwhile.
pub fn policy() -> Result<String, Failure> {
    const RESET: i32 = libc::SCHED_RESET_ON_FORK;
    const EXT: i32 = 7;
    under(&[], |scheduler| {
        let hints = Arc::new(scheduler.connect()?);
        apart(|| {
            become_of(FAIR)?;
            for former in [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE | RESET] {
                set(former)?;
                let seat = Registered::new(hints.clone())?;
                is(EXT | (former & RESET))?;
                drop(seat);
                is(former)?;
            }
            let seat = Registered::new(hints.clone())?;
            become_of(Policy::Fifo(3))?;
            drop(seat);
            is(libc::SCHED_FIFO)?;
            if Registered::new(hints.clone()).is_ok() {
                return Err("a real-time thread was registered".into());
            }
            is(libc::SCHED_FIFO)
        })?;
        Ok("three policies return, and a real-time one that was given meanwhile stays".to_owned())
    })
}

fn set(policy: i32) -> std::io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads one parameter, and concerns the calling thread only.
    let done = unsafe { libc::sched_setscheduler(0, policy, &none) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn is(expected: i32) -> Result<(), Failure> {
    // SAFETY: returns a number of the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy == expected { Ok(()) } else { Err(format!("{policy:#x}, not {expected:#x}").into()) }
}

/// Runs a part of a case on a thread of its own.
fn apart<R: Send>(part: impl FnOnce() -> Result<R, Failure> + Send) -> Result<R, Failure> {
    let done =
        scope(|threads| threads.spawn(|| part().map_err(|failure| failure.to_string())).join());
    Ok(done.map_err(|_| "a thread panicked")??)
}
