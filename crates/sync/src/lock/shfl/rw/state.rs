//! The state word of the readers-writer lock, unpacked.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0 | `WRITER` | a writer owns the lock |
//! | 1 | `WAKE` | the head sleeps: the release that it waits for must wake it |
//! | 2 | `FAIR` | the lock is kept for the head, once it is free |
//! | 3 | `WAITING` | the head is a writer, and was not called: while readers are in, no more come |
//! | 4 | `UPGRADABLE` | a reader is in that may become the writer; not counted below |
//! | 5 | `UPGRADING` | that reader waits for the others to leave: no more come |
//! | 6 | `OPEN` | readers are counted by socket, and may come in there |
//! | 7 | `SHUT` | readers are counted by socket, and may not come in there |
//! | 8–23 | `name` | low half of the index of the head, if it sleeps or was called |
//! | 24–39 | `upgrader` | that half for an upgrading reader, if it sleeps; or a writer's [`Mark`] |
//! | 40–63 | `readers` | number of readers that are in; bit 63 is set if they are too many |
//!
//! `OPEN` and `SHUT` are the mode of the lock (`spread.rs`): with neither set the mode is
//! *central*; with both set a writer, whose `WRITER` is set, waits until the readers of all sockets
//! have left. `UPGRADING` beside `WRITER` means that the writer verifies that they have left. A
//! writer that waits so has its [`Mark`] in `upgrader`, which then has no other use: RW-12.
//!
//! All of it is one word so that a thread that releases learns, by the same instruction, whether a
//! waiter must be woken and which (RW-3).

/// The part of the state that counts one reader.
pub(super) const READER: u64 = 1 << 40;
/// The state of a lock that a writer owns and no other thread wants.
pub(super) const WRITER: u64 = 1;

const WAKE: u64 = 1 << 1;
const FAIR: u64 = 1 << 2;
const WAITING: u64 = 1 << 3;
const UPGRADABLE: u64 = 1 << 4;
const UPGRADING: u64 = 1 << 5;
const OPEN: u64 = 1 << 6;
const SHUT: u64 = 1 << 7;
const MODE: u64 = OPEN | SHUT;
const NAME_SHIFT: u32 = 8;
const NAME: u64 = 0xFFFF << NAME_SHIFT;
const UPGRADER_SHIFT: u32 = 24;
const UPGRADER: u64 = 0xFFFF << UPGRADER_SHIFT;
const FULL: u64 = 1 << 63;
/// In a mark: the writer was an upgradable reader, and is one again if it gives up.
const UPGRADES: u16 = 1 << 15;
/// The head's requests.
const HEADS: u64 = WAKE | FAIR | WAITING | NAME;

const _: () = assert!(NAME & UPGRADER == 0 && UPGRADER < READER);

/// The most readers that a lock admits; the next is refused. A process has fewer threads, so only
/// recursive read locks reach it. The count has room for as many again, because arriving readers
/// count themselves before they check.
pub const MAX_READERS: u32 = 1 << 23;
const _: () = assert!(MAX_READERS as u64 == FULL / READER);

/// The process of a writer that waits for the readers of all sockets, and what the writer was
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u16);

impl Mark {
    /// The mark of a writer of the process with that [`epoch`](antiphon_platform::Platform::epoch).
    pub(super) fn writer(epoch: u32) -> Self {
        debug_assert!(epoch != 0 && epoch < UPGRADES.into());
        Self(epoch as u16)
    }

    /// The mark of a writer that was an upgradable reader.
    pub(super) fn upgrader(epoch: u32) -> Self {
        Self(Self::writer(epoch).0 | UPGRADES)
    }

    fn epoch(self) -> u32 {
        (self.0 & !UPGRADES).into()
    }
}

/// What an arriving thread respects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heed {
    /// Respects waiting writers, and that the lock is kept for the head.
    All,
    /// Respects only that the lock is kept for the head: the caller may be a reader already (RW-5).
    Recursion,
    /// Respects only waiting writers, and takes a free lock.
    Trying,
    /// Respects only threads that are in. Combines `Recursion` and `Trying`.
    Insisting,
    /// Respects what `Insisting` does: the caller is the head.
    Head,
}

