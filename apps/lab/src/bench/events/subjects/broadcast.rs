//! Our broadcast, on the Linux back end.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_sync::wait::{self, CrowdForm};

use super::Broadcast;

/// A broadcast in form `F`, and the round that is waited for.
pub struct Cast<F: CrowdForm> {
    cast: wait::Broadcast<Linux, F>,
    /// Relaxed: the broadcast orders it.
    round: AtomicU32,
}

impl<F: CrowdForm + Sync> Broadcast for Cast<F> {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self { cast: wait::Broadcast::NEW, round: AtomicU32::new(0) })
    }

    fn tell(&self, round: u32) {
        self.round.store(round, Relaxed);
        self.cast.send();
    }

    fn wait(&self, _: usize, round: u32) {
        let mut seen = self.cast.now();
        while self.round.load(Relaxed) < round {
            seen = self.cast.wait(seen);
        }
    }
}
