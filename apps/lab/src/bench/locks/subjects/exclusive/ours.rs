//! Our own locks, on the Linux back end.

use antiphon_linux::Linux;
use antiphon_sync::lock::{self, Lock};
use antiphon_sync::policy::{self, Numa, Then};

use crate::bench::locks::subjects::Subject;

/// The mutex in its default form.
pub type Mutex = Ours<lock::ShflMutex<Linux>>;
/// The mutex as published: its head never sleeps.
pub type PublishedMutex = Ours<lock::ShflMutex<Linux, Numa, lock::Published>>;
/// The mutex that does not sort waiters.
pub type InTurn = Ours<lock::ShflMutex<Linux, policy::None>>;
/// The mutex that sorts by distance.
pub type Nearest = Ours<lock::ShflMutex<Linux, policy::Distance>>;
/// The mutex that serves the highest priority first.
pub type Urgent = Ours<lock::ShflMutex<Linux, Then<policy::Priority, Numa>>>;
/// The mutex that wakes the next waiter ahead of its turn.
pub type Woken = Ours<lock::ShflMutex<Linux, Then<Numa, policy::WakeUp>>>;
/// The spinlock.
pub type Spin = Ours<lock::ShflSpin<Linux>>;

/// Any lock of the library.
pub struct Ours<L>(L);

impl<L: Lock> Subject for Ours<L> {
    fn new() -> Result<Self, String> {
        Ok(Self(L::NEW))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.lock();
        let result = section();
        // SAFETY: locked by this thread above.
        unsafe { self.0.unlock() };
        result
    }
}

/// The mutex with the light unlock, which a process enables for good.
pub struct LightMutex(Mutex);

impl Subject for LightMutex {
    fn new() -> Result<Self, String> {
        antiphon_linux::light::enable_light().map_err(|_| {
            "the light unlock needs rseq and membarrier: Linux 5.10, glibc 2.35, x86-64".to_owned()
        })?;
        Mutex::new().map(Self)
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.hold(section)
    }
}
