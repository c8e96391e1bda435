//! The identity of the process: a page that the kernel wipes when the process forks.
//!
//! A child of `fork` inherits lock words that hold names of its parent's waiters. `pthread_atfork`
//! handlers don't solve this: they run in the order of their registration, so another handler may
//! lock before ours runs; `_Fork` and a raw `clone` run none. So the epoch is in a page under
//! `MADV_WIPEONFORK`: the kernel zeroes the child's copy before any of the child's code runs, and
//! the first thread that reads it adopts a new epoch:
//!
//! ```text
//!   0 ── first look ──► ADOPTING ── arena emptied ──► 1..=1023 ── fork, in the child ──► 0
//! ```
//!
//! One thread adopts, with signals blocked, so that no handler on the same thread can wait for it.
//! The new epoch is random (siblings rarely share one) and never that of a parent or another
//! ancestor, which are remembered in ordinary memory: 1022 forks deep, then starting over from
//! there. A `vfork` or `CLONE_VM` child shares the page with all other memory: the same names are
//! valid there, and it has the same epoch.
//!
//! Linux has `MADV_WIPEONFORK` since 4.14. Where it is refused (older kernels, some sandboxes)
//! there is no page, no node is ever handed out, and all callers wait without a node: correct, but
//! less fair. Relying on `pthread_atfork` there instead would need an allocation in a lock's first
//! slow path, and would still miss `_Fork`.

use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use antiphon_platform::{Clock, Deadline};

use crate::{ARENA, clock, futex, pages, sys, tsc};

/// State of the process that its child must not inherit: all of it is zero after a fork.
#[repr(C)]
pub(crate) struct Process {
    epoch: AtomicU32,
    _line: [u32; 15],
    /// Number of threads that spin now. On its own cache line, because it changes often.
    pub(crate) spinners: AtomicI32,
    _line_too: [u32; 15],
    /// The time at which a spinning thread last lost its CPU, in ticks; 0 is never.
    pub(crate) preempted: AtomicU64,
    /// The time by which the threads that were woken together are all up, in ticks; 0 is never.
    pub(crate) coming_up: AtomicU64,
    /// Whether a thread maps nodes now.
    pub(crate) mapping: AtomicU32,
}

const ADOPTING: u32 = u32::MAX;
const EPOCHS: u32 = 1023;
/// The largest page size of Linux, so that every page size divides it.
const PAGE: usize = 64 << 10;

/// Null: not mapped yet. [`refused`]: there is no such page.
static PAGE_OF_PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// The substitute where there is no page. Its epoch is never used.
static WITHOUT_PAGE: Process = Process {
    epoch: AtomicU32::new(0),
    _line: [0; 15],
    spinners: AtomicI32::new(0),
    _line_too: [0; 15],
    preempted: AtomicU64::new(0),
    coming_up: AtomicU64::new(0),
    mapping: AtomicU32::new(0),
};
/// The epochs of this process and its ancestors, back to the last time that all epochs were used
/// up; in ordinary memory, so a child inherits those of its parent.
static ANCESTORS: Ancestors = Ancestors::new();

fn refused() -> *mut Process {
    without_provenance_mut(1)
}

/// The epoch of this process, or 1 where [`wiped_epoch`] is `None`, in which case there are no
/// names.
#[inline]
pub(crate) fn epoch() -> u32 {
    wiped_epoch().unwrap_or(1)
}

/// The epoch of this process. `None` where the kernel can't tell a child from its parent.
#[inline]
pub(crate) fn wiped_epoch() -> Option<u32> {
    let process = page()?;
    // Acquire: the adopter's changes to the arena; pairs with the release in `adopt`.
    let epoch = process.epoch.load(Acquire);
    Some(if matches!(epoch, 1..=EPOCHS) { epoch } else { adopt(process) })
}

/// The wiped-on-fork state of this process.
#[inline]
pub(crate) fn process() -> &'static Process {
    page().unwrap_or(&WITHOUT_PAGE)
}

#[inline]
fn page() -> Option<&'static Process> {
    // Acquire: the mapped page; pairs with the release in `map`.
    let seen = PAGE_OF_PROCESS.load(Acquire);
    let page = if seen.is_null() { map() } else { seen };
    // SAFETY: a pointer other than null and the mark points to a mapped, zero-initialised page that
    // is never unmapped, and all fields are atomics.
    if page == refused() { None } else { Some(unsafe { &*page }) }
}

#[cold]
#[inline(never)]
fn map() -> *mut Process {
    const { assert!(size_of::<Process>() <= PAGE) };
    let mapped = pages::reserve(PAGE).and_then(|page| {
        let usable = pages::wipe_on_fork(page, PAGE) && pages::open(page, PAGE);
        if !usable {
            pages::unmap(page, PAGE);
        }
        usable.then_some(page.cast::<Process>())
    });
    let new = mapped.unwrap_or(refused());
    // Release: publishes the mapped page; pairs with the load in `page`. Acquire: the page of a
    // thread that was faster.
    match PAGE_OF_PROCESS.compare_exchange(null_mut(), new, Release, Acquire) {
        Ok(_) => new,
        Err(theirs) => {
            if let Some(page) = mapped {
                pages::unmap(page.cast(), PAGE);
            }
            theirs
        }
    }
}

