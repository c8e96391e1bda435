//! `epoll(7)`: waiting for many files and for notifications by other threads.
//!
//! Each file is registered once, for both ways, and edge-triggered: the next wait reports each file
//! that becomes ready, once. So a wait changes no registration. Nor does a notification, which is a
//! write to an [`EventFd`] that is registered in the same way and never read: each write is an
//! edge.
//!
//! The crate `polling` does the same for more systems. In its version 3.11, each wait costs four
//! more system calls, for the files of its timer and its notifier (`Poller::wait_deadline` in
//! `src/epoll.rs`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use antiphon_platform::Deadline;

use crate::notify::{EventFd, left};
use crate::sys;

/// An `epoll` file, and the `eventfd` by which it is notified.
#[derive(Debug)]
pub struct Epoll {
    file: OwnedFd,
    bell: EventFd,
}

/// The condition under which a wait reports a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The file has become ready: reported once, until there is more.
    Edge,
    /// The file is ready: reported by each wait.
    Level,
}

/// The buffer for the events of a wait.
pub struct Events {
    all: Vec<libc::epoll_event>,
    ready: usize,
}

/// The readiness of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key of the file's registration.
    pub key: u64,
    /// There may be data to read, or end of file, or an error.
    pub read: bool,
    /// There may be room to write, or an error.
    pub write: bool,
    /// The other end was closed, or there is an error, or urgent data: a short read then does not
    /// mean that there is nothing more.
    pub odd: bool,
}

/// Set where the kernel supports only whole milliseconds.
static COARSE: AtomicBool = AtomicBool::new(false);

/// The key of the bell.
const BELL: u64 = u64::MAX;
pub(super) const READ: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLPRI) as u32;
pub(super) const WRITE: u32 = libc::EPOLLOUT as u32;
const ENDS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
/// Decodes the `EPOLL*` or `POLL*` bits of a file: returns whether it may be readable, and whether
/// it may be writable.
#[must_use]
pub const fn ways_of(bits: u32) -> (bool, bool) {
    (bits & (READ | ENDS) != 0, bits & (WRITE | ENDS) != 0)
}

const ODD: u32 = ENDS | (libc::EPOLLRDHUP | libc::EPOLLPRI) as u32;

