//! A worker thread, with a long slice.

use std::marker::PhantomData;

use antiphon_linux::schedule::{self, Refused};
use antiphon_platform::ThreadId;

/// Gives the calling thread a long slice while this value lives; afterwards the thread has its
/// earlier slice again. The value stays on its thread.
#[derive(Debug)]
pub struct Worker {
    before_ns: u64,
    here: PhantomData<*const ()>,
}

impl Worker {
    pub(super) fn new(slice_ns: u64) -> Result<Self, Refused> {
        let before_ns = schedule::set_slice(ThreadId(0), slice_ns)?;
        Ok(Self { before_ns, here: PhantomData })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A slice that could be set can be set back, unless the thread was put into another class.
        let _ = schedule::set_slice(ThreadId(0), self.before_ns);
    }
}
