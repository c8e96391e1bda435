//! A connection without a wait, and a registration that owns its page: for an event loop,
//! which must not block, and which may lose its scheduler at any time.

use std::io;
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use crate::client::{Hints, SCHED_EXT, Thread, become_of};
use crate::descriptors::receive;
use crate::dial;
use crate::mark::Mark;

/// A connection to a scheduler that has not answered yet.
#[derive(Debug)]
pub struct Connecting {
    stream: UnixStream,
    mark: Mark,
}

impl Connecting {
    /// Connects to the scheduler that listens at `socket`. Never blocks, and allocates nothing.
    ///
    /// # Errors
    ///
    /// There is no scheduler, or too many connections wait for it.
    pub fn begin(socket: &Path) -> io::Result<Self> {
        let stream = dial::at_once(socket)?;
        Ok(Self { stream, mark: Mark::new()? })
    }

    /// Returns whether this process has connected: it is not a child of the one that has, which
    /// the answer is for. No system call.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.mark.is_own()
    }

    /// Returns the process's page if the scheduler has answered; `None` if it has not. Never
    /// blocks, and allocates nothing: a lock may ask.
    ///
    /// # Errors
    ///
    /// The scheduler refuses this process, or its page has another version; or the caller is a
    /// child of the process that has connected (`NotConnected`).
    pub fn answer(&self) -> io::Result<Option<Hints>> {
        if !self.is_own() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match receive(&self.stream) {
            Ok(both) => Hints::of(both, Mark::new()?).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A thread's registration. It stays on its thread. When it is dropped, it puts the thread back
/// under its former policy, if the thread still has the policy that this value has given it.
#[derive(Debug)]
pub struct Registered {
    hints: Arc<Hints>,
    number: usize,
    /// The policy that this value has changed.
    former: Option<i32>,
    stays: PhantomData<*const ()>,
}

impl Registered {
    /// Registers the calling thread, as [`Hints::register`] does.
    ///
    /// # Errors
    ///
    /// As [`Hints::register`]; the thread is of a real-time policy, which it keeps.
    pub fn new(hints: Arc<Hints>) -> io::Result<Self> {
        let former = policy()?;
        let (kind, flag) = (former & !RESET_ON_FORK, former & RESET_ON_FORK);
        if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE, SCHED_EXT].contains(&kind) {
            let what = "the thread is of a real-time policy";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let number = hints.enrol()?;
        let mut registered = Self { hints, number, former: None, stays: PhantomData };
        if kind != SCHED_EXT {
            become_of(SCHED_EXT | flag)?;
            registered.former = Some(former);
        }
        Ok(registered)
    }

    /// Takes a slot without a scheduler, and leaves the thread's policy alone: for a program that
    /// plays the scheduler itself.
    #[must_use]
    pub fn without_scheduler(hints: Arc<Hints>, number: usize) -> Option<Self> {
        hints.slot(number)?;
        Some(Self { hints, number, former: None, stays: PhantomData })
    }

    /// Returns whether this process has registered the thread: it is not a child of the one that
    /// has. No system call.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.hints.is_own()
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
        let Some(former) = self.former.filter(|_| self.is_own()) else { return };
        // A policy that the thread was given meanwhile is not this value's, a real-time one for
        // example.
        if policy().is_ok_and(|now| now & !RESET_ON_FORK == SCHED_EXT) {
            // It can't be refused: each thread may be of the policy that it had.
            let _ = become_of(former);
        }
    }
}

/// The flag beside a policy: threads that this one starts are ordinary.
const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;

/// Returns the policy of the calling thread, with that flag.
fn policy() -> io::Result<i32> {
    // SAFETY: returns a number of the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy < 0 { Err(io::Error::last_os_error()) } else { Ok(policy) }
}
