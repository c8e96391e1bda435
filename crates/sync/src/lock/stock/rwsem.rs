//! The kernel's readers-writer semaphore: writers spin for a writer that runs, all sleep in one
//! list, and the first of it may ask to be handed the lock.
//!
//! Source: the kernel's `Documentation/locking`; W. Long, "locking/rwsem: Rwsem rearchitecture",
//! 2019, as J. Corbet describes it on LWN.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `count` | readers, above 8 bits of flags |
//! | 4–7 | `owner` | the writer's thread; 0 while there is none |
//! | 8–11 | `spinners` | tail of the queue of writers that spin |
//! | 12–15 | `list_lock` | a [`QSpinLock`] for what follows |
//! | 16–23 | `first`, `last` | who sleeps, readers and writers, in order |
//!
//! ```text
//!   read    adds a reader; if no flag was set, it is in; else it takes that back and sleeps
//!   write   free ──exchange──► WRITER; else spins in line, and steals; else sleeps
//!   release WAITERS: readers in front are let in, all up to the next writer; or a writer is woken
//!   the first writer that has slept for 4 ms in vain sets HANDOFF: nobody steals any more
//! ```
//!
//! - RWSEM-1: WAITERS is set while the list is not empty; both change with `list_lock` held.
//! - RWSEM-2: whenever `list_lock` is free and a reader is the first, a writer has the lock, and
//!   lets it in before it has released.
//! - RWSEM-3: while the first is a writer and nobody has the lock, that writer is awake, or about
//!   to be woken. A reader that was counted for a moment only counts as one that had the lock.
//! - RWSEM-4: the change of `count` that releases is the last touch of the lock, but for sleepers
//!   that are let in, who keep it alive. (In the kernel the list is looked at after it.)

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Clock, Platform, ThreadId, WaiterRef};

use super::osq::{PIECE_NS, SpinQueue, may_spin};
use super::qspinlock::QSpinLock;
use crate::lock::classic::node::Node;

const WRITER: u32 = 1;
const WAITERS: u32 = 2;
/// The first on the list, a writer, is next.
const HANDOFF: u32 = 4;
const READER: u32 = 1 << 8;
const READERS: u32 = !(READER - 1);

/// What a node on the list wants.
const READ: u32 = 0;
const WRITE: u32 = 1;

/// The status of a reader that was not let in yet.
const ASLEEP: u32 = 1;
const GRANTED: u32 = 0;

/// So often a writer looks again, `PIECE_NS` apart, while readers have the lock.
const LOOKS_AT_READERS: u32 = 5;

/// The kernel's readers-writer semaphore, 24 bytes; and a node of 64 for each waiter. A writer that
/// has waited for `PATIENCE_NS` nanoseconds asks to be handed the lock. A thread that reads must
/// not read again.
#[repr(C)]
pub struct LinuxRwSem<P: Platform, const PATIENCE_NS: u64 = 4_000_000> {
    count: P::U32,
    owner: P::U32,
    spinners: SpinQueue<P>,
    list_lock: QSpinLock<P>,
    first: P::U32,
    last: P::U32,
}

impl<P: Platform, const PATIENCE_NS: u64> LinuxRwSem<P, PATIENCE_NS> {
    /// A free lock.
    pub const NEW: Self = Self {
        count: P::U32::ZERO,
        owner: P::U32::ZERO,
        spinners: SpinQueue::NEW,
        list_lock: QSpinLock::NEW,
        first: P::U32::ZERO,
        last: P::U32::ZERO,
    };

    /// Acquires the lock for reading; sleeps until it is had. Naps where no node is to be had.
    #[inline]
    pub fn read(&self) {
        // Acquire: what writers have done; pairs with their releases of the word.
        if self.count.fetch_add(READER, Acquire) & (READER - 1) != 0 {
            self.read_contended();
        }
    }

