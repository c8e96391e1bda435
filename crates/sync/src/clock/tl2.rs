//! Transactions over words, ordered by stamps: TL2 (D. Dice, O. Shalev, N. Shavit, "Transactional
//! Locking II", DISC 2006), with the clock as a parameter. An example of the use of stamps, and the
//! program by which they are measured.
//!
//! ```text
//! version   stamp of the last commit << 1 | locked
//! value     the number
//! ```
//!
//! | step | what happens |
//! |---|---|
//! | begin | takes a reader's stamp |
//! | read | version, value, version again: unlocked, unchanged, preceding the reader; or aborts |
//! | write | notes it |
//! | commit, 1 | locks what it has written, in the order of addresses, and takes a stamp |
//! | commit, 2 | checks again the versions of the words that it has read, as a read does |
//! | commit, 3 | writes, and unlocks with that stamp as the version |
//!
//! | invariant | says |
//! |---|---|
//! | TL2-1 | the values that a transaction has read were all current at its reader's stamp |
//! | TL2-2 | transactions that commit are serializable, in the order of their commits |
//!
//! TL2-1: a commit that took its stamp before the reader did had locked everything by then: so the
//! reader finds it locked, or the new version (STAMP-1). Of a later commit it may find the old
//! version, and does not accept the new one (STAMP-2). TL2-2: between the lock and the unlock no
//! other transaction changes the words that are written, and at the stamp of the commit the words
//! that were read are unchanged. Where the order of two stamps is uncertain a transaction aborts,
//! so that uncertainty costs time but is never an error. The transaction begins again with a stamp
//! that is certainly later.
//!
//! No transaction is protected from starving, and a thread that loses its CPU while it commits
//! holds up others that want the same words.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

use super::Stamps;
use super::log::Log;

/// A number that transactions read and write. All bits zero: the value is 0, and no transaction has
/// committed.
#[repr(C, align(16))]
pub struct Word<P: Platform> {
    version: P::U64,
    value: P::U64,
}

/// A version: when a word was last committed, and whether a commit has locked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version(u64);

impl Version {
    const LOCKED: u64 = 1;

    /// A stamp loses its highest bit, which counters take a century to reach.
    fn of(stamp: u64) -> Self {
        Self(stamp << 1)
    }

    fn stamp(self) -> u64 {
        self.0 >> 1
    }

    fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    fn locked(self) -> Self {
        Self(self.0 | Self::LOCKED)
    }
}

impl<P: Platform> Word<P> {
    /// A word that holds 0.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { version: P::U64::ZERO, value: P::U64::ZERO }
    }

    /// Returns the value of the word. For callers that run while no transaction does.
    pub fn get(&self) -> u64 {
        self.value.load(Relaxed)
    }

    fn locks(&self, seen: Version) -> bool {
        // Acquire: pairs with the release of the commit that unlocked it last, so that values are
        // written in the order of commits.
        self.version.compare_exchange(seen.0, seen.locked().0, Acquire, Relaxed).is_ok()
    }

    fn unlock(&self, version: Version) {
        // Release: pairs with the acquire of `read` and of `locks`. Also for an aborted commit: it
        // passes on what it had acquired with the lock.
        self.version.store(version.0, Release);
    }

    fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// Why a transaction cannot proceed, and what to wait for.
pub enum Abort<'a, P: Platform> {
    /// Another transaction is committing to this word.
    Locked(&'a Word<P>),
    /// A commit took this stamp, which does not certainly precede the reader's.
    Late(u64),
}

impl<P: Platform> Abort<'_, P> {
    /// Waits for as long as another attempt would fail; returns the stamp for that attempt.
    fn wait(self, stamps: &impl Stamps) -> u64 {
        match self {
            Self::Late(stamp) => stamps.after(stamp),
            Self::Locked(word) => {
                let keep = |version| Version(version).is_locked();
                match word.version.spin_while(Relaxed, Budget::PATIENCE, keep) {
                    Ok(version) => stamps.after(Version(version).stamp()),
                    // The word's owner may have lost its CPU. The next attempt finds out.
                    Err(_) => stamps.now(),
                }
            }
        }
    }
}

/// A transaction: the words that it has read and will write, at most `N` of each.
pub struct Transaction<'a, P: Platform, S, const N: usize> {
    stamps: &'a S,
    begun: u64,
    reads: Log<&'a Word<P>, N>,
    writes: Log<Write<'a, P>, N>,
}

/// A word to write, its new value, and the version that it had when it was locked.
struct Write<'a, P: Platform> {
    word: &'a Word<P>,
    value: u64,
    found: Version,
}

impl<'a, P: Platform, S: Stamps, const N: usize> Transaction<'a, P, S, N> {
    fn begin(stamps: &'a S, begun: u64) -> Self {
        Self { stamps, begun, reads: Log::new(), writes: Log::new() }
    }

