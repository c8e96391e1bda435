//! The waits of a loop on Linux: for time, files, and other threads.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use antiphon::net::Backend;
#[cfg(feature = "io_uring")]
use antiphon::net::backend;
use antiphon_linux::Linux;
use antiphon_linux::files::{Epoll, Events, TimerFd, Trigger};
use antiphon_platform::{Clock, Clocks as _, Deadline, Notify as _, Ticket};
use antiphon_runtime::coop::Cooperate;
use antiphon_runtime::event_loop::{Ring as Bell, Wait};

#[cfg(feature = "io_uring")]
use super::ring::Ring;
use crate::kernel::{self, Served};

/// Waits for files, by `epoll(7)` or `io_uring(7)`. A child of a fork must not use its parent's.
pub struct Files {
    waits: Waits,
    sources: BTreeMap<u64, Source>,
    /// Used if other code waits for the loop by its file, and if the kernel's waits are coarse.
    timer: TimerFd,
    is_coarse: bool,
    served: Served,
}

enum Waits {
    Epoll {
        epoll: Arc<Epoll>,
        events: Events,
    },
    #[cfg(feature = "io_uring")]
    Ring(Box<Ring>),
}

/// A file that a loop waits for, and keeps open meanwhile. A descriptor may be in one event at a
/// time: `epoll` refuses a second one with `EEXIST`. Use a duplicate (`try_clone`), or one event
/// for [`both`](Self::both) directions.
pub struct Source {
    pub(super) file: Box<dyn AsFd>,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) trigger: Trigger,
}

/// The readiness of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There may be something to read or to accept, or the end of the data, or an error.
    pub read: bool,
    /// There may be room to write, or an error.
    pub write: bool,
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { read: self.read || other.read, write: self.write || other.write }
    }
}

/// Maximum number of files that one wait returns.
const ROOM: usize = 256;
/// Key of the timer; those of events are less than 2⁶³.
pub(super) const TIMER: u64 = 1 << 63;

impl Source {
    /// Ready when there is something to read. `file` may also be a clone of the reader's `Arc`.
    pub fn readable(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: true, write: false, trigger: Trigger::Level }
    }

    /// Ready when there is room to write.
    pub fn writable(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: false, write: true, trigger: Trigger::Level }
    }

    /// Ready for reading or writing.
    pub fn both(file: impl AsFd + 'static) -> Self {
        Self { file: Box::new(file), read: true, write: true, trigger: Trigger::Level }
    }

    /// Edge-triggered: ready when the file becomes ready, not for as long as it is. The callback
    /// must then do everything until the file would block.
    #[must_use]
    pub fn edge_triggered(self) -> Self {
        Self { trigger: Trigger::Edge, ..self }
    }
}

impl Files {
    /// Creates a value without files: by `io_uring`, with that feature and if the kernel has it,
    /// otherwise by `epoll`.
    ///
    /// # Errors
    ///
    /// If too many files are open.
    pub fn new() -> io::Result<Self> {
        #[cfg(feature = "io_uring")]
        if backend() == Backend::IoUring
            && let Ok(ring) = Ring::new()
        {
            return Self::with(Waits::Ring(Box::new(ring)));
        }
        Self::by_epoll()
    }

    /// Creates a value without files, by `epoll`.
    ///
    /// # Errors
    ///
    /// If too many files are open.
    pub fn by_epoll() -> io::Result<Self> {
        Self::with(Waits::Epoll { epoll: Arc::new(Epoll::new()?), events: Events::new(ROOM) })
    }

    fn with(waits: Waits) -> io::Result<Self> {
        let (sources, timer) = (BTreeMap::new(), TimerFd::new()?);
        let mut files = Self {
            waits,
            sources,
            timer,
            is_coarse: Epoll::is_coarse(),
            served: Served::default(),
        };
        let Self { waits, timer, .. } = &mut files;
        waits.add(timer.as_fd(), TIMER, (true, false), Trigger::Edge)?;
        Ok(files)
    }

