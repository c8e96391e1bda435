//! A waiter, as policies see it.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, CpuId, Platform, SocketId, Waiter};

/// A waiter, as a [`Policy`](super::Policy) sees it: the words by which it may be sorted, and none
/// that a lock depends on.
///
/// ```compile_fail,E0609
/// # use antiphon_platform::{Atomic, Platform};
/// # use antiphon_sync::policy::Waiting;
/// # use core::sync::atomic::Ordering::Relaxed;
/// // A broadcast would write there.
/// fn forge<P: Platform>(me: &Waiting<P>) {
///     me.queue.store(0x1000, Relaxed);
/// }
/// ```
#[repr(transparent)]
pub struct Waiting<P: Platform>(Waiter<P>);

// Relaxed, all: a waiter writes to its own node before it joins a queue, by a release of the tail
// or of a list's lock; a thread that looks at others has acquired the links to them.
impl<P: Platform> Waiting<P> {
    /// Returns the waiter of this node.
    pub fn of(node: &Waiter<P>) -> &Self {
        // SAFETY: the type is `repr(transparent)`.
        unsafe { &*ptr::from_ref(node).cast() }
    }

    /// Returns the rank that the policy has noted; if it noted none, the rank that an earlier wait
    /// on this node has left.
    pub fn rank(&self) -> u16 {
        self.0.rank.load(Relaxed)
    }

    /// Notes the rank that the policy sorts by; the policy defines its meaning.
    pub fn set_rank(&self, rank: u16) {
        self.0.rank.store(rank, Relaxed);
    }

    /// Returns the socket that was noted.
    pub fn socket(&self) -> SocketId {
        SocketId(self.0.socket.load(Relaxed).into())
    }

    /// Notes the socket on which the caller waits: the lower 16 bits of its number.
    pub fn set_socket(&self, socket: SocketId) {
        self.0.socket.store(socket.0 as u16, Relaxed);
    }

    /// Returns the CPU that was noted.
    pub fn cpu(&self) -> CpuId {
        CpuId(self.0.cpu.load(Relaxed).into())
    }

    /// Notes the CPU on which the caller waits: the lower 16 bits of its number.
    pub fn set_cpu(&self, cpu: CpuId) {
        self.0.cpu.store(cpu.0 as u16, Relaxed);
    }

    /// Returns what the waiter wants of the object: for a readers-writer lock, 0 to read and 1 to
    /// write.
    pub fn wants(&self) -> u32 {
        self.0.wants.load(Relaxed)
    }

    /// Returns the waiter's whole node, for code that observes a lock.
    ///
    /// # Safety
    ///
    /// The same as for [`Platform::arena`]: the caller only reads.
    pub unsafe fn node(&self) -> &Waiter<P> {
        &self.0
    }
}
