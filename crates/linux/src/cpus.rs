//! The number of CPUs that this process may use: its threads' affinities, and its control group's
//! quota.
//!
//! An affinity belongs to a thread, and many programs pin each thread to a different CPU. So the
//! CPUs of the process are those of all threads that have asked so far: each thread adds its own
//! CPUs when it first asks, which is one system call in a thread's life. A later reduction of an
//! affinity is not noticed here; then the other signs of crowding show it.
//!
//! The quota is read once, from files. By then, a program may have installed a filter that kills it
//! for opening a file: such programs call [`survey`] first, and so do programs whose quota changes.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::{cgroup, counter, local, pretend, sys, topology};

/// Room for 2048 CPUs; on a machine with more, the affinity is ignored.
const WORDS: usize = 32;
const NO_LIMIT: u32 = u32::MAX;

/// The CPUs on which any thread that has asked may run.
static SEEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Number of CPUs in [`SEEN`]; 0 means not counted yet.
static AFFINE: AtomicU32 = AtomicU32::new(0);
/// The quota, in CPUs; 0 means not read yet.
static QUOTA: AtomicU32 = AtomicU32::new(0);

/// The number of CPUs on which threads of this process can run at the same time; at least 1.
pub(crate) fn available() -> u32 {
    if let Some(machine) = pretend::machine() {
        return machine.cpus.into();
    }
    if local::with(|thread| thread.counted.load(Relaxed)) == 0 {
        count_own();
    }
    let quota = QUOTA.load(Relaxed);
    let quota = if quota == 0 { read_quota() } else { quota };
    AFFINE.load(Relaxed).min(quota).max(1)
}

/// Inspects the machine now: NUMA nodes, the caller's affinity, the control group's quota, and
/// whether counters can be clocks.
///
/// Otherwise, a lock or a clock does so when it first needs the result. Call this at the start of a
/// program that will forbid itself to open files, or after a change of quota. Opens and reads a few
/// files of `/proc` and `/sys`. A quota that can't be read means no limit; nodes that can't be read
/// mean one node.
pub fn survey() {
    count_own();
    read_quota();
    topology::count();
    let _ = counter::source();
}

#[cold]
#[inline(never)]
fn read_quota() -> u32 {
    let quota = cgroup::quota().unwrap_or(NO_LIMIT);
    QUOTA.store(quota, Relaxed);
    quota
}

#[cold]
#[inline(never)]
fn count_own() {
    local::with(|thread| thread.counted.store(1, Relaxed));
    let mut own = [0_u64; WORDS];
    let args = [0, size_of_val(&own), own.as_mut_ptr() as usize];
    // SAFETY: the set is a local of the given size.
    let count = match unsafe { sys::call(libc::SYS_sched_getaffinity, args) } {
        Ok(_) => SEEN
            .iter()
            .zip(own)
            .map(|(seen, own)| (seen.fetch_or(own, Relaxed) | own).count_ones())
            .sum(),
        // The count that other threads have stored stays valid until one of them stores a larger
        // one.
        Err(_) if AFFINE.load(Relaxed) != 0 => return,
        Err(_) => NO_LIMIT,
    };
    // Racing counts differ by the CPUs that the other thread added; the larger count has seen more.
    AFFINE.fetch_max(count, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_cpu_and_no_more_than_the_system_counts() {
        let system = std::thread::available_parallelism().map_or(1, |count| count.get());
        let own = available() as usize;
        assert!(own >= 1 && own <= system.max(1), "{own} of {system}");
    }

    #[test]
    fn threads_pinned_apart_add_up() {
        let pinned = |cpu: usize| {
            std::thread::spawn(move || {
                let mut set = [0_u64; WORDS];
                set[cpu / 64] = 1 << (cpu % 64);
                // SAFETY: the set has the given size.
                let done =
                    unsafe { libc::sched_setaffinity(0, size_of_val(&set), set.as_ptr().cast()) };
                available();
                done == 0
            })
        };
        let both = [pinned(0), pinned(1)].map(|thread| thread.join().unwrap_or(false));
        let all = both.into_iter().map(u32::from).sum::<u32>();
        assert!(AFFINE.load(Relaxed) >= all);
    }
}
