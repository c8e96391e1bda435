//! A connection without a wait, and a registration that owns its page: for an event loop,
//! which must not block, and which may lose its scheduler at any time.

use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use crate::client::{Hints, SCHED_EXT, Thread, become_of, receive};

/// A connection to a scheduler that has not answered yet.
#[derive(Debug)]
pub struct Connecting(UnixStream);

impl Connecting {
    /// Connects to the scheduler that listens at `socket`. Never blocks, and allocates nothing.
    ///
    /// # Errors
    ///
    /// There is no scheduler, or too many connections wait for it.
    pub fn begin(socket: &Path) -> io::Result<Self> {
        let path = socket.as_os_str().as_bytes();
        // SAFETY: all zero is an address.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // The last byte ends the path.
        if path.len() >= address.sun_path.len() || path.contains(&0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = *from as libc::c_char;
        }
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: makes a descriptor, which nothing else knows.
        let file = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(file) });
        let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: reads an address of that size.
        let done = unsafe { libc::connect(file, ptr::from_ref(&address).cast(), bytes) };
        if done == 0 { Ok(Self(stream)) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns the process's page if the scheduler has answered; `None` if it has not. Never
    /// blocks, and allocates nothing: a lock may ask.
    ///
    /// # Errors
    ///
    /// The scheduler refuses this process, or its page has another version.
    pub fn answer(&self) -> io::Result<Option<Hints>> {
        match receive(&self.0) {
            Ok(both) => Hints::of(both).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A thread's registration. It stays on its thread, and puts the thread back under its former
/// policy when it is dropped.
#[derive(Debug)]
pub struct Registered {
    hints: Arc<Hints>,
    number: usize,
    former: i32,
    stays: PhantomData<*const ()>,
}

impl Registered {
    /// Registers the calling thread, as [`Hints::register`] does.
    ///
    /// # Errors
    ///
    /// As [`Hints::register`]; the thread is of a real-time policy, which it keeps.
    pub fn new(hints: Arc<Hints>) -> io::Result<Self> {
        // SAFETY: returns a number of the calling thread.
        let former = unsafe { libc::sched_getscheduler(0) };
        if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE, SCHED_EXT].contains(&former) {
            let what = "the thread is of a real-time policy";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let number = hints.enrol()?;
        let registered = Self { hints, number, former, stays: PhantomData };
        become_of(SCHED_EXT)?;
        Ok(registered)
    }

    /// Takes a slot without a scheduler, and leaves the thread's policy alone: for a program that
    /// plays the scheduler itself.
    #[must_use]
    pub fn without_scheduler(hints: Arc<Hints>, number: usize) -> Option<Self> {
        hints.slot(number)?;
        Some(Self { hints, number, former: SCHED_EXT, stays: PhantomData })
    }

    /// Returns the thread's slot. A child of a fork has no page, and must not use it.
    ///
    /// # Panics
    ///
    /// Never: the number was checked when the slot was taken.
    #[must_use]
    pub fn thread(&self) -> Thread<'_> {
        let slot = self.hints.slot(self.number).expect("the number was checked");
        Thread { slot, stays: PhantomData }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.former != SCHED_EXT && self.hints.is_own() {
            // It can't be refused: each thread may be of the policy that it had.
            let _ = become_of(self.former);
        }
    }
}
