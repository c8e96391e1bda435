//! Our own readers-writer lock, on the Linux back end.

use antiphon_linux::Linux;
use antiphon_sync::lock::{GroupReaders, GroupWriters, Recursive, RwForm, ShflRwLock, Standard};
use antiphon_sync::policy::{Numa, Policy};

use crate::bench::locks::subjects::Subject;

/// The default form: a waiting writer excludes new readers.
pub type Preferred = Ours<Numa, Standard>;
/// POSIX's default kind: readers pass a waiting writer.
pub type Passing = Ours<Numa, Recursive>;
/// Waiting readers are grouped.
pub type ReadersGrouped = Ours<GroupReaders, Standard>;
/// Waiting writers are grouped.
pub type WritersGrouped = Ours<GroupWriters, Standard>;

/// The lock with a policy, in a form.
pub struct Ours<Q: Policy, F: RwForm>(ShflRwLock<Linux, Q, F>);

impl<Q: Policy, F: RwForm> Subject for Ours<Q, F> {
    fn new() -> Result<Self, String> {
        Ok(Self(ShflRwLock::NEW))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.write();
        let result = section();
        // SAFETY: locked by this thread above.
        unsafe { self.0.unlock_write() };
        result
    }

    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        // A reader is refused only if there are more readers than a process can have threads.
        self.0.read().expect("the lock has room for more readers than there are threads");
        let result = section();
        // SAFETY: locked by this thread above.
        unsafe { self.0.unlock_read() };
        result
    }
}
