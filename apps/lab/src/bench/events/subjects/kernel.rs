//! Kernel objects that can wake a thread: an event counter, and a pipe.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;

use super::Mechanism;

/// `eventfd`: writes add to its counter, and a read resets it to 0.
pub struct EventFd(File);

impl Mechanism for EventFd {
    fn new() -> Result<Self, String> {
        // SAFETY: `eventfd` takes plain numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(format!("no eventfd: {}", io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is open, and no other code has it.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    #[inline]
    fn signal(&self) {
        write(&self.0, &1_u64.to_ne_bytes());
    }

    #[inline]
    fn wait(&self) {
        read(&self.0, &mut [0; 8]);
    }
}

/// A pipe in which each byte is an event.
pub struct Pipe {
    reader: io::PipeReader,
    writer: io::PipeWriter,
}

impl Mechanism for Pipe {
    fn new() -> Result<Self, String> {
        let (reader, writer) = io::pipe().map_err(|error| format!("no pipe: {error}"))?;
        Ok(Self { reader, writer })
    }

    #[inline]
    fn signal(&self) {
        write(&self.writer, &[1]);
    }

    #[inline]
    fn wait(&self) {
        read(&self.reader, &mut [0]);
    }
}

/// Neither end is closed or full while the mechanism lives, so an error is a defect.
#[inline]
fn write(mut to: impl io::Write, bytes: &[u8]) {
    to.write_all(bytes).expect("there is room for an event, and a reader");
}

#[inline]
fn read(mut from: impl io::Read, bytes: &mut [u8]) {
    from.read_exact(bytes).expect("there is a writer");
}
