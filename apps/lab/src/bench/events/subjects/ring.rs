//! `io_uring`: a message from the ring of one thread to that of another.

use std::os::fd::AsRawFd as _;
use std::sync::{Mutex, PoisonError};

use io_uring::{IoUring, opcode, types};

use super::Mechanism;

/// Two rings, one for each thread. The mutexes only satisfy the type system and are never
/// contended.
pub struct Ring {
    sender: Mutex<IoUring>,
    receiver: Mutex<IoUring>,
    target: types::Fd,
}

/// Entries of a ring, which holds one message at a time.
const ENTRIES: u32 = 2;

impl Ring {
    fn tell(&self) -> std::io::Result<()> {
        let message = opcode::MsgRingData::new(self.target, 1, 1, None).build();
        let mut ring = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the message borrows nothing, and the target stays open as long as this ring.
        let pushed = unsafe { ring.submission().push(&message) };
        pushed.map_err(|_| std::io::Error::other("the submission queue is full"))?;
        ring.submit_and_wait(1)?;
        let result = ring.completion().next().map_or(0, |done| done.result());
        if result < 0 { Err(std::io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }

    fn receive(&self) -> std::io::Result<()> {
        let mut ring = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        while ring.completion().next().is_none() {
            match ring.submit_and_wait(1) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Mechanism for Ring {
    fn new() -> Result<Self, String> {
        let refused = |error: std::io::Error| {
            format!(
                "no message between rings of io_uring ({error}): it takes Linux 5.18, and \
                 kernel.io_uring_disabled = 0 with no seccomp filter against it"
            )
        };
        let (sender, receiver) =
            (IoUring::new(ENTRIES).map_err(refused)?, IoUring::new(ENTRIES).map_err(refused)?);
        let target = types::Fd(receiver.as_raw_fd());
        let ring = Self { sender: Mutex::new(sender), receiver: Mutex::new(receiver), target };
        // A kernel may support rings but not messages between them.
        ring.tell().and_then(|()| ring.receive()).map_err(refused)?;
        Ok(ring)
    }

    #[inline]
    fn signal(&self) {
        self.tell().expect("the kernel took a message before");
    }

    #[inline]
    fn wait(&self) {
        self.receive().expect("the kernel gave a message before");
    }
}