impl Epoll {
    /// Creates an `epoll` file without registrations.
    ///
    /// # Errors
    ///
    /// The kernel's error: too many files are open.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes only a number.
        let file = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if file == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened above, and nothing else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let epoll = Self { file, bell: EventFd::new()? };
        epoll.register(epoll.bell.as_fd(), libc::EPOLLIN as u32, BELL)?;
        Ok(epoll)
    }

    /// Registers a file: from now on waits report it by the key. If it is ready already, the next
    /// wait does.
    ///
    /// # Errors
    ///
    /// The kernel's error: the file is always ready, and can't be waited for; or there is no
    /// memory, or no room (`fs.epoll.max_user_watches`).
    ///
    /// # Panics
    ///
    /// If the key is `u64::MAX`.
    pub fn add(&self, file: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        assert_ne!(key, BELL, "the bell's key");
        self.register(file, READ | WRITE, key)
    }

    /// Like [`add`](Self::add), for reading, writing or both, edge- or level-triggered.
    ///
    /// # Errors
    ///
    /// See [`add`](Self::add).
    ///
    /// # Panics
    ///
    /// If the key is `u64::MAX`.
    pub fn add_as(
        &self,
        file: BorrowedFd<'_>,
        key: u64,
        (read, write): (bool, bool),
        trigger: Trigger,
    ) -> io::Result<()> {
        assert_ne!(key, BELL, "the bell's key");
        let ways = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        match trigger {
            Trigger::Edge => self.register(file, ways, key),
            Trigger::Level => self.control(file, ways, key),
        }
    }

    fn register(&self, file: BorrowedFd<'_>, ways: u32, key: u64) -> io::Result<()> {
        self.control(file, ways | libc::EPOLLET as u32, key)
    }

    fn control(&self, file: BorrowedFd<'_>, events: u32, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: key };
        let (epoll, file) = (self.file.as_raw_fd(), file.as_raw_fd());
        // SAFETY: both files are open, and the event is valid to read.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, file, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Removes a registration. Must be called before the file is closed, because a clone of the
    /// descriptor would keep the registration. No wait that begins after this reports the file.
    pub fn remove(&self, file: BorrowedFd<'_>) {
        let (epoll, file) = (self.file.as_raw_fd(), file.as_raw_fd());
        // SAFETY: both files are open. An error means that there is no registration.
        let _ = unsafe {
            let remove = libc::EPOLL_CTL_DEL as usize;
            sys::call(libc::SYS_epoll_ctl, [epoll as usize, remove, file as usize, 0])
        };
    }

    /// Waits until a file is ready, another thread notifies, or the deadline has passed; a deadline
    /// in the past means a poll. May return early, without events. Use it from one thread at a
    /// time: otherwise it is undefined which thread gets which event.
    ///
    /// # Errors
    ///
    /// The kernel's error. It means that the program has closed file descriptors that it does not
    /// own.
    pub fn wait(&self, events: &mut Events, deadline: Option<Deadline>) -> io::Result<()> {
        events.ready = 0;
        let left = left(deadline);
        match self.wait_for(events, left.as_ref()) {
            Ok(ready) => events.ready = ready,
            Err(sys::Errno(libc::EINTR)) => {}
            Err(sys::Errno(code)) => return Err(io::Error::from_raw_os_error(code)),
        }
        Ok(())
    }

    /// Returns whether the kernel (before 5.11) was found to support only whole milliseconds. Waits
    /// then end up to 1 ms late; a caller that needs better adds a [`TimerFd`](super::TimerFd) to
    /// its files.
    #[must_use]
    pub fn is_coarse() -> bool {
        // Relaxed: as in `wait_for`.
        COARSE.load(Relaxed)
    }

    fn wait_for(
        &self,
        events: &mut Events,
        left: Option<&libc::timespec>,
    ) -> Result<usize, sys::Errno> {
        let file = self.file.as_raw_fd() as usize;
        let (room, most) = (events.all.as_mut_ptr() as usize, events.all.len());
        // Relaxed: a property of the machine, detected again by a thread that does not see it.
        if !COARSE.load(Relaxed) {
            let time = left.map_or(0, |left| core::ptr::from_ref(left) as usize);
            // SAFETY: `most` events are writable; the time is readable or null; there is no mask.
            let got = unsafe { sys::call(libc::SYS_epoll_pwait2, [file, room, most, time, 0, 0]) };
            // The call is missing, or refused by a filter that does not know it.
            if !matches!(got, Err(sys::Errno(libc::ENOSYS | libc::EPERM))) {
                return got;
            }
            COARSE.store(true, Relaxed);
        }
        // SAFETY: as for `epoll_pwait2`; the time is a number.
        unsafe { sys::call(libc::SYS_epoll_pwait, [file, room, most, millis(left) as usize, 0, 0]) }
    }

    /// The bell by which other threads end the present wait, or the next one if no thread waits,
    /// with any ticket.
    #[must_use]
    pub fn bell(&self) -> &EventFd {
        &self.bell
    }
}

/// Readable when there is a ready file or a notification that no wait has reported, so that threads
/// can wait for this file, too.
impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The timeout for `epoll_wait`, in milliseconds: rounded up, -1 for none.
fn millis(left: Option<&libc::timespec>) -> isize {
    let Some(left) = left else { return -1 };
    let millis = left.tv_sec.saturating_mul(1000);
    millis.saturating_add((left.tv_nsec + 999_999) / 1_000_000).min(i32::MAX.into()) as isize
}

