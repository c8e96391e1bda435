//! The notes of a thread, and their encoding.

/// A recorded action of a thread. Objects are numbers of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The time, in ticks; for [`Code::Asked`] a number of ticks; for [`Code::Ran`] and
    /// [`Code::Queued`] nanoseconds.
    pub time: u64,
    /// The kind of event.
    pub code: Code,
    /// Further bits: see [`Code`].
    pub flags: u8,
    /// The object of the event: see [`Code`].
    pub object: u32,
}

/// The kinds of notes. The thread is the one that writes the [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The thread begins.
    Begins = 1,
    /// The thread ends.
    Ends,
    /// The thread waits for a lock; object: the row.
    Waits,
    /// The thread has taken a lock; object: the row; flags: [`SHARED`], [`TRIED`].
    Takes,
    /// The thread gives up waiting for a lock; object: the row.
    GivesUp,
    /// The thread releases a lock; object: the row at which it was taken.
    Releases,
    /// The thread releases a lock whose row is not known; object: a key of the address.
    ReleasesAt,
    /// The thread waits on a condition variable; object: the row.
    Sleeps,
    /// The wait of [`Sleeps`](Self::Sleeps) is over; object: the row; flag: [`NOTIFIED`].
    Wakes,
    /// The thread notifies; object: the row; flag: [`ALL`].
    Notifies,
    /// The thread has created another; object: the number of the other.
    Creates,
    /// The thread waits for the end of another; object: the number of the other.
    Joins,
    /// The wait of [`Joins`](Self::Joins) is over; object: the same number.
    Joined,
    /// CPU time of the thread since the previous note; object: number of voluntary context
    /// switches.
    Ran,
    /// The role of the thread; object: 1 + the record of the site at which it begins.
    Role,
    /// The total time for which the thread was runnable and had no CPU, from its start on. The
    /// thread notes it when it begins, and after [`Ran`](Self::Ran) if it left the CPU voluntarily
    /// and was in no recorded wait.
    Queued,
    /// The thread's time since the previous note that went into asking the kernel for
    /// [`Ran`](Self::Ran) and [`Queued`](Self::Queued), whether these are noted or not. Not noted
    /// if it is so long that other threads may have had the CPU.
    Asked,
}

impl Code {
    const ALL: [Self; 17] = [
        Self::Begins,
        Self::Ends,
        Self::Waits,
        Self::Takes,
        Self::GivesUp,
        Self::Releases,
        Self::ReleasesAt,
        Self::Sleeps,
        Self::Wakes,
        Self::Notifies,
        Self::Creates,
        Self::Joins,
        Self::Joined,
        Self::Ran,
        Self::Role,
        Self::Queued,
        Self::Asked,
    ];

    pub(crate) fn of(bits: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(bits).ok()?.checked_sub(1)?).copied()
    }
}

/// A flag of [`Code::Takes`]: the lock is held to read, possibly beside others.
pub const SHARED: u8 = 1;
/// A flag of [`Code::Takes`]: the thread would not have waited.
pub const TRIED: u8 = 2;
/// A flag of [`Code::Wakes`]: a notification ended the wait.
pub const NOTIFIED: u8 = 1;
/// A flag of [`Code::Notifies`]: all waiters are notified.
pub const ALL: u8 = 1;

/// A hash of the address of an object, to distinguish the objects that a thread holds.
#[must_use]
pub const fn address_tag(address: usize) -> u32 {
    // Objects are aligned to at least four bytes; the upper half is mixed in.
    (address >> 2) as u32 ^ (address >> 34) as u32
}

impl Note {
    pub(super) const fn word(self) -> u64 {
        self.code as u64 | (self.flags as u64) << 8 | (self.object as u64) << 32
    }

    pub(super) fn of(time: u64, word: u64) -> Option<Self> {
        let code = Code::of(word & 0xff)?;
        Some(Self { time, code, flags: (word >> 8) as u8, object: (word >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (at, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at + 1);
            let note = Note { time: u64::MAX, code, flags: 3, object: u32::MAX - 7 };
            assert_eq!(Note::of(note.time, note.word()), Some(note));
        }
        assert_eq!(Note::of(1, 0), None);
        assert_eq!(Note::of(1, 18), None);
    }
}
