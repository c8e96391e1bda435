//! The thread-local state of a platform.

use crate::{Atomic, Platform};

/// The state that a platform keeps for each thread. All zero at first. It has no destructor, so it
/// can be used before the first constructor of a program and after its last destructor.
///
/// The fields are atomics only because of signal handlers: a handler may acquire a lock in the
/// middle of another lock's slow path. Only their own thread accesses them, so `Relaxed` is enough
/// everywhere.
pub struct Local<P: Platform> {
    /// Nodes ([`WaiterId`](crate::WaiterId) bits) that this thread has used and keeps for its next
    /// wait; 0 if none.
    pub(crate) cache: [P::U32; 2],
    /// Nodes that this thread has left behind in queues when its wait timed out: a packed
    /// [`WaiterRef`](crate::WaiterRef), index and generation; 0 if none. An entry whose node has
    /// changed hands is free again.
    pub abandoned: [P::U64; 2],
    /// Number of times that this thread has overtaken a signalled waiter.
    pub overtook: P::U32,
    /// The time at which the thread last checked on a head that it overtook, in units of the lock.
    pub looked: P::U32,
    /// The rank that the thread has given itself, plus 1. If 0,
    /// [`Urgency::rank`](crate::Urgency::rank) applies.
    pub rank: P::U32,
    /// The time that this thread has held locks that measure it, in their unit.
    pub held: P::U32,
    /// The time of the last update of `held`.
    pub held_at: P::U32,
    /// Number of consecutive long spins of this thread that were unsuccessful, by lock; see
    /// `lately.rs`.
    pub vain: [P::U32; 4],
    /// Addresses of locks for which this thread had to wait at its last acquisition.
    pub waited: [P::U64; 4],
    /// The address of the lock that this thread last acquired as the head of its queue.
    pub took: P::U64,
    /// The time at which it acquired `took`, in nanoseconds.
    pub took_at: P::U64,
    /// The address of the lock that was handed off to this thread and whose critical section it
    /// measures.
    pub measured: P::U64,
    /// The time at which the measured section began, in nanoseconds.
    pub measured_at: P::U64,
    /// The state of [`Platform::random`]; 0 means not seeded.
    pub seed: P::U32,
}

impl<P: Platform> Local<P> {
    /// The state of a thread that has never waited.
    pub const NEW: Self = Self {
        cache: [const { P::U32::ZERO }; 2],
        abandoned: [const { P::U64::ZERO }; 2],
        overtook: P::U32::ZERO,
        looked: P::U32::ZERO,
        rank: P::U32::ZERO,
        held: P::U32::ZERO,
        held_at: P::U32::ZERO,
        vain: [const { P::U32::ZERO }; 4],
        waited: [const { P::U64::ZERO }; 4],
        took: P::U64::ZERO,
        took_at: P::U64::ZERO,
        measured: P::U64::ZERO,
        measured_at: P::U64::ZERO,
        seed: P::U32::ZERO,
    };
}
