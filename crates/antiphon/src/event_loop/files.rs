//! What a loop waits for on Linux: the time, files, and other threads.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use antiphon_linux::Linux;
use antiphon_linux::files::{Epoll, Events, TimerFd, Trigger};
use antiphon_platform::{Clock, Deadline, Notify as _, Platform as _, Ticket};
use antiphon_runtime::event_loop::{Ring, Wait};

/// Files, by `epoll(7)`. A child of a fork must not use that of its parent.
pub struct Files {
    epoll: Arc<Epoll>,
    events: Events,
    sources: BTreeMap<u64, Source>,
    /// For who waits for the loop, and where the kernel's waits are coarse.
    timer: TimerFd,
    is_coarse: bool,
}

/// A file that a loop waits for, and has open until it does not any more.
pub struct Source {
    file: Box<dyn AsFd>,
    read: bool,
    write: bool,
    trigger: Trigger,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There may be something to read, or to accept; or the end, or an error.
    pub read: bool,
    /// There may be room to write; or an error.
    pub write: bool,
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { read: self.read || other.read, write: self.write || other.write }
    }
}

/// Files that a wait takes at the most.
const ROOM: usize = 256;
/// The timer's; those of events are less than 2⁶³.
const TIMER: u64 = u64::MAX - 1;

impl Source {
    /// Ready when there is something to read: also a clone of an `Arc` of what is read.
    pub fn readable(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: true, write: false, trigger: Trigger::Level }
    }

    /// Ready when there is room to write.
    pub fn writable(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: false, write: true, trigger: Trigger::Level }
    }

    /// Ready for either.
    pub fn both(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: true, write: true, trigger: Trigger::Level }
    }

    /// Ready when it has become so, and not as long as it is: the callback does all that there is
    /// to do, until that would block.
    #[must_use]
    pub fn edge_triggered(self) -> Self {
        Self { trigger: Trigger::Edge, ..self }
    }
}

impl Files {
    /// No files.
    ///
    /// # Errors
    ///
    /// Too many files are open.
    pub fn new() -> io::Result<Self> {
        let (epoll, timer) = (Arc::new(Epoll::new()?), TimerFd::new()?);
        epoll.add_as(timer.as_fd(), TIMER, (true, false), Trigger::Edge)?;
        let (events, sources) = (Events::new(ROOM), BTreeMap::new());
        Ok(Self { epoll, events, sources, timer, is_coarse: Epoll::is_coarse() })
    }

    /// As where the kernel's waits end at whole milliseconds.
    #[cfg(test)]
    pub(super) fn coarse() -> io::Result<Self> {
        Ok(Self { is_coarse: true, ..Self::new()? })
    }
}

impl Wait for Files {
    type Platform = Linux;
    type Source = Source;
    type Ready = Ready;
    type Error = io::Error;

    fn now_ns() -> u64 {
        Linux::now(Clock::Monotonic)
    }

    /// # Panics
    ///
    /// If the program has closed the file under it.
    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, Ready)) {
        let mut deadline = until_ns.map(|ns| Deadline { clock: Clock::Monotonic, ns });
        if self.is_coarse && until_ns.is_some_and(|at| at > Self::now_ns()) {
            self.timer.set(until_ns);
            deadline = None;
        }
        if let Err(error) = self.epoll.wait(&mut self.events, deadline) {
            panic!("the files that an event loop waits for: {error}");
        }
        self.is_coarse |= Epoll::is_coarse();
        for event in self.events.iter().filter(|event| event.key != TIMER) {
            tell(event.key, Ready { read: event.read, write: event.write });
        }
    }

    fn ring(&self) -> Ring {
        let epoll = self.epoll.clone();
        Arc::new(move || epoll.bell().notify(Ticket::MIN))
    }

    fn add(&mut self, source: Source, key: u64) -> io::Result<()> {
        let Source { ref file, read, write, trigger } = source;
        self.epoll.add_as(file.as_fd(), key, (read, write), trigger)?;
        self.sources.insert(key, source);
        Ok(())
    }

    fn remove(&mut self, key: u64) {
        if let Some(source) = self.sources.remove(&key) {
            self.epoll.remove(source.file.as_fd());
        }
    }

    fn arm(&mut self, until_ns: Option<u64>) {
        self.timer.set(until_ns);
    }
}

/// Readable when the loop has something to do, after a turn of it.
impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.epoll).as_fd()
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, read, write, trigger } = self;
        f.debug_struct("Source")
            .field("file", &file.as_fd())
            .field("read", read)
            .field("write", write)
            .field("trigger", trigger)
            .finish()
    }
}