impl Heed {
    /// Returns whether the caller may be a reader already.
    pub(super) fn recurs(self) -> bool {
        matches!(self, Self::Recursion | Self::Insisting)
    }
}

/// A value of the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct State(pub(super) u64);

impl State {
    pub(super) fn has_writer(self) -> bool {
        self.0 & WRITER != 0
    }

    pub(super) fn has_readers(self) -> bool {
        self.0 >= READER
    }

    pub(super) fn has_upgradable(self) -> bool {
        self.0 & UPGRADABLE != 0
    }

    /// Returns whether no thread is in.
    pub(super) fn is_free(self) -> bool {
        self.0 & (WRITER | UPGRADABLE) == 0 && !self.has_readers()
    }

    /// Returns whether one more reader would be too many. Where readers are counted by socket, this
    /// count contains only readers that pass through, and may be negative for a moment.
    pub(super) fn is_full(self) -> bool {
        self.0 & FULL != 0 && !self.is_spread()
    }

    /// Returns how many readers are counted in this word.
    pub(super) fn readers(self) -> u64 {
        self.0 / READER
    }

    /// Returns whether at least `crowd` readers are in.
    pub(super) fn is_crowd(self, crowd: u32) -> bool {
        self.readers() >= u64::from(crowd)
    }

    /// Returns whether readers are counted by socket.
    pub(super) fn is_spread(self) -> bool {
        self.0 & MODE != 0
    }

    /// Returns whether readers are counted by socket and may come in there.
    pub(super) fn lets_sit(self) -> bool {
        self.0 & MODE == OPEN
    }

    /// Returns whether the lines of all sockets are closed, and no reader is in by them.
    pub(super) fn is_shut(self) -> bool {
        self.0 & MODE == SHUT
    }

    /// Returns whether a writer makes sure that no reader is in at a socket.
    pub(super) fn is_verifying(self) -> bool {
        self.0 & (WRITER | UPGRADING) == WRITER | UPGRADING
    }

    /// Returns whether a writer is in that waits for no readers.
    pub(super) fn is_written(self) -> bool {
        self.has_writer() && !self.may_be_sat_in() && !self.is_verifying()
    }

    /// Returns whether readers are counted by socket and none may come in there, but a writer is in
    /// that will let them in.
    pub(super) fn will_open(self) -> bool {
        self.has_writer() && self.is_spread() && !self.lets_sit()
    }

    /// Returns whether a writer waits for the readers of all sockets, and lets none in.
    pub(super) fn is_drained(self) -> bool {
        self.0 & (WRITER | MODE) == WRITER | MODE || self.is_verifying()
    }

    /// Returns whether readers may be in at their sockets.
    pub(super) fn may_be_sat_in(self) -> bool {
        self.0 & OPEN != 0
    }

    /// Returns the state in which readers are counted by socket, and the waiter to wake, which has
    /// waited for their count; `None` if the readers that are in may not be counted there.
    pub(super) fn spread(self) -> Option<(Self, Option<u16>)> {
        let central = self.0 & (WRITER | UPGRADING | MODE) == 0;
        let spread = central && self.has_readers() && !self.is_full();
        spread.then(|| Self(self.0 & (READER - 1) | OPEN).call())
    }

    /// RW-15: returns the state of a writer's lock whose readers are counted by socket from now on;
    /// `None` if the mode is not central, or a reader is counted here.
    pub(super) fn shut(self) -> Option<Self> {
        let central = self.0 & (WRITER | MODE) == WRITER;
        (central && !self.has_readers()).then_some(Self(self.0 | SHUT))
    }

    /// Returns the mark of the writer that waits for the readers of all sockets, if any.
    pub(super) fn drainer(self) -> Option<Mark> {
        let waits = self.has_writer() && !self.is_written();
        waits.then_some(Mark((self.0 >> UPGRADER_SHIFT) as u16))
    }

    /// Returns the state that a writer found as it came in, with the mark that the writer then set.
    pub(super) fn with_mark(self, mark: Mark) -> Self {
        Self(self.0 & !UPGRADER | u64::from(mark.0) << UPGRADER_SHIFT)
    }

    /// RW-12: returns the state unchanged if the writer waits for no readers; otherwise with the
    /// writer's mark.
    pub(super) fn marked(self, mark: Mark) -> Self {
        if self.drainer().is_some() { self.with_mark(mark) } else { self }
    }

