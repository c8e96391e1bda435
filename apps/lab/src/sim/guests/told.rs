//! A lock whose program tells its sections, for locks that do not tell them themselves.
//!
//! A lock that does tell them has them told twice: sections nest. The marks of owners cost nothing,
//! and are there with and without hints; they serve the host's counts.

use antiphon_platform::{Hint, Hints as _};
use antiphon_replay::locks::{Guards, Instance, Seat, Simulated};
use antiphon_sim::{Access, Owns, Sim, owns};

/// The lock.
pub struct Told(pub Instance);

impl Guards for Told {
    fn beside(&self, access: Access) {
        self.0.beside(access);
    }
}

// SAFETY: the inner lock keeps the promise; only hints are given beside it.
unsafe impl Simulated for Told {
    fn lock(&self) {
        self.0.lock();
        begins();
    }

    fn try_lock(&self) -> bool {
        let taken = self.0.try_lock();
        if taken {
            begins();
        }
        taken
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise is the same.
        ends(|| unsafe { self.0.unlock() });
    }

    fn read(&self) -> Seat {
        let seat = self.0.read();
        begins();
        seat
    }

    unsafe fn unlock_read(&self, seat: Seat) {
        // SAFETY: the caller's promise is the same.
        ends(|| unsafe { self.0.unlock_read(seat) });
    }
}

/// Begins a section: of an owner, or of a reader that a writer waits for.
pub fn begins() {
    owns(Owns::Yes);
    if Sim::heeds_sections() {
        Sim::hint(Hint::SectionBegin);
    }
}

/// Ends it by `release`.
pub fn ends(release: impl FnOnce()) {
    owns(Owns::GivesBack);
    let told = Sim::heeds_sections();
    if told {
        Sim::hint(Hint::SectionEnd);
    }
    release();
    owns(Owns::No);
    if told {
        Sim::hint(Hint::Released);
    }
}