    /// Acquires the lock for reading if no writer has it or waits; never blocks.
    pub fn try_read(&self) -> bool {
        let mut seen = self.count.load(Relaxed);
        while seen & (READER - 1) == 0 {
            // Acquire: as in `read`.
            match self.count.compare_exchange(seen, seen + READER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Releases what was acquired for reading; the last reader wakes a writer that sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading.
    pub unsafe fn unlock_read(&self) {
        let mut seen = self.count.load(Relaxed);
        // RWSEM-4: a reader that is not the last, or that nobody waits for, only leaves.
        while seen & WAITERS == 0 || seen & READERS != READER {
            // Release: what we have seen; pairs with the acquire of the next writer.
            match self.count.compare_exchange(seen, seen - READER, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        // RWSEM-2: it is a writer.
        let first = self.list(|| reference(&self.front()));
        // Release: as above.
        self.count.fetch_sub(READER, Release);
        wake::<P>(first);
    }

    /// Acquires the lock for writing; spins while a writer runs, then sleeps until it is had.
    #[inline]
    pub fn write(&self) {
        if !self.try_write() {
            self.write_contended();
            self.own();
        }
    }

    /// Acquires the lock for writing if nobody has it or waits; never blocks.
    pub fn try_write(&self) -> bool {
        // Acquire: pairs with the releases of the word.
        let had = self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if had {
            self.own();
        }
        had
    }

    /// Releases what was acquired for writing; lets the readers in that come first on the list, or
    /// wakes the writer that does.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn unlock_write(&self) {
        // Relaxed: a guess for those that spin.
        self.owner.store(0, Relaxed);
        // Release: what we have done; pairs with the acquires of who comes in.
        if self.count.compare_exchange(WRITER, 0, Release, Relaxed).is_err() {
            self.release(WRITER);
        }
    }

    /// Turns what was acquired for writing into what was acquired for reading, with no writer in
    /// between; never blocks.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) {
        self.owner.store(0, Relaxed);
        self.release(WRITER.wrapping_sub(READER));
    }

    fn own(&self) {
        self.owner.store(P::thread().0, Relaxed);
    }

    #[cold]
    fn read_contended(&self) {
        let Some(me) = Node::<P>::try_take() else { return self.read_without_node() };
        let (chain, writer) = self.list(|| {
            self.push(&me, READ);
            // Release: the same as of a reader that leaves.
            let now = self.count.fetch_sub(READER, Release) - READER;
            self.after_release(now)
        });
        chain.let_in::<P>();
        wake::<P>(writer);
        me.sleep_while(ASLEEP);
        me.give();
    }

    /// The caller is counted, and can't stand on the list.
    fn read_without_node(&self) {
        loop {
            let (chain, writer) = self.list(|| {
                let now = self.count.fetch_sub(READER, Release) - READER;
                self.after_release(now)
            });
            chain.let_in::<P>();
            wake::<P>(writer);
            Node::<P>::nap();
            // Acquire: as in `read`.
            if self.count.fetch_add(READER, Acquire) & (READER - 1) == 0 {
                return;
            }
        }
    }

    /// RWSEM-2, RWSEM-3: `count` is `now`, which it may be because of the caller; who is to go on.
    /// With `list_lock` held.
    fn after_release(&self, mut now: u32) -> (Chain, Option<WaiterRef>) {
        let front = self.front();
        let reader = front.as_ref().is_some_and(|first| !first.wants_to_write());
        if !reader {
            let writer = if now & (WRITER | READERS) == 0 { reference(&front) } else { None };
            return (Chain(0), writer);
        }
        let readers = self.readers_in_front();
        while now & WRITER == 0 {
            // A writer may steal the lock in between; then it lets them in as it releases.
            // Acquire: as in `read`, for those that are let in.
            let before = self.count.fetch_add(readers, Acquire);
            if before & WRITER == 0 {
                return (self.take_readers(), None);
            }
            now = self.count.fetch_sub(readers, Relaxed) - readers;
        }
        (Chain(0), None)
    }

    /// Takes `share` off the count, as the owner, where somebody may wait.
    #[cold]
    fn release(&self, share: u32) {
        let (chain, writer) = self.list(|| {
            let front = self.front();
            if front.as_ref().is_some_and(Node::wants_to_write) {
                return (None, reference(&front));
            }
            let readers = self.readers_in_front();
            let chain = self.take_readers();
            // With `list_lock` held, or a reader might join the list and find nobody to let it in.
            // Release: as in `unlock_write`.
            self.count.fetch_add(readers.wrapping_sub(share), Release);
            (Some(chain), None)
        });
        match chain {
            Some(chain) => chain.let_in::<P>(),
            None => {
                // Release: as above.
                self.count.fetch_sub(share, Release);
                wake::<P>(writer);
            }
        }
    }

    #[cold]
    fn write_contended(&self) {
        if self.spin_in_line() {
            return;
        }
        let me = loop {
            if let Some(me) = Node::<P>::try_take() {
                break me;
            }
            Node::<P>::nap();
            if self.steal() {
                return;
            }
        };
        let begun = P::now(Clock::Monotonic);
        self.list(|| self.push(&me, WRITE));
        while !self.list(|| self.take_as_first(&me, begun)) {
            // Why it has returned does not matter: the word tells.
            let _ = P::park(me.waiter, None);
        }
        me.give();
    }

    /// Takes a lock that nobody has, ahead of who sleeps, unless the first of them has asked.
    fn steal(&self) -> bool {
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | HANDOFF | READERS) == 0 {
            // Acquire: as in `try_write`.
            match self.count.compare_exchange(seen, seen | WRITER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn spin_in_line(&self) -> bool {
        if !may_spin::<P>() {
            return false;
        }
        let Some(turn) = self.spinners.enter() else { return false };
        let had = self.spin();
        self.spinners.leave(turn);
        had
    }

    /// Spins while the writer runs, and for a little while readers are in; says whether it was had.
    fn spin(&self) -> bool {
        let mut looks = 0;
        loop {
            if self.steal() {
                return true;
            }
            let seen = self.count.load(Relaxed);
            let owner = self.owner.load(Relaxed);
            let runs = owner == 0 || P::runs(ThreadId(owner));
            looks = if seen & READERS == 0 { 0 } else { looks + 1 };
            if !may_spin::<P>() || !runs || seen & HANDOFF != 0 || looks > LOOKS_AT_READERS {
                return false;
            }
            // Whatever was seen, it is looked at again.
            let _ = self.count.spin_while(Relaxed, Budget::ns(PIECE_NS), |now| now == seen);
        }
    }

    /// Takes the lock as the first on the list, and leaves that; asks for it if it has waited for
    /// long. With `list_lock` held.
    fn take_as_first(&self, me: &Node<P>, begun: u64) -> bool {
        if self.first.load(Relaxed) != me.bits() {
            return false;
        }
        let next = me.waiter.next.load(Relaxed);
        let left = if next == 0 { 0 } else { WAITERS };
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | READERS) == 0 {
            // Acquire: as in `try_write`. It clears HANDOFF, which was ours.
            match self.count.compare_exchange(seen, WRITER | left, Acquire, Relaxed) {
                Ok(_) => {
                    self.first.store(next, Relaxed);
                    if next == 0 {
                        self.last.store(0, Relaxed);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        if P::now(Clock::Monotonic).saturating_sub(begun) >= PATIENCE_NS && seen & HANDOFF == 0 {
            self.count.fetch_or(HANDOFF, Relaxed);
        }
        false
    }

    /// Runs `work` with `list_lock` held.
    fn list<R>(&self, work: impl FnOnce() -> R) -> R {
        self.list_lock.lock();
        let result = work();
        // SAFETY: locked above.
        unsafe { self.list_lock.unlock() };
        result
    }

    // The names of `Lock`, whose owner is the writer.

    fn lock(&self) {
        self.write();
    }

    fn try_lock(&self) -> bool {
        self.try_write()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.unlock_write() }
    }

    // Relaxed, all below: handed on with `list_lock`.

    fn front(&self) -> Option<Node<P>> {
        Node::at(self.first.load(Relaxed))
    }

    fn push(&self, me: &Node<P>, wants: u32) {
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(ASLEEP, Relaxed);
        me.waiter.wants.store(wants, Relaxed);
        match Node::<P>::at(self.last.load(Relaxed)) {
            Some(last) => last.waiter.next.store(me.bits(), Relaxed),
            None => {
                self.first.store(me.bits(), Relaxed);
                self.count.fetch_or(WAITERS, Relaxed);
            }
        }
        self.last.store(me.bits(), Relaxed);
    }

    /// What the readers that stand before the first writer add to the count.
    fn readers_in_front(&self) -> u32 {
        let mut readers = 0;
        let mut at = self.front();
        while let Some(reader) = at.take_if(|node| !node.wants_to_write()) {
            readers += READER;
            at = Node::at(reader.waiter.next.load(Relaxed));
        }
        readers
    }

    /// Takes them off the list, and WAITERS away if it is empty then.
    fn take_readers(&self) -> Chain {
        let chain = Chain(self.first.load(Relaxed));
        let mut last = None;
        let mut at = self.front();
        while let Some(reader) = at.take_if(|node| !node.wants_to_write()) {
            at = Node::at(reader.waiter.next.load(Relaxed));
            last = Some(reader);
        }
        let Some(last) = last else { return Chain(0) };
        last.waiter.next.store(0, Relaxed);
        self.first.store(at.as_ref().map_or(0, Node::bits), Relaxed);
        if at.is_none() {
            self.last.store(0, Relaxed);
            self.count.fetch_and(!WAITERS, Relaxed);
        }
        chain
    }
}

impl<P: Platform> Node<P> {
    fn wants_to_write(&self) -> bool {
        self.waiter.wants.load(Relaxed) == WRITE
    }
}

fn reference<P: Platform>(node: &Option<Node<P>>) -> Option<WaiterRef> {
    node.as_ref().and_then(Node::reference)
}

/// Readers that were taken off the list, and are counted.
#[must_use = "they sleep until they are let in"]
struct Chain(u32);

impl Chain {
    /// Lets them in. Touches their nodes only.
    fn let_in<P: Platform>(self) {
        let mut left = self.0;
        while let Some(reader) = Node::<P>::at(left) {
            left = reader.waiter.next.load(Relaxed);
            let reference = reader.reference();
            // Release: what the last writer has done, and our look at the link; pairs with the
            // acquire in `sleep_while`.
            reader.waiter.status.store(GRANTED, Release);
            wake::<P>(reference);
        }
    }
}

fn wake<P: Platform>(sleeper: Option<WaiterRef>) {
    if let Some(sleeper) = sleeper {
        P::unpark(sleeper);
    }
}

crate::lock::impl_lock!([P: Platform, const PATIENCE_NS: u64] LinuxRwSem<P, PATIENCE_NS>);
