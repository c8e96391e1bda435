//! Waiter nodes: the records of threads and fibers in queues, and the names of these records.

use core::num::NonZeroU32;

use crate::{Atomic, Platform};

/// A waiter's node: 64 bytes of never-freed memory, named by a [`WaiterId`].
///
/// | field | written by | read by |
/// |---|---|---|
/// | `generation`, `owner` | the arena | the arena, wakers |
/// | `next` to `due`, `rank`, `passed`, `queue` | the primitive that is waited for | the same |
/// | `token`, `handle` | the platform's `park` and `unpark` | the same |
///
/// Fields are plain platform atomics; the writer of a field says what it means. All are zero in a
/// node that was never used and, after a fork, in the child.
#[repr(C, align(64))]
pub struct Waiter<P: Platform> {
    /// Odd while the node is in use, even while it is not, zero if it was never used. Grows
    /// whenever the node changes hands.
    pub generation: P::U32,
    /// The thread that has the node in its cache, as [`ThreadId`](crate::ThreadId); otherwise 0.
    pub owner: P::U32,
    /// The node behind this one in its queue ([`WaiterId`] bits), 0 if none is known.
    pub next: P::U32,
    /// The state and the permissions of the waiter; the primitive defines the bits.
    pub status: P::U32,
    /// Number of waiters that were grouped in a row up to this waiter.
    pub batch: P::U32,
    /// The node where the next shuffler resumes ([`WaiterId`] bits); 0 for the node right behind
    /// itself.
    pub resume: P::U32,
    /// The socket that the waiter was on when it began to wait.
    pub socket: P::U16,
    /// The CPU that the waiter was on when it began to wait.
    pub cpu: P::U16,
    /// The mode in which the waiter wants the lock; each primitive defines it. For a readers-writer
    /// lock: 0 to read, any other value to write. For a mutex: the waiter behind it in its cohort.
    pub wants: P::U32,
    /// The time at which the waiter was signalled, in units of its primitive; meaningless while
    /// `due` is 0.
    pub called: P::U32,
    /// The time from which other threads must make way for the waiter; 0 if it was not signalled.
    pub due: P::U32,
    /// Used by the platform: whether a wake is pending.
    pub token: P::U32,
    /// The key by which the lock's policy sorts the waiter; the policy defines it.
    pub rank: P::U16,
    /// Number of times that other waiters were moved ahead of this one for their rank; or that the
    /// lock was handed off in its cohort.
    pub passed: P::U16,
    /// Used by the platform: the fiber or waker that waits, if it is not the thread that parks.
    pub handle: P::U64,
    /// The queue into which the waiter may be moved, in a format of its primitive; 0 for none. Or
    /// the waiter to wake instead of this one ([`WaiterRef::bits`]), 0 for itself. Or, in the upper
    /// half, the waiter whose place in the queue this waiter has.
    pub queue: P::U64,
}

impl<P: Platform> Waiter<P> {
    /// A node that was never used.
    pub const NEW: Self = Self {
        generation: P::U32::ZERO,
        owner: P::U32::ZERO,
        next: P::U32::ZERO,
        status: P::U32::ZERO,
        batch: P::U32::ZERO,
        resume: P::U32::ZERO,
        socket: P::U16::ZERO,
        cpu: P::U16::ZERO,
        wants: P::U32::ZERO,
        called: P::U32::ZERO,
        due: P::U32::ZERO,
        token: P::U32::ZERO,
        rank: P::U16::ZERO,
        passed: P::U16::ZERO,
        handle: P::U64::ZERO,
        queue: P::U64::ZERO,
    };
}

/// The name of a node in a lock word: `epoch` (10 bits) above `index` (22 bits), never zero.
///
/// The epoch distinguishes a name that this process wrote from a name that another process left in
/// the same memory, before a `fork` or through a shared mapping.
/// [`Arena::resolve`](crate::Arena::resolve) rejects names of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterId(NonZeroU32);

impl WaiterId {
    /// Number of bits of the index.
    pub const INDEX_BITS: u32 = 22;
    const INDEX_MASK: u32 = (1 << Self::INDEX_BITS) - 1;

    /// The name of node `index` in epoch `epoch`.
    ///
    /// # Panics
    ///
    /// If `epoch` or `index` is zero or too large; both come from the platform.
    #[must_use]
    pub const fn new(epoch: u32, index: u32) -> Self {
        assert!(index != 0 && index <= Self::INDEX_MASK, "waiter index out of range");
        assert!(epoch != 0 && epoch < 1 << (32 - Self::INDEX_BITS), "epoch out of range");
        match NonZeroU32::new(epoch << Self::INDEX_BITS | index) {
            Some(bits) => Self(bits),
            None => unreachable!(),
        }
    }

    /// The name with these bits, as read from an atomic word; `None` for 0.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match NonZeroU32::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// The bits of the name, to store in an atomic word.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0.get()
    }

    /// The index of the node.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.get() & Self::INDEX_MASK
    }

    /// The epoch of the process that wrote the name.
    #[must_use]
    pub const fn epoch(self) -> u32 {
        self.0.get() >> Self::INDEX_BITS
    }
}

/// A reference to one use of a node: a waker does nothing if the node has changed hands since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterRef {
    /// The index of the node.
    pub index: u32,
    /// The generation of the node at that time.
    pub generation: u32,
}

impl WaiterRef {
    /// The reference as a word: the generation above the index.
    #[must_use]
    pub const fn bits(self) -> u64 {
        (self.generation as u64) << u32::BITS | self.index as u64
    }

    /// The reference with these [`bits`](Self::bits); `None` if the index in them is 0.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match bits as u32 {
            0 => None,
            index => Some(Self { index, generation: (bits >> u32::BITS) as u32 }),
        }
    }
}