    /// Returns the mark that [`with_mark`](Self::with_mark) has set.
    pub(super) fn mark(self) -> Mark {
        Mark((self.0 >> UPGRADER_SHIFT) as u16)
    }

    /// RW-12: returns whether a writer of another process waits for readers: such a writer does not
    /// exist here.
    pub(super) fn is_abandoned(self, epoch: u32) -> bool {
        self.drainer().is_some_and(|mark| mark.epoch() != epoch)
    }

    /// Returns the state in which the writer waits for the readers of all sockets.
    pub(super) fn with_draining(self) -> Self {
        Self(self.0 & !UPGRADING | MODE)
    }

    /// Returns the state in which the readers of all sockets seem to have left.
    pub(super) fn with_verifying(self) -> Self {
        Self(self.0 & !OPEN | UPGRADING)
    }

    /// Returns the state in which the readers of all sockets have left.
    pub(super) fn drained(self) -> Self {
        Self(self.0 & !(UPGRADING | UPGRADER))
    }

    /// Returns the state in which the writer no longer waits for the readers of all sockets, and is
    /// what it was before; and the waiter to wake.
    pub(super) fn not_drained(self) -> (Self, Option<u16>) {
        let open = Self(self.with_open().0 & !(UPGRADING | UPGRADER));
        let upgrades = self.mark().0 & UPGRADES != 0;
        if upgrades { open.downgrade_to_upgradable() } else { open.release_writer() }
    }

    /// Returns the state in which readers may come in at their sockets.
    pub(super) fn with_open(self) -> Self {
        Self(self.0 & !MODE | OPEN)
    }

    /// Returns the state in which readers are counted here; `None` if the lines are not shut or a
    /// reader is counted here.
    pub(super) fn centralised(self) -> Option<Self> {
        (self.is_shut() && !self.has_readers()).then_some(Self(self.0 & !MODE))
    }

    pub(super) fn is_fair(self) -> bool {
        self.0 & FAIR != 0
    }

    /// Returns whether a head sleeps, or was called and has not come.
    pub(super) fn is_called(self) -> bool {
        self.0 & NAME != 0
    }

    /// Returns whether a release wakes a waiter.
    pub(super) fn is_to_be_woken(self) -> bool {
        self.0 & WAKE != 0
    }

    /// Returns whether a thread that comes in now overtakes a head that was called and has not
    /// come, and for which the lock is not kept.
    pub(super) fn is_overtaken(self) -> bool {
        self.is_called() && self.0 & (FAIR | WAITING) == 0
    }

    /// Returns whether the head is a writer that was not called.
    pub(super) fn has_waiting_writer(self) -> bool {
        self.0 & WAITING != 0
    }

    /// Returns whether nothing keeps a reader out, so that no further check is needed.
    pub(super) fn is_open(self) -> bool {
        self.0 & (WRITER | FAIR | WAITING | UPGRADING | FULL | MODE) == 0
    }

    /// Returns whether a reader may come in.
    pub(super) fn admits_reader(self, heed: Heed) -> bool {
        // A head was kept out when it came, so it is not one reader too many.
        let full = self.is_full() && heed != Heed::Head;
        if self.has_writer() || full {
            return false;
        }
        let keeps_out = match heed {
            Heed::Head => UPGRADING,
            // RW-5: with readers in, the caller may be one.
            Heed::Recursion | Heed::Insisting if self.has_readers() || self.lets_sit() => 0,
            // Or the caller may be the upgradable reader, unless that reader waits already.
            Heed::Recursion | Heed::Insisting if self.has_upgradable() => UPGRADING,
            // RW-4: with any thread in, a waiting writer keeps others out.
            Heed::All | Heed::Trying if !self.is_free() => FAIR | WAITING | UPGRADING,
            Heed::Trying | Heed::Insisting => 0,
            // The last thread to be in has called the head.
            Heed::All | Heed::Recursion if self.0 & WAKE != 0 => FAIR,
            Heed::All | Heed::Recursion => FAIR | WAITING,
        };
        self.0 & keeps_out == 0
    }

    /// Returns the state that `change` makes of this one, if it differs.
    pub(super) fn changed(self, change: impl Fn(Self) -> Self) -> Option<Self> {
        let new = change(self);
        (new != self).then_some(new)
    }

