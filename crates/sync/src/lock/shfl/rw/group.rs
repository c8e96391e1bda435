//! Sorting by what waiters want.
//!
//! Source: `000_…`, "RWlock: Group writers together". Readers that stand together come in together;
//! between writers that stand together no reader wakes, waits and goes.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform, Waiter};

use crate::policy::Policy;

/// Writers that wait stand together.
pub struct GroupWriters;

/// Readers that wait stand together.
pub struct GroupReaders;

impl Policy for GroupWriters {
    fn shuffles<P: Platform>() -> bool {
        true
    }

    fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        writes(shuffler) && writes(candidate)
    }
}

impl Policy for GroupReaders {
    fn shuffles<P: Platform>() -> bool {
        true
    }

    fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        !writes(shuffler) && !writes(candidate)
    }
}

fn writes<P: Platform>(waiter: &Waiter<P>) -> bool {
    // Relaxed: written before the waiter joined the queue, whose links are acquired.
    waiter.wants.load(Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;

    use super::*;

    #[test]
    fn waiters_are_grouped_by_what_they_want() {
        let [reader, writer] = [const { Waiter::<Linux>::NEW }; 2];
        writer.wants.store(1, Relaxed);
        assert!(GroupReaders::groups(&reader, &reader) && GroupWriters::groups(&writer, &writer));
        for (one, other) in [(&reader, &writer), (&writer, &reader)] {
            assert!(!GroupReaders::groups(one, other) && !GroupWriters::groups(one, other));
        }
        assert!(!GroupReaders::groups(&writer, &writer) && !GroupWriters::groups(&reader, &reader));
    }
}
