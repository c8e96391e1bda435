//! `tokio::sync::Notify`, awaited in a runtime of one thread.

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use super::Mechanism;

/// The runtime is the receiver's.
pub struct Tokio {
    notify: Notify,
    runtime: Runtime,
}

impl Mechanism for Tokio {
    fn new() -> Result<Self, String> {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        Ok(Self { notify: Notify::new(), runtime })
    }

    #[inline]
    fn signal(&self) {
        self.notify.notify_one();
    }

    #[inline]
    fn wait(&self) {
        self.runtime.block_on(self.notify.notified());
    }
}