/// Gives this process an epoch, or waits for the thread that is doing so.
#[cold]
#[inline(never)]
fn adopt(process: &Process) -> u32 {
    loop {
        let signals = Blocked::all();
        let epoch = match process.epoch.compare_exchange(0, ADOPTING, Acquire, Acquire) {
            Ok(_) => {
                ARENA.forked();
                let epoch = ANCESTORS.adopt(entropy());
                // Release: the emptied arena; pairs with the load in `wiped_epoch`. And only after
                // the epoch was added to the ancestors, because another thread may fork now.
                process.epoch.store(epoch, Release);
                epoch
            }
            Err(now) => now,
        };
        drop(signals);
        if epoch != ADOPTING {
            return epoch;
        }
        // No thread wakes this sleep: the adopter needs a microsecond, unless it has lost its CPU.
        let ns = clock::now(Clock::Monotonic) + 100_000;
        let until = Some(Deadline { clock: Clock::Monotonic, ns });
        let _ = futex::wait(&process.epoch, futex::PRIVATE, ADOPTING, until);
    }
}

/// The epochs that this process and its ancestors adopted, one bit each, and the last one. Only the
/// adopter writes it, so all accesses are relaxed.
struct Ancestors {
    had: [AtomicU32; EPOCHS.div_ceil(u32::BITS) as usize],
    last: AtomicU32,
}

impl Ancestors {
    const fn new() -> Self {
        Self { had: [const { AtomicU32::new(0) }; _], last: AtomicU32::new(0) }
    }

    /// Chooses an epoch that no ancestor has had; if all were used, an epoch that differs from the
    /// parent's.
    fn adopt(&self, entropy: u32) -> u32 {
        let first = entropy % EPOCHS;
        loop {
            let mut around = (first..EPOCHS).chain(0..first).map(|before| before + 1);
            if let Some(epoch) = around.find(|&epoch| !self.has(epoch)) {
                self.last.store(epoch, Relaxed);
                self.add(epoch);
                return epoch;
            }
            for word in &self.had {
                word.store(0, Relaxed);
            }
            self.add(self.last.load(Relaxed));
        }
    }

    fn has(&self, epoch: u32) -> bool {
        let (word, bit) = self.place(epoch);
        word.load(Relaxed) & bit != 0
    }

    fn add(&self, epoch: u32) {
        let (word, bit) = self.place(epoch);
        word.fetch_or(bit, Relaxed);
    }

    /// The word and the mask of an epoch's bit.
    fn place(&self, epoch: u32) -> (&AtomicU32, u32) {
        let number = epoch - 1;
        (&self.had[(number / u32::BITS) as usize], 1 << (number % u32::BITS))
    }
}

fn entropy() -> u32 {
    let ticks = tsc::ticks() ^ clock::now(Clock::Realtime).rotate_left(32);
    let mixed = (ticks ^ u64::from(crate::thread::ask())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

/// Blocks all signals of this thread until the value is dropped.
pub(crate) struct Blocked {
    /// The previous mask; `None` if the kernel refused, which it never does for these sets.
    before: Option<u64>,
}

/// The size of the kernel's signal set.
const SET: usize = size_of::<u64>();

impl Blocked {
    pub(crate) fn all() -> Self {
        let (all, mut before) = (u64::MAX, 0_u64);
        let how = libc::SIG_SETMASK as usize;
        let sets = [how, (&raw const all) as usize, (&raw mut before) as usize, SET];
        // SAFETY: both sets are locals of the given size, alive for the call.
        let done = unsafe { sys::call(libc::SYS_rt_sigprocmask, sets) };
        Self { before: done.is_ok().then_some(before) }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        let how = libc::SIG_SETMASK as usize;
        // SAFETY: the set is a local of the given size; no old set is requested. It can't fail, as
        // the same call with another set has just succeeded.
        let _ = unsafe {
            sys::call(libc::SYS_rt_sigprocmask, [how, (&raw const before) as usize, 0, SET])
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ancestor_has_the_epoch_and_when_all_had_one_the_parent_has_not() {
        for entropy in [0, 1, 5, 1022, 1023, u32::MAX - 1, u32::MAX] {
            let line = Ancestors::new();
            // The same number for all: the worst possible draw.
            let epochs: Vec<_> = (0..3 * EPOCHS).map(|_| line.adopt(entropy)).collect();
            assert!(epochs.iter().all(|epoch| (1..=EPOCHS).contains(epoch)));
            assert!(epochs.windows(2).all(|pair| pair[0] != pair[1]));
            let mut first = epochs[..EPOCHS as usize].to_vec();
            first.sort_unstable();
            assert!(first.into_iter().eq(1..=EPOCHS), "each once, before any comes again");
        }
    }

    #[test]
    fn the_epoch_is_constant() {
        let epoch = epoch();
        let others: Vec<_> =
            (0..8).map(|_| std::thread::spawn(super::epoch)).map(|t| t.join().ok()).collect();
        assert!(others.iter().all(|&other| other == Some(epoch)));
    }
}
