//! The ways to hold a readers-writer lock, by which the waiters of its queue differ.

use super::state::{Heed, State};

/// A way to hold the lock.
pub(super) trait Kind {
    /// Whether this way excludes readers; as in
    /// [`Waiter::wants`](antiphon_platform::Waiter::wants).
    const WRITES: bool;

    /// Returns the state after a thread that respects `heed` has come in; `None` if it must stay
    /// out.
    fn enter(seen: State, heed: Heed) -> Option<State>;
}

/// The writer's way: alone.
pub(super) struct Write;

impl Kind for Write {
    const WRITES: bool = true;

    fn enter(seen: State, heed: Heed) -> Option<State> {
        let kept = seen.is_fair() && matches!(heed, Heed::All | Heed::Recursion);
        (seen.is_free() && !kept).then(|| seen.with_writer())
    }
}

/// The reader's way: beside other readers.
pub(super) struct Read;

impl Kind for Read {
    const WRITES: bool = false;

    fn enter(seen: State, heed: Heed) -> Option<State> {
        seen.admits_reader(heed).then(|| seen.enter_reader())
    }
}

/// The upgradable reader's way: beside other readers, with the right to become the writer; one at a
/// time.
pub(super) struct Upgradable;

impl Kind for Upgradable {
    /// An upgradable reader need not keep readers out to get in.
    const WRITES: bool = false;

    fn enter(seen: State, heed: Heed) -> Option<State> {
        let admitted = !seen.has_upgradable() && seen.admits_reader(heed);
        admitted.then(|| seen.with_upgradable())
    }
}