    /// Returns the interface by which it waits.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.waits {
            Waits::Epoll { .. } => Backend::Epoll,
            #[cfg(feature = "io_uring")]
            Waits::Ring(_) => Backend::IoUring,
        }
    }

    /// Returns what tells whether the loop is under the scheduler in the kernel.
    #[must_use]
    pub fn served(&self) -> Served {
        self.served.clone()
    }

    /// Behaves as if the kernel's waits ended at whole milliseconds.
    #[cfg(test)]
    pub(super) fn coarse() -> io::Result<Self> {
        Ok(Self { is_coarse: true, ..Self::new()? })
    }
}

impl Waits {
    fn add(
        &mut self,
        file: BorrowedFd<'_>,
        key: u64,
        ways: (bool, bool),
        trigger: Trigger,
    ) -> io::Result<()> {
        match self {
            Self::Epoll { epoll, .. } => epoll.add_as(file, key, ways, trigger),
            #[cfg(feature = "io_uring")]
            Self::Ring(ring) => {
                ring.watch(file, key, ways, trigger);
                Ok(())
            }
        }
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
    /// If the program has closed the file that the loop waits for.
    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, Ready)) {
        let mut deadline = until_ns.map(|ns| Deadline { clock: Clock::Monotonic, ns });
        if self.is_coarse && until_ns.is_some_and(|at| at > Self::now_ns()) {
            self.timer.set(until_ns);
            deadline = None;
        }
        let waited = match &mut self.waits {
            Waits::Epoll { epoll, events } => epoll.wait(events, deadline).inspect(|()| {
                for event in events.iter().filter(|event| event.key != TIMER) {
                    tell(event.key, Ready { read: event.read, write: event.write });
                }
            }),
            #[cfg(feature = "io_uring")]
            Waits::Ring(ring) => ring.wait(deadline, &self.sources, &self.timer, tell),
        };
        if let Err(error) = waited {
            panic!("the files that an event loop waits for: {error}");
        }
        self.is_coarse |= Epoll::is_coarse();
    }

    fn tier(&mut self, tier: Box<dyn Cooperate>) -> Box<dyn Cooperate> {
        kernel::before(tier, &self.served)
    }

    fn ring(&self) -> Bell {
        match &self.waits {
            Waits::Epoll { epoll, .. } => {
                let epoll = epoll.clone();
                Arc::new(move || epoll.bell().notify(Ticket::MIN))
            }
            #[cfg(feature = "io_uring")]
            Waits::Ring(ring) => {
                let bell = ring.bell();
                Arc::new(move || bell.ring())
            }
        }
    }

    fn add(&mut self, source: Source, key: u64) -> io::Result<()> {
        let Source { ref file, read, write, trigger } = source;
        #[cfg(feature = "io_uring")]
        if let Waits::Ring(ring) = &self.waits {
            ring.takes(file.as_fd())?;
        }
        self.waits.add(file.as_fd(), key, (read, write), trigger)?;
        self.sources.insert(key, source);
        Ok(())
    }

    fn remove(&mut self, key: u64) {
        let Some(source) = self.sources.remove(&key) else { return };
        match &mut self.waits {
            Waits::Epoll { epoll, .. } => epoll.remove(source.file.as_fd()),
            #[cfg(feature = "io_uring")]
            Waits::Ring(ring) => ring.remove(key),
        }
    }

    fn arm(&mut self, until_ns: Option<u64>) {
        self.timer.set(until_ns);
        #[cfg(feature = "io_uring")]
        if let Waits::Ring(ring) = &mut self.waits
            && let Err(error) = ring.arm()
        {
            panic!("the files that an event loop waits for: {error}");
        }
    }
}

/// Readable when the loop has something to do after a turn.
impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.waits {
            Waits::Epoll { epoll, .. } => (**epoll).as_fd(),
            #[cfg(feature = "io_uring")]
            Waits::Ring(ring) => ring.as_fd(),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("backend", &self.backend())
            .field("sources", &self.sources.len())
            .finish_non_exhaustive()
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
