//! Which CPU a thread runs on, as the thread wishes.

use antiphon_platform::Unsupported;

use crate::sys;

/// CPUs that can be named.
const CPUS: u32 = 2048;
const WORDS: usize = CPUS as usize / 64;

/// Has the calling thread run on CPU `cpu` only, from now on. A system call.
///
/// # Errors
///
/// [`Unsupported`] if there is no such CPU, it is offline or not in the control group's set, or a
/// filter of system calls forbids it.
pub fn pin(cpu: u32) -> Result<(), Unsupported> {
    if cpu >= CPUS {
        return Err(Unsupported);
    }
    let mut set = [0_u64; WORDS];
    set[cpu as usize / 64] = 1 << (cpu % 64);
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
    (0..CPUS).filter(|&cpu| pin(cpu).is_ok()).collect()
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
                // SAFETY: takes nothing.
                assert_eq!(unsafe { libc::sched_getcpu() }, cpu as i32);
            }
            assert_eq!(pin(CPUS), Err(Unsupported));
        });
        thread.join().expect("it has not panicked");
    }
}
