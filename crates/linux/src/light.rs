//! Light mode: an unlock without a locked instruction, by `rseq` against
//! `membarrier`.
//!
//! A waiter that is about to sleep raises a flag and makes a heavy fence; an unlocker stores "free"
//! unless the flag is up, in a restartable sequence. Each sequence in flight at the fence has
//! either committed, and the waiter finds the lock free, or restarts and sees the flag.
//!
//! | mode | unlockers | sleepers | next |
//! |---|---|---|---|
//! | `EXCHANGE` | exchange | need no fence | `FENCING`, after all probes |
//! | `FENCING` | exchange | fence | `LIGHT`, when all threads have passed a fence |
//! | `LIGHT` | the sequence, where the thread may use it | fence | none: this mode is final |
//!
//! `TOLD` is added to any of these when the process tells its critical sections
//! ([`crate::section`]), for good: unlockers then exchange in each mode, and sleepers do as before.
//! So a lock learns by one load that it has neither to choose the sequence nor to tell.
//!
//! LIGHT-1: a sleeper that saw `EXCHANGE` loses no wake, because it raises its flag *before* it
//! calls `fenced`. If it saw `EXCHANGE`, it called before the fence between `FENCING` and `LIGHT`,
//! so its flag was up by then, and every sequence starts later and sees the flag.
//!
//! **Threads that may use it (LIGHT-2).** Each thread asks the kernel once whether its area is
//! registered and keeps the answer in its thread-local state. A thread made by a raw `clone` has
//! its own thread-local state and asks for itself; the child of a fork inherits registration and
//! answer. The child of a `vfork`, or of a `clone` with `CLONE_VM` and without `CLONE_SETTLS`,
//! shares its parent's thread-local state, answer included, and is not registered. Without a system
//! call, a thread can't distinguish the two cases. So a thread that makes such a child calls
//! [`renounce`] first, or ensures that the child locks nothing; POSIX allows a `vfork` child
//! nothing but `exec` and `_exit`.
//!
//! **Later failures.** A filter that is installed after the switch may refuse `membarrier`:
//! `heavy_fence` then fails, and the sleeper must not sleep for long. Programs whose filter kills
//! for the call must not enable light mode. An aborted sequence counts as "not stored", so the
//! unlocker exchanges and a debugger that steps through it makes progress.
//!
//! **Costs.** A fence interrupts every CPU that runs the process, one fence at a time on the whole
//! machine. So fences are rationed: fences beyond [`FENCES_PER_SECOND`] are refused, and the
//! refused sleepers sleep only briefly.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use antiphon_platform::{Clock, Unsupported};

use crate::{clock, fencer, local, membarrier, rseq};

const EXCHANGE: u32 = 0;
const PROBING: u32 = 1;
const FENCING: u32 = 2;
const LIGHT: u32 = 3;
/// Added to a mode.
const TOLD: u32 = 4;

static MODE: AtomicU32 = AtomicU32::new(EXCHANGE);

/// Whether a thread may unlock lightly, in its thread-local state; 0 means not asked yet.
const MAY: u32 = 1;
const MAY_NOT: u32 = 2;

/// The largest number of fences of a process in one second.
pub const FENCES_PER_SECOND: u32 = 2_000;

/// The current second in the high half, the number of its fences in the low half.
static FENCES: AtomicU64 = AtomicU64::new(0);

/// See [`LightUnlock::light`](antiphon_platform::LightUnlock::light).
#[inline]
pub(crate) fn light() -> bool {
    // Acquire: the location of the areas; pairs with the release in `enable_light`.
    if MODE.load(Acquire) != LIGHT {
        return false;
    }
    may()
}

/// Returns whether unlockers exchange and tell nothing: by one load, for callers that have a way of
/// their own for that.
#[inline(always)]
#[must_use]
pub fn is_plain() -> bool {
    // Relaxed: a caller that sees an older mode exchanges, which is right in each.
    MODE.load(Relaxed) == EXCHANGE
}

/// Turns telling of critical sections on, for good: unlockers exchange and tell from now on.
pub(crate) fn tell_sections() {
    // Relaxed: a thread that sees it later tells later.
    MODE.fetch_or(TOLD, Relaxed);
}

/// Returns whether the process tells its critical sections.
#[inline(always)]
pub(crate) fn are_sections_told() -> bool {
    // Relaxed: as above.
    MODE.load(Relaxed) & TOLD != 0
}

/// Returns whether the calling thread is registered. Only the first call asks the kernel.
#[inline]
fn may() -> bool {
    match local::with(|thread| thread.light.load(Relaxed)) {
        MAY => true,
        MAY_NOT => false,
        _ => ask(),
    }
}

