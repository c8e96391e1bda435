//! CPU affinity: pinning the calling thread, and the sets of CPUs that it may use.

use antiphon_platform::Unsupported;

use crate::sys;

/// The largest number of CPUs that a kernel can be built for on a supported machine (`NR_CPUS`).
const MOST_CPUS: usize = 8192;

/// Pins the calling thread to CPU `cpu`. It makes one system call and does nothing else, so it may
/// be called in the child of a fork.
///
/// # Errors
///
/// [`Unsupported`] if there is no such CPU, it is offline or not in the control group's set, or a
/// filter of system calls forbids it.
pub fn pin(cpu: u32) -> Result<(), Unsupported> {
    // The kernel takes missing bits as zero, and ignores bits beyond its own.
    let mut set = [0_u64; MOST_CPUS / 64];
    *set.get_mut(cpu as usize / 64).ok_or(Unsupported)? = 1 << (cpu % 64);
    let args = [0, size_of_val(&set), set.as_ptr() as usize];
    // SAFETY: the set is a local of the given size.
    let done = unsafe { sys::call(libc::SYS_sched_setaffinity, args) };
    done.map(drop).map_err(|_| Unsupported)
}

/// The CPUs to which the calling thread may [`pin`] itself, whatever its affinity is: those that
/// are online and in the control group's set. Leaves the thread pinned to one of them, so call it
/// in a thread that has nothing else to do.
#[must_use]
pub fn usable() -> Vec<u32> {
    let words = words_that_do(read);
    (0..words * 64).filter(|&cpu| pin(cpu).is_ok()).collect()
}

/// The CPUs that the calling thread may run on, by its affinity. Threads that it starts inherit the
/// set.
#[must_use]
pub fn allowed() -> Vec<u32> {
    let mut found = Vec::new();
    words_that_do(|set| {
        let done = read(set);
        let cpus = 0..set.len() as u32 * 64;
        found = cpus.filter(|&cpu| set[cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect();
        done
    });
    found
}

/// Reads the set of the calling thread into `set`; returns whether there was room enough.
fn read(set: &mut [u64]) -> bool {
    let args = [0, size_of_val(set), set.as_mut_ptr() as usize];
    // SAFETY: the set is a local of the given size.
    unsafe { sys::call(libc::SYS_sched_getaffinity, args) }.is_ok()
}

/// Number of 64-bit words that a set of CPUs needs: the kernel refuses a set with too few bits for
/// all its CPUs.
fn words_that_do(mut accepts: impl FnMut(&mut [u64]) -> bool) -> u32 {
    /// 65 536 CPUs, more than any kernel has: if this is refused, a filter refuses every call.
    const MOST: u32 = 1024;
    let mut words = 16;
    while words < MOST && !accepts(&mut vec![0; words as usize]) {
        words *= 2;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_wants_to_be() {
        let thread = std::thread::spawn(|| {
            let usable = usable();
            assert!(!usable.is_empty());
            for cpu in usable {
                assert_eq!(pin(cpu), Ok(()));
                assert_eq!(allowed(), [cpu]);
                // SAFETY: takes no arguments.
                assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
            }
            assert_eq!(pin(1 << 20), Err(Unsupported));
        });
        thread.join().expect("it has not panicked");
    }

    #[test]
    fn a_set_is_as_long_as_the_kernel_wants_it() {
        assert_eq!(words_that_do(|_| true), 16);
        assert_eq!(words_that_do(|set| set.len() * 64 >= 8192), 128);
        assert_eq!(words_that_do(|_| false), 1024);
    }
}
