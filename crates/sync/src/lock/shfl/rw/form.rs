//! Forms of the readers-writer lock.

use core::marker::PhantomData;

use antiphon_platform::Budget;

use super::super::mutex::{Form, Standard};

/// Numbers of a readers-writer lock's form (those of the mutex's, which mean the same), and whom it
/// prefers. Its heads always sleep.
pub trait RwForm: Form {
    /// Whether readers come in though a writer waits, as long as other readers are in. Then a
    /// thread may read-lock what it has read-locked (POSIX's default kind), and readers who never
    /// leave together starve writers.
    const READERS_PASS: bool = false;
    /// For how many times as long as a writer needed to have the readers of all sockets out they
    /// are counted in one place afterwards, in [`PerSocket`](super::PerSocket).
    const REST: u32 = 9;
}

impl RwForm for Standard {}

/// As `F`, but readers come in though a writer waits: RW-5.
pub struct Recursive<F = Standard>(PhantomData<fn() -> F>);

impl<F: Form> Form for Recursive<F> {
    const HEAD_SLEEPS: bool = F::HEAD_SLEEPS;
    const GROUP: u32 = F::GROUP;
    const PATIENCE_NS: u32 = F::PATIENCE_NS;
    const LOOK: u32 = F::LOOK;
    const SPIN: Budget = F::SPIN;
    const QUEUE_SPIN: Budget = F::QUEUE_SPIN;
    const HEAD_SPIN: Budget = F::HEAD_SPIN;
    const LINGER: Budget = F::LINGER;
    const BACKSTOP_NS: u64 = F::BACKSTOP_NS;
}

impl<F: Form> RwForm for Recursive<F> {
    const READERS_PASS: bool = true;
}