/// Makes the calling thread, and all that share its thread-local state, unlock by exchange from now
/// on, for good. Must be called before making a child that will share this state (LIGHT-2). May be
/// called in signal handlers.
pub fn renounce() {
    local::with(|thread| thread.light.store(MAY_NOT, Relaxed));
}

/// See [`LightUnlock::fenced`](antiphon_platform::LightUnlock::fenced).
#[inline]
pub(crate) fn fenced() -> bool {
    // The caller has raised its flag: the compiler must not move the load of the mode before that.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    // Relaxed: LIGHT-1 rests on the heavy fence between the modes, not on this load.
    matches!(MODE.load(Relaxed) & !TOLD, FENCING | LIGHT)
}

#[cold]
#[inline(never)]
fn ask() -> bool {
    let may = rseq::registered();
    local::with(|thread| thread.light.store(if may { MAY } else { MAY_NOT }, Relaxed));
    may
}

/// See [`LightUnlock::heavy_fence`](antiphon_platform::LightUnlock::heavy_fence). Works in each
/// mode: a pool without light threads fences, too.
pub(crate) fn heavy_fence() -> Result<(), Unsupported> {
    ration(&FENCES, clock::now(Clock::Monotonic) / 1_000_000_000)?;
    membarrier::fence()
}

/// Counts a fence in `second`, unless the limit of that second is reached.
fn ration(fences: &AtomicU64, second: u64) -> Result<(), Unsupported> {
    // The low half of the second is enough to distinguish it from the last one.
    let second = second & u64::from(u32::MAX);
    let mut seen = fences.load(Relaxed);
    loop {
        let count = if seen >> 32 == second { seen as u32 } else { 0 };
        if count >= FENCES_PER_SECOND {
            return Err(Unsupported);
        }
        let new = second << 32 | u64::from(count + 1);
        match fences.compare_exchange_weak(seen, new, Relaxed, Relaxed) {
            Ok(_) => return Ok(()),
            Err(now) => seen = now,
        }
    }
}

/// Switches this process to light mode for good, if the kernel and the C library can do it.
///
/// Probes everything first: that glibc has registered the calling thread for restartable sequences,
/// that `membarrier` works, and that it really aborts a sequence in another thread. Blocks for some
/// microseconds, during which there is a thread that the C library doesn't know of. Uses the
/// dynamic linker, so it must not be called in signal handlers. Call it before a system-call filter
/// is installed, and read the module page on such filters and `vfork`.
///
/// # Errors
///
/// [`Unsupported`] if any of these is missing, the calling thread has renounced light mode, or
/// another thread is probing right now; the process then stays in exchange mode.
pub fn enable_light() -> Result<(), Unsupported> {
    match change(EXCHANGE, PROBING) {
        Err(LIGHT) => return Ok(()),
        Err(_) => return Err(Unsupported),
        Ok(_) => {}
    }
    if let Err(unsupported) = probe() {
        // No other thread changes the mode while one is probing.
        let _ = change(PROBING, EXCHANGE);
        return Err(unsupported);
    }
    let _ = change(PROBING, FENCING);
    // LIGHT-1: from here on no thread sees an older mode. The fence has just worked; if it fails
    // now, sleepers keep trying without success and no thread is light, which is slow but correct.
    membarrier::fence()?;
    // The location of the areas is published, too: pairs with the acquire in `light`.
    let _ = change(FENCING, LIGHT);
    Ok(())
}

/// Changes the mode, and leaves `TOLD` as it is. Returns the mode that there was as an error, if it
/// was not `from`.
fn change(from: u32, to: u32) -> Result<u32, u32> {
    // Release: what is done before the change; pairs with the acquires here and in `light`.
    MODE.fetch_update(AcqRel, Acquire, |now| (now & !TOLD == from).then_some(to | now & TOLD))
        .map_err(|now| now & !TOLD)
}

fn probe() -> Result<(), Unsupported> {
    rseq::find()?;
    if !may() {
        return Err(Unsupported);
    }
    membarrier::register()?;
    if fence_aborts() { Ok(()) } else { Err(Unsupported) }
}

/// Returns whether the fence of another thread aborts a sequence of this thread.
fn fence_aborts() -> bool {
    /// About ten milliseconds.
    const ROUNDS: u64 = 1 << 18;
    // SAFETY: `probe` has just checked that this thread is registered.
    let aborted = || (0..100).any(|_| unsafe { rseq::aborted_within(ROUNDS) });
    fencer::while_fencing(aborted).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_rationed_by_the_second() {
        let fences = AtomicU64::new(0);
        for second in [7, 8, 7 << 32 | 9] {
            assert!((0..FENCES_PER_SECOND).all(|_| ration(&fences, second).is_ok()));
            assert_eq!(ration(&fences, second), Err(Unsupported));
        }
    }
}