    pub(super) fn with_reader(self) -> Self {
        Self(self.0.wrapping_add(READER))
    }

    /// Does what [`with_reader`](Self::with_reader) does, for a reader that comes in. The first
    /// reader overtakes a head that was called, and lets other readers come with it.
    pub(super) fn enter_reader(self) -> Self {
        let overtaken = if self.is_free() { WAITING } else { 0 };
        Self(self.0 & !overtaken).with_reader()
    }

    pub(super) fn without_reader(self) -> Self {
        Self(self.0.wrapping_sub(READER))
    }

    pub(super) fn with_writer(self) -> Self {
        Self(self.0 | WRITER)
    }

    /// Returns the state after the head has come, or has given up: its requests are removed.
    pub(super) fn without_head(self) -> Self {
        Self(self.0 & !HEADS)
    }

    /// Returns the state in which the head of this name must be woken; `writes`: the head is a
    /// writer.
    pub(super) fn with_sleeper(self, name: u16, writes: bool) -> Self {
        let waiting = if writes { WAITING } else { 0 };
        let others = self.0 & !(NAME | WAITING);
        Self(others | WAKE | waiting | u64::from(name) << NAME_SHIFT)
    }

    /// Returns the state after a thread makes the waiter `name` the head and wakes it; readers and
    /// writers may come in.
    pub(super) fn with_called(self, name: u16) -> Self {
        Self(self.0 & !NAME | u64::from(name) << NAME_SHIFT)
    }

    /// Returns the state in which the head, which is awake, is a writer that readers keep out; the
    /// state unchanged if they do not.
    pub(super) fn with_writer_waiting(self) -> Self {
        let kept_out = !self.is_free() && !self.has_writer();
        if kept_out { Self(self.0 & !WAKE | WAITING) } else { self }
    }

    pub(super) fn with_fair(self) -> Self {
        Self(self.0 | FAIR)
    }

    /// Returns the state in which nothing is kept for the head any longer.
    pub(super) fn without_favour(self) -> Self {
        Self(self.0 & !(FAIR | WAITING))
    }

    /// The writer leaves: returns the state that remains, and the waiter to wake.
    pub(super) fn release_writer(self) -> (Self, Option<u16>) {
        Self(self.0 & !WRITER).call()
    }

    /// The writer becomes a reader: returns the new state, and the waiter to wake.
    pub(super) fn downgrade(self) -> (Self, Option<u16>) {
        Self(self.0 & !WRITER).with_reader().call_reader()
    }

    /// The writer becomes an upgradable reader: returns the new state, and the waiter to wake.
    pub(super) fn downgrade_to_upgradable(self) -> (Self, Option<u16>) {
        Self(self.0 & !WRITER).with_upgradable().call_reader()
    }

    /// The upgradable reader becomes a plain reader: returns the new state, and the waiter to wake.
    pub(super) fn downgrade_upgradable(self) -> (Self, Option<u16>) {
        Self(self.0 & !UPGRADABLE).with_reader().call_reader()
    }

    /// The upgradable reader leaves: returns the state that remains, and the waiter to wake.
    pub(super) fn release_upgradable(self) -> (Self, Option<u16>) {
        let after = Self(self.0 & !UPGRADABLE);
        // With readers in, the last of them calls a writer.
        if self.has_readers() { after.call_reader() } else { after.call() }
    }

    pub(super) fn with_upgradable(self) -> Self {
        Self(self.0 | UPGRADABLE)
    }

    /// The upgradable reader of this name waits for the other readers; 0 for a reader that naps.
    pub(super) fn with_upgrader(self, name: u16) -> Self {
        Self(self.0 | UPGRADING | u64::from(name) << UPGRADER_SHIFT)
    }

    /// The upgradable reader gives up becoming the writer, and threads that were kept out may come
    /// in: returns the new state, and the waiter to wake.
    pub(super) fn without_upgrader(self) -> (Self, Option<u16>) {
        Self(self.0 & !(UPGRADING | UPGRADER)).call_reader()
    }

    /// The upgradable reader becomes the writer.
    pub(super) fn upgrade(self) -> Self {
        Self(self.0 & !(UPGRADABLE | UPGRADING | UPGRADER)).with_writer()
    }

