//! `membarrier(2)`: a full fence in every running thread of the process, paid for by one thread.
//!
//! The expedited private forms interrupt the CPUs that run this process and return when all have
//! passed a fence; a thread that does not run has passed one when it was switched out. The rseq
//! form also aborts the restartable sequences that it interrupts (Linux 5.10). A process registers
//! its intent first.

use antiphon_platform::Unsupported;

use crate::sys::{self, Errno};

const QUERY: usize = 0;
/// The command that fences.
pub(crate) const PRIVATE_EXPEDITED_RSEQ: usize = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: usize = 1 << 8;

/// Registers the process, and makes one fence to check that it works.
///
/// # Errors
///
/// [`Unsupported`] if the kernel has no such fence or a filter refuses it.
pub(crate) fn register() -> Result<(), Unsupported> {
    let wanted = PRIVATE_EXPEDITED_RSEQ | REGISTER_PRIVATE_EXPEDITED_RSEQ;
    let known = command(QUERY).map_err(|_| Unsupported)?;
    if known & wanted != wanted {
        return Err(Unsupported);
    }
    command(REGISTER_PRIVATE_EXPEDITED_RSEQ).map_err(|_| Unsupported)?;
    fence()
}

/// Fences all running threads of this process and aborts the sequences that they are in.
///
/// # Errors
///
/// [`Unsupported`] if the kernel refuses.
pub(crate) fn fence() -> Result<(), Unsupported> {
    match command(PRIVATE_EXPEDITED_RSEQ) {
        Ok(_) => Ok(()),
        // Not registered: the address space is new after a fork, and some kernels drop the
        // registration.
        Err(Errno(libc::EPERM)) => {
            let again = command(REGISTER_PRIVATE_EXPEDITED_RSEQ)
                .and_then(|_| command(PRIVATE_EXPEDITED_RSEQ));
            again.map(|_| ()).map_err(|_| Unsupported)
        }
        Err(_) => Err(Unsupported),
    }
}

fn command(command: usize) -> Result<usize, Errno> {
    // SAFETY: takes no pointers.
    unsafe { sys::call(libc::SYS_membarrier, [command, 0, 0]) }
}
