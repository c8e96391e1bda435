//! Forms of the readers-writer lock.

use core::marker::PhantomData;

use antiphon_platform::Budget;

use super::super::form::{Form, Standard};

/// Constants of a readers-writer lock's form, in addition to those of [`Form`], and whether it
/// prefers readers or writers. Its heads always sleep.
pub trait RwForm: Form {
    /// Whether readers come in although a writer waits, while other readers are in. If so, a thread
    /// may read-lock again what it has read-locked (POSIX's default kind), and readers that never
    /// all leave starve writers.
    const READERS_PASS: bool = false;
    /// In [`PerSocket`](super::PerSocket): after a writer has waited for the readers of all sockets
    /// to leave, readers are counted in one place for this many times as long.
    const REST: u32 = 9;
    /// With this many readers in, one more makes the lock count readers by socket ([`ShflRwLock`]);
    /// `u32::MAX`: never.
    ///
    /// [`ShflRwLock`]: super::ShflRwLock
    const CROWD: u32 = 2;
    /// If this many writers in a row stand behind the head of the queue, they wait for each other
    /// in an indicator, as if readers were counted by socket.
    const WRITERS: u32 = 8;
    /// How many writers in a row may have the lock while readers wait at their sockets; four times
    /// this where readers are few.
    const TURNS: u8 = 32;
    /// How many times in a row writers may find that few readers have come by socket, before
    /// readers are counted in one place again.
    const IDLE: u32 = 8;
}

impl RwForm for Standard {}

/// Defines a form with the constants of an inner form, except three: the spin of an arriving
/// waiter, the linger, and whether owners expect others.
macro_rules! form_of {
    ($form:ident: $inner:ident, $spin:expr, $linger:expr, $expects:expr) => {
        impl<$inner: Form> Form for $form<$inner> {
            const HEAD_SLEEPS: bool = $inner::HEAD_SLEEPS;
            const GROUP: u32 = $inner::GROUP;
            const PATIENCE_NS: u32 = $inner::PATIENCE_NS;
            const LOOK: u32 = $inner::LOOK;
            const SPIN: Budget = $spin;
            const QUEUE_SPIN: Budget = $inner::QUEUE_SPIN;
            const HEAD_SPIN: Budget = $inner::HEAD_SPIN;
            const LINGER: Budget = $linger;
            const COHORT: u16 = $inner::COHORT;
            const EXPECTS: bool = $expects;
            const BACKSTOP_NS: u64 = $inner::BACKSTOP_NS;
        }
    };
}

/// The form `F`, but readers come in although a writer waits (RW-5).
pub struct Recursive<F = Standard>(PhantomData<fn() -> F>);

form_of!(Recursive: F, F::SPIN, F::LINGER, F::EXPECTS);

impl<F: RwForm> RwForm for Recursive<F> {
    const READERS_PASS: bool = true;
    const REST: u32 = F::REST;
    const CROWD: u32 = F::CROWD;
    const WRITERS: u32 = F::WRITERS;
    const TURNS: u8 = F::TURNS;
    const IDLE: u32 = F::IDLE;
}

/// The form `F`, but any number of readers is counted in the lock's word: always 16 bytes.
pub struct Central<F = Standard>(PhantomData<fn() -> F>);

form_of!(Central: F, F::SPIN, F::LINGER, F::EXPECTS);

impl<F: RwForm> RwForm for Central<F> {
    const READERS_PASS: bool = F::READERS_PASS;
    const REST: u32 = F::REST;
    const CROWD: u32 = u32::MAX;
}

/// The form `F`, but waiters spin for longer where there are CPUs to spare.
pub(super) struct Lasting<F>(PhantomData<fn() -> F>);

form_of!(Lasting: F, F::SPIN, Budget::ns(F::LINGER.ns.saturating_mul(16)), F::EXPECTS);

/// The form `F`, for a mutex whose owners all join its queue and hand it over.
pub(super) struct InLine<F>(PhantomData<fn() -> F>);

form_of!(InLine: F, Budget::NONE, F::LINGER, true);
