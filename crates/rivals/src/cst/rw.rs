//! The CST readers-writer lock.

use antiphon_platform::{Platform, SocketId};

use super::mutex::{CstMutex, Had};
use super::readers::{Leaders, Readers};
use super::snode::Snode;
use super::{CstForm, Standard};

/// A CST readers-writer lock: 16 bytes, 192 bytes for each socket that has used it, and a node of
/// 64 bytes for the owner and each waiter.
///
/// It prefers writers as long as their batch lasts, and a thread that reads must not read again. A
/// socket's first acquisition is internally one for writing, even by `read`. Drop the lock only
/// where a [`CstMutex`] may be dropped.
#[repr(transparent)]
pub struct CstRwLock<P: Platform, F: CstForm = Standard> {
    writers: CstMutex<P, F, true>,
}

/// Names the word that counts a reader: the reader leaves by its seat, whichever socket it runs on
/// by then.
#[must_use = "a reader leaves by its seat"]
pub struct Seat<P: Platform>(Option<Readers<P>>);

/// What a reader finds on its socket.
enum Here<P: Platform> {
    /// The socket's readers' word, to enter or to wait for.
    Found(Readers<P>),
    /// Only a structure that this reader has just made, which is closed; or no node was free for
    /// one.
    Made,
}

impl<P: Platform, F: CstForm> CstRwLock<P, F> {
    /// A free lock.
    pub const NEW: Self = Self { writers: CstMutex::NEW };

    /// Acquires the lock for reading; blocks until the caller has it. If a structure for the socket
    /// cannot be allocated, the caller holds the lock alone.
    pub fn read(&self) -> Seat<P> {
        loop {
            match self.here() {
                Here::Made => return self.read_as_writer(),
                Here::Found(readers) if readers.enter() => return Seat(Some(readers)),
                Here::Found(readers) => readers.wait::<F>(),
            }
        }
    }

    /// Acquires the lock for reading if no writer has it; never blocks. The first time on a socket
    /// it succeeds only if the lock is free and there is a node for the caller.
    pub fn try_read(&self) -> Option<Seat<P>> {
        match self.writers.snodes.get(P::socket()).and_then(|snode| snode.readers()) {
            Some(readers) => readers.enter().then_some(Seat(Some(readers))),
            // SAFETY: `try_write` has acquired the lock.
            None => self.try_write().then(|| unsafe { self.downgrade() }),
        }
    }

    /// Releases the lock held for reading; wakes a writer that sleeps until the socket's last
    /// reader has left.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading, by this seat.
    pub unsafe fn unlock_read(&self, seat: Seat<P>) {
        match seat.0 {
            Some(readers) => readers.leave(),
            // SAFETY: the caller's promise; the caller is in as a writer.
            None => unsafe { self.unlock_write() },
        }
    }

    /// Acquires the lock for writing; blocks until the caller has it.
    pub fn write(&self) {
        if self.writers.lock_by() == Had::Fresh {
            self.close();
        }
    }

    /// Acquires the lock for writing if it is free and there is a node for the caller; never
    /// blocks. It fails while a reader checks whether it may enter.
    pub fn try_write(&self) -> bool {
        if !self.writers.try_lock() {
            return false;
        }
        let empty = self.close_all();
        if !empty {
            // SAFETY: `try_lock` has acquired the lock.
            unsafe { self.unlock_write() };
        }
        empty
    }

    /// Releases the lock held for writing, as [`CstMutex::unlock`] does. At the end of a batch,
    /// readers are admitted, and one sleeping reader is woken on each socket.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn unlock_write(&self) {
        let mut leaders = Leaders::NONE;
        self.writers.unlock_by(|| leaders = self.open());
        leaders.wake::<P>();
    }

    /// Turns the lock held for writing into one held for reading, with no writer in between; never
    /// blocks. If a structure for the socket cannot be allocated, the caller keeps the lock alone.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) -> Seat<P> {
        let Some((snode, _)) = self.writers.snodes.of::<true>(P::socket()) else {
            return Seat(None);
        };
        let Some(readers) = snode.readers() else { return Seat(None) };
        readers.enter_as_owner();
        let mut leaders = Leaders::NONE;
        self.writers.give_up_by(|| leaders = self.open());
        leaders.wake::<P>();
        Seat(Some(readers))
    }

    /// Does what [`CstMutex::reserve`] does; acquires the lock for writing meanwhile, so it may
    /// block.
    pub fn reserve(&self, socket: SocketId) -> bool {
        self.write();
        let reserved = self.writers.reserve(socket);
        // SAFETY: `write` has acquired the lock.
        unsafe { self.unlock_write() };
        reserved
    }

    /// Number of sockets that the lock has structures for, 192 bytes each.
    pub fn sockets(&self) -> usize {
        self.writers.sockets()
    }

    /// Does what [`CstMutex::reset`] does.
    pub fn reset(&mut self) {
        self.writers.reset();
    }

    /// Finds or makes the readers' word of the caller's socket.
    fn here(&self) -> Here<P> {
        match self.writers.snodes.of::<true>(P::socket()) {
            Some((snode, false)) => snode.readers().map_or(Here::Made, Here::Found),
            Some((_, true)) | None => Here::Made,
        }
    }

    /// CST-RW-2: the thread that has made a structure must open it, as a writer that leaves.
    fn read_as_writer(&self) -> Seat<P> {
        self.write();
        // SAFETY: `write` has acquired the lock.
        unsafe { self.downgrade() }
    }

    fn sockets_readers(&self) -> impl Iterator<Item = Readers<P>> {
        self.writers.snodes.iter().filter_map(|snode: Snode<P>| snode.readers())
    }

    /// CST-RW-2: keeps readers out, and waits until those that are in have left.
    fn close(&self) {
        // All words are closed first: so all their readers leave at the same time.
        let empty = self.close_all();
        if !empty {
            self.sockets_readers().for_each(|readers| readers.wait_until_empty::<F>());
        }
    }

    /// Keeps readers out; returns whether no reader is in.
    fn close_all(&self) -> bool {
        let mut empty = true;
        for readers in self.sockets_readers() {
            empty &= readers.close();
        }
        empty
    }

    fn open(&self) -> Leaders {
        self.sockets_readers().fold(Leaders::NONE, |all, readers| all.and::<P>(readers.open()))
    }
}

antiphon_sync::impl_lock!(unsafe writer: [P: Platform, F: CstForm] CstRwLock<P, F>);