impl Events {
    /// Room for `room` events at a time.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { all: vec![libc::epoll_event { events: 0, u64: 0 }; room], ready: 0 }
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        let events = self.all[..self.ready].iter().filter(|event| event.u64 != BELL);
        events.map(|event| {
            let (is, key) = (event.events, event.u64);
            let (read, write) = ways_of(is);
            Event { key, read, write, odd: is & ODD != 0 }
        })
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use antiphon_platform::{Clock, Notify as _, Ticket};

    use super::*;

    const PAST: Option<Deadline> = Some(Deadline { clock: Clock::Monotonic, ns: 0 });

    fn look(epoll: &Epoll, events: &mut Events) -> Vec<Event> {
        epoll.wait(events, PAST).expect("a look");
        events.iter().collect()
    }

    #[test]
    fn what_becomes_ready_is_told_once() {
        let (epoll, mut events) = (Epoll::new().expect("files"), Events::new(4));
        let (mut one, mut other) = UnixStream::pair().expect("a pair");
        epoll.add(other.as_fd(), 7).expect("a socket");
        let room = Event { key: 7, read: false, write: true, odd: false };
        assert_eq!(look(&epoll, &mut events), [room]);
        assert_eq!(look(&epoll, &mut events), []);
        one.write_all(b"xy").expect("room");
        assert_eq!(look(&epoll, &mut events), [Event { read: true, ..room }]);
        other.read_exact(&mut [0]).expect("a byte");
        assert_eq!(look(&epoll, &mut events), []);
        // Not by `close`: the child of a fork in another test may have it open until its `exec`.
        one.shutdown(Shutdown::Both).expect("a connected socket");
        assert_eq!(look(&epoll, &mut events), [Event { read: true, odd: true, ..room }]);
        epoll.remove(other.as_fd());
        epoll.remove(other.as_fd());
        epoll.add(other.as_fd(), 8).expect("a socket");
        assert_eq!(look(&epoll, &mut events)[0].key, 8);
    }

    #[test]
    fn what_is_ready_is_told_again_by_level_and_of_the_ways_that_are_wanted() {
        let (epoll, mut events) = (Epoll::new().expect("files"), Events::new(4));
        let (mut one, mut other) = UnixStream::pair().expect("a pair");
        epoll.add_as(other.as_fd(), 7, (true, false), Trigger::Level).expect("a socket");
        assert_eq!(look(&epoll, &mut events), []);
        one.write_all(b"x").expect("room");
        let bytes = Event { key: 7, read: true, write: false, odd: false };
        assert_eq!(look(&epoll, &mut events), [bytes]);
        assert_eq!(look(&epoll, &mut events), [bytes]);
        assert!(super::super::wait(epoll.as_fd(), super::super::Way::Read, PAST).expect("a look"));
        other.read_exact(&mut [0]).expect("a byte");
        assert_eq!(look(&epoll, &mut events), []);
    }

    #[test]
    fn each_notification_ends_a_wait_that_is_on_or_the_next() {
        let (epoll, mut events) = (Epoll::new().expect("files"), Events::new(4));
        epoll.bell().notify(Ticket::MIN);
        epoll.wait(&mut events, None).expect("a wait");
        assert_eq!(events.iter().count(), 0);
        thread::scope(|threads| {
            threads.spawn(|| epoll.bell().notify(Ticket::MIN));
            epoll.wait(&mut events, None).expect("a wait");
        });
    }

    #[test]
    fn a_file_that_is_always_ready_is_refused() {
        let epoll = Epoll::new().expect("files");
        let file = std::fs::File::open("/proc/self/exe").expect("a file");
        let error = epoll.add(file.as_fd(), 1).expect_err("it can't be waited for");
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn milliseconds_are_rounded_up() {
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        let times = [(0, 0, 0), (0, 1, 1), (1, 1_000_000, 1001), (i64::MAX, 0, i32::MAX as isize)];
        for (seconds, ns, wanted) in times {
            assert_eq!(millis(Some(&time(seconds, ns))), wanted);
        }
        assert_eq!(millis(None), -1);
    }
}
