//! Which CPU a thread runs on, as the thread wishes.

use antiphon_platform::Unsupported;

use crate::sys;

/// As many CPUs as a kernel can be built for on any machine of ours (`NR_CPUS`).
const MOST_CPUS: usize = 8192;

/// Pins the calling thread to CPU `cpu`. A system call and nothing else, so it
/// may be called in the child of a fork.
///
/// # Errors
///
/// [`Unsupported`] if there is no such CPU, it is offline or not in the control group's set, or a
/// filter of system calls forbids it.
pub fn pin(cpu: u32) -> Result<(), Unsupported> {
    // Bits that the kernel has and we do not are zero to it, and those beyond its own are nothing.
    let mut set = [0_u64; MOST_CPUS / 64];
    *set.get_mut(cpu as usize / 64).ok_or(Unsupported)? = 1 << (cpu % 64);
    let args = [0, size_of_val(&set), set.as_ptr() as usize];
    // SAFETY: the set is ours, and as long as we say.
    let done = unsafe { sys::call(libc::SYS_sched_setaffinity, args) };
    done.map(drop).map_err(|_| Unsupported)
}

/// The CPUs that the calling thread may [`pin`] itself to, whatever its affinity is: those that
/// are online, in the control group's set. It is left on one of them; so ask in a thread that has
/// nothing else to do.
#[must_use]
pub fn usable() -> Vec<u32> {
    let words = words_that_do(read);
    (0..words * 64).filter(|&cpu| pin(cpu).is_ok()).collect()
}

/// The CPUs that the calling thread may run on, by its affinity; those that threads which it starts
/// may run on, too.
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

/// Reads the set of the calling thread, unless that has not room enough.
fn read(set: &mut [u64]) -> bool {
    let args = [0, size_of_val(set), set.as_mut_ptr() as usize];
    // SAFETY: the set is ours, and as long as we say.
    unsafe { sys::call(libc::SYS_sched_getaffinity, args) }.is_ok()
}

/// How many words a set of CPUs needs: the kernel refuses one in which not all of them can be
/// named.
fn words_that_do(mut accepts: impl FnMut(&mut [u64]) -> bool) -> u32 {
    /// 65 536 CPUs, which no kernel can have: a filter refuses whatever we ask.
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
                // SAFETY: takes nothing.
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
