//! A waiter: the node by which a thread or fiber stands in a queue.

use core::num::NonZeroU32;

use crate::{Atomic, Platform};

/// A waiter's node: 64 bytes of never-freed memory, named by a [`WaiterId`].
///
/// | field | written by | read by |
/// |---|---|---|
/// | `generation`, `owner` | the arena | the arena, wakers |
/// | `next` to `due`, `rank`, `passed`, `queue` | the primitive it waits in | the same |
/// | `token`, `handle` | the platform's `park` and `unpark` | the same |
///
/// Fields are plain platform atomics; the writer of a field says what it means. All are zero in a
/// node that was never used and, after a fork, in the child.
#[repr(C, align(64))]
pub struct Waiter<P: Platform> {
    /// Odd while the node is in use, even while it is not, zero if it never was. Grows with each
    /// change of hands.
    pub generation: P::U32,
    /// The thread in whose cache the node is, as [`ThreadId`](crate::ThreadId); otherwise 0.
    pub owner: P::U32,
    /// The node behind this one in its queue ([`WaiterId`] bits), 0 if none is known.
    pub next: P::U32,
    /// The state of the waiter, and what it may do.
    pub status: P::U32,
    /// How many waiters were grouped in a row up to this one.
    pub batch: P::U32,
    /// Where the next shuffler resumes ([`WaiterId`] bits), 0 for right behind itself.
    pub resume: P::U32,
    /// The socket that the waiter was on when it began to wait.
    pub socket: P::U16,
    /// The CPU that the waiter was on then.
    pub cpu: P::U16,
    /// The mode in which the waiter wants the lock; each primitive defines it. For a readers-writer
    /// lock: 0 to read, any other value to write. For a mutex: the waiter behind it in its cohort.
    pub wants: P::U32,
    /// When the waiter was called, in units of its primitive; means nothing while `due` is 0.
    pub called: P::U32,
    /// From when on others are to make way for it; 0 if it was not called.
    pub due: P::U32,
    /// The platform's: whether a wake is due.
    pub token: P::U32,
    /// The key by which the lock's policy sorts the waiter; the policy defines it.
    pub rank: P::U16,
    /// How often others were moved ahead of it for their rank; or how often the lock was handed on
    /// in its cohort.
    pub passed: P::U16,
    /// The platform's: which fiber or waker waits, if it is not the thread that parks.
    pub handle: P::U64,
    /// The queue that the waiter may be moved into, in its primitive's words; 0 for none. Or the
    /// waiter to wake for it ([`WaiterRef::bits`]), 0 for itself. Or, in the upper half, the waiter
    /// whose place in the queue it has.
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
/// The epoch tells a name that this process wrote from one that another process left in the same
/// memory: before a `fork`, or through a shared mapping. [`Arena::resolve`](crate::Arena::resolve)
/// refuses those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterId(NonZeroU32);

impl WaiterId {
    /// Bits of the index.
    pub const INDEX_BITS: u32 = 22;
    const INDEX_MASK: u32 = (1 << Self::INDEX_BITS) - 1;

    /// The name of node `index` in epoch `epoch`.
    ///
    /// # Panics
    ///
    /// If one of them is zero or too large; both come from the platform.
    #[must_use]
    pub const fn new(epoch: u32, index: u32) -> Self {
        assert!(index != 0 && index <= Self::INDEX_MASK, "waiter index out of range");
        assert!(epoch != 0 && epoch < 1 << (32 - Self::INDEX_BITS), "epoch out of range");
        match NonZeroU32::new(epoch << Self::INDEX_BITS | index) {
            Some(bits) => Self(bits),
            None => unreachable!(),
        }
    }

    /// The name in an atomic word; `None` is 0.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match NonZeroU32::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// The bits to write in an atomic word.
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

/// A node as a thread saw it: a later waker does nothing if it has changed hands after that.
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

    /// The reference that [`bits`](Self::bits) were made of; `None` if there is no index in them.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match bits as u32 {
            0 => None,
            index => Some(Self { index, generation: (bits >> u32::BITS) as u32 }),
        }
    }
}
