//! State of one thread.

use crate::{Atomic, Platform};

/// The state that a platform keeps for each thread. All zero at first; no destructor, so that it
/// can be used before the first constructor of a program and after its last.
///
/// The fields are atomics only because a signal handler may come in between: it may lock a lock in
/// the middle of another lock's slow path. They are touched by their own thread alone, so
/// `Relaxed` is enough everywhere.
pub struct Local<P: Platform> {
    /// Nodes ([`WaiterId`](crate::WaiterId) bits) that this thread has used and keeps for its next
    /// wait; 0 is none.
    pub(crate) cache: [P::U32; 2],
    /// Nodes that this thread has left behind in queues when its wait timed out: index and
    /// generation as [`WaiterRef`](crate::WaiterRef), packed; 0 is none. An entry whose node has
    /// changed hands is free again.
    pub abandoned: [P::U64; 2],
    /// How often this thread has overtaken a waiter that was called.
    pub overtook: P::U32,
    /// When the thread looked last after a head that it overtook, in units of the lock.
    pub looked: P::U32,
    /// The rank that the thread has given itself, plus 1; 0 is none: then
    /// [`Urgency::rank`](crate::Urgency::rank) holds.
    pub rank: P::U32,
    /// How long this thread has held locks that measure it, in their unit.
    pub held: P::U32,
    /// When that was last looked at.
    pub held_at: P::U32,
    /// How many long spins of this thread in a row were in vain, by lock; see `lately.rs`.
    pub vain: [P::U32; 4],
    /// Addresses of locks that this thread had to wait for the last time that it wanted them.
    pub waited: [P::U64; 4],
    /// The lock that this thread has had last after waiting as the head of its queue: its address.
    pub took: P::U64,
    /// When that was, in nanoseconds.
    pub took_at: P::U64,
    /// The lock that was handed to this thread and whose section it measures: its address.
    pub measured: P::U64,
    /// When that section began, in nanoseconds.
    pub measured_at: P::U64,
    /// The state of [`Platform::random`]; 0 is not seeded.
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