    /// Reads the word.
    ///
    /// # Errors
    ///
    /// If the value at this transaction's time is not known; `body` must return this error.
    ///
    /// # Panics
    ///
    /// If the transaction reads more than `N` words.
    pub fn read(&mut self, word: &'a Word<P>) -> Result<u64, Abort<'a, P>> {
        if let Some(write) = self.writes.iter().find(|write| write.word.is(word)) {
            return Ok(write.value);
        }
        // Acquire: pairs with the release in `unlock`, so the value is that version's or newer.
        let before = Version(word.version.load(Acquire));
        // Acquire: pairs with the release in `commit`: a reader that sees a newer value sees it
        // locked.
        let value = word.value.load(Acquire);
        // Relaxed: behind the acquire of the value.
        let after = Version(word.version.load(Relaxed));
        if after.is_locked() {
            return Err(Abort::Locked(word));
        }
        if before != after || !self.stamps.precedes(after.stamp(), self.begun) {
            return Err(Abort::Late(after.stamp()));
        }
        if !self.reads.iter().any(|read| read.is(word)) {
            self.reads.push(word);
        }
        Ok(value)
    }

    /// Sets the word to `value`, if the transaction commits.
    ///
    /// # Panics
    ///
    /// If the transaction writes more than `N` words.
    pub fn write(&mut self, word: &'a Word<P>, value: u64) {
        if let Some(write) = self.writes.iter_mut().find(|write| write.word.is(word)) {
            write.value = value;
            return;
        }
        self.writes.push(Write { word, value, found: Version(0) });
    }

    fn commit(mut self) -> Result<(), Abort<'a, P>> {
        if self.writes.len() == 0 {
            // A transaction that only reads needs only TL2-1.
            return Ok(());
        }
        // All transactions lock in one order, so that of those that want the same words, one
        // proceeds.
        self.writes.sort_by_key(|write| core::ptr::from_ref(write.word).addr());
        self.lock()?;
        let stamp = self.stamps.next();
        if let Err(abort) = self.validate() {
            self.unlock_first(self.writes.len());
            return Err(abort);
        }
        for write in self.writes.iter() {
            // Release: pairs with the acquire of the value in `read`.
            write.word.value.store(write.value, Release);
            write.word.unlock(Version::of(stamp));
        }
        Ok(())
    }

    fn lock(&mut self) -> Result<(), Abort<'a, P>> {
        for index in 0..self.writes.len() {
            let Some(write) = self.writes.iter_mut().nth(index) else { break };
            let word = write.word;
            write.found = Version(word.version.load(Relaxed));
            if write.found.is_locked() || !word.locks(write.found) {
                self.unlock_first(index);
                return Err(Abort::Locked(word));
            }
        }
        Ok(())
    }

    fn unlock_first(&self, count: usize) {
        self.writes.iter().take(count).for_each(|write| write.word.unlock(write.found));
    }

    fn validate(&self) -> Result<(), Abort<'a, P>> {
        for &word in self.reads.iter() {
            // Relaxed: behind the stamp, which decides what is seen (STAMP-1).
            let version = Version(word.version.load(Relaxed));
            if version.is_locked() && !self.writes.iter().any(|write| write.word.is(word)) {
                return Err(Abort::Locked(word));
            }
            if !self.stamps.precedes(version.stamp(), self.begun) {
                return Err(Abort::Late(version.stamp()));
            }
        }
        Ok(())
    }
}

/// Runs `body` as a transaction, once: it reads and writes at most `N` words each.
///
/// # Errors
///
/// If other transactions conflicted with it; then nothing was written.
pub fn attempt<'a, P: Platform, S: Stamps, R, const N: usize>(
    stamps: &'a S,
    begun: u64,
    body: &mut impl FnMut(&mut Transaction<'a, P, S, N>) -> Result<R, Abort<'a, P>>,
) -> Result<R, Abort<'a, P>> {
    let mut transaction = Transaction::begin(stamps, begun);
    let done = body(&mut transaction)?;
    transaction.commit()?;
    Ok(done)
}

/// Runs `body` as a transaction, repeatedly until it commits. Returns the result of `body` and the
/// number of aborts.
pub fn atomically<'a, P: Platform, S: Stamps, R, const N: usize>(
    stamps: &'a S,
    mut body: impl FnMut(&mut Transaction<'a, P, S, N>) -> Result<R, Abort<'a, P>>,
) -> (R, u32) {
    let (mut begun, mut aborted) = (stamps.now(), 0);
    loop {
        match attempt(stamps, begun, &mut body) {
            Ok(done) => return (done, aborted),
            Err(abort) => begun = abort.wait(stamps),
        }
        aborted += 1;
    }
}
