//! Our events, on the Linux back end, each in a form that spins before it sleeps or in one that
//! never spins.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::Linux;
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{self, CrowdForm};

use super::{Broadcast, Mechanism};

/// An event in form `F`.
pub struct Events<F: CrowdForm>(wait::Event<Linux, Distance, F>);

impl<F: CrowdForm + Sync> Mechanism for Events<F> {
    fn new() -> Result<Self, String> {
        Ok(Self(wait::Event::NEW))
    }

    #[inline]
    fn signal(&self) {
        self.0.set();
    }

    #[inline]
    fn wait(&self) {
        self.0.wait();
    }
}

/// An event count in form `F`, and the number that is waited for: a flag, or the round.
pub struct Counted<F: CrowdForm> {
    count: wait::EventCount<Linux, Distance, F>,
    number: AtomicU32,
}

impl<F: CrowdForm> Counted<F> {
    fn unset() -> Self {
        Self { count: wait::EventCount::NEW, number: AtomicU32::new(0) }
    }

    /// Waits until `done` returns true.
    #[inline]
    fn wait_until(&self, done: impl Fn(&AtomicU32) -> bool) {
        while !done(&self.number) {
            let key = self.count.prepare();
            if done(&self.number) {
                return key.cancel();
            }
            key.wait(None);
        }
    }
}

impl<F: CrowdForm + Sync> Mechanism for Counted<F> {
    fn new() -> Result<Self, String> {
        Ok(Self::unset())
    }

    #[inline]
    fn signal(&self) {
        // Release: pairs with the acquire of the waiter.
        self.number.store(1, Release);
        self.count.notify_one();
    }

    #[inline]
    fn wait(&self) {
        // Acquire: pairs with the release of the notifier.
        self.wait_until(|flag| flag.compare_exchange(1, 0, Acquire, Relaxed).is_ok());
    }
}

impl<F: CrowdForm + Sync> Broadcast for Counted<F> {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self::unset())
    }

    fn tell(&self, round: u32) {
        // Release: pairs with the acquire of the waiters.
        self.number.store(round, Release);
        self.count.notify_all();
    }

    fn wait(&self, _: usize, round: u32) {
        // Acquire: pairs with the release of the notifier.
        self.wait_until(|now| now.load(Acquire) >= round);
    }
}

/// Latches in form `F`, one for each round, because a latch opens once. They are in chunks that are
/// made when first used.
pub struct Latches<F: CrowdForm>(Box<[OnceLock<Chunk<F>>]>);

type Chunk<F> = Box<[wait::Latch<Linux, F>]>;

/// Number of chunks, and of latches per chunk: enough for all rounds that may be asked for.
const CHUNKS: usize = 1024;
const CHUNK: usize = 1024;

impl<F: CrowdForm> Latches<F> {
    fn of(&self, round: u32) -> &wait::Latch<Linux, F> {
        let round = round as usize;
        let new = || (0..CHUNK).map(|_| wait::Latch::new(1)).collect();
        &self.0[round / CHUNK].get_or_init(new)[round % CHUNK]
    }
}

impl<F: CrowdForm + Sync + Send> Broadcast for Latches<F> {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self((0..CHUNKS).map(|_| OnceLock::new()).collect()))
    }

    fn tell(&self, round: u32) {
        self.of(round).count_down(1);
    }

    fn wait(&self, _: usize, round: u32) {
        self.of(round).wait();
    }
}