    /// Returns the waiter that must be woken when the last reader has left this state (RW-2), or
    /// that was woken and has the lock kept for it from now on.
    pub(super) fn called_by_none(self) -> Option<u16> {
        if self.has_readers() {
            return None;
        }
        match self.0 & (WAKE | FAIR | UPGRADABLE) {
            0 => None,
            flags if flags & UPGRADABLE == 0 => Some(self.name()),
            _ => Some((self.0 >> UPGRADER_SHIFT) as u16).filter(|&name| name != 0),
        }
    }

    /// Fulfils the head's request to be woken. Until the head has come it may be overtaken, unless
    /// the lock is kept for it.
    fn call(self) -> (Self, Option<u16>) {
        let after = if self.0 & WAKE == 0 { self } else { Self(self.0 & !(WAKE | WAITING)) };
        (after, (self.0 & (WAKE | FAIR) != 0).then(|| self.name()))
    }

    /// Does what [`call`](Self::call) does, where readers may come in and writers may not.
    fn call_reader(self) -> (Self, Option<u16>) {
        if self.0 & WAITING == 0 { self.call() } else { (self, None) }
    }

    /// Returns the name of the head.
    pub(super) fn name(self) -> u16 {
        (self.0 >> NAME_SHIFT) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: State = State(0);

    /// A state that has `readers` and all that the head can ask for.
    fn crowded(readers: u64) -> State {
        State(readers * READER).with_sleeper(0xFFFF, true).with_fair()
    }

    #[test]
    fn fields_do_not_touch_each_other() {
        let state = crowded(3).with_upgradable().with_upgrader(0xABCD);
        assert_eq!(state.name(), 0xFFFF);
        assert_eq!(state.without_head(), State(3 * READER).with_upgradable().with_upgrader(0xABCD));
        assert_eq!(state.upgrade(), crowded(3).with_writer());
        assert_eq!(state.without_reader().with_reader(), state);
        assert_eq!(state.with_sleeper(1, false).name(), 1);
        assert_eq!(FREE.with_reader().without_reader(), FREE);
    }

    #[test]
    fn one_too_many_is_refused_and_the_count_does_not_wrap() {
        let last = State(u64::from(MAX_READERS - 1) * READER);
        assert!(last.is_open() && last.admits_reader(Heed::All));
        let full = last.with_reader();
        assert!(!full.is_open());
        for heed in [Heed::All, Heed::Recursion, Heed::Trying, Heed::Insisting] {
            assert!(!full.admits_reader(heed));
        }
        assert!(full.admits_reader(Heed::Head), "it was kept out when it came");
        // As many threads as there can be count themselves in before they look.
        let over = State(full.0 + (1 << 22) * READER);
        assert!(over.is_full() && over.has_readers());
    }

    #[test]
    fn who_leaves_wakes_who_can_come_in() {
        let (writer, reader) = (FREE.with_sleeper(7, true), FREE.with_sleeper(8, false));
        assert_eq!(writer.with_writer().release_writer().1, Some(7));
        assert_eq!(writer.with_writer().downgrade().1, None);
        assert_eq!(reader.with_writer().downgrade().1, Some(8));
        assert_eq!(reader.with_writer().downgrade_to_upgradable().1, Some(8));
        assert_eq!(writer.with_reader().without_reader().called_by_none(), Some(7));
        assert_eq!(writer.with_reader().with_reader().without_reader().called_by_none(), None);
        // The upgradable reader is nearer to the lock than the head.
        let upgradable = writer.with_reader().with_upgradable();
        assert_eq!(upgradable.without_reader().called_by_none(), None);
        assert_eq!(upgradable.with_upgrader(9).without_reader().called_by_none(), Some(9));
        assert_eq!(upgradable.with_upgrader(0).without_reader().called_by_none(), None);
        assert_eq!(upgradable.release_upgradable().1, None);
        assert_eq!(upgradable.without_reader().release_upgradable().1, Some(7));
        assert_eq!(reader.with_upgradable().with_upgrader(9).without_upgrader().1, Some(8));
        // A request is met once.
        assert_eq!(writer.with_writer().release_writer().0.with_writer().release_writer().1, None);
    }
}
