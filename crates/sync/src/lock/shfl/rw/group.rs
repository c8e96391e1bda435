//! Policies that sort waiters by whether they want to read or write.
//!
//! Source: `000_…`, "RWlock: Group writers together". Readers that stand together come in together;
//! between writers that stand together no reader is woken.

use antiphon_platform::Platform;

use crate::policy::{Policy, Waiting};

/// Groups waiting writers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWriters;

/// Groups waiting readers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupReaders;

impl Policy for GroupWriters {
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        writes(shuffler) && writes(candidate)
    }
}

impl Policy for GroupReaders {
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        !writes(shuffler) && !writes(candidate)
    }
}

fn writes<P: Platform>(waiter: &Waiting<P>) -> bool {
    waiter.wants() != 0
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use antiphon_linux::Linux;
    use antiphon_platform::{Atomic, Waiter};

    use super::*;

    #[test]
    fn waiters_are_grouped_by_what_they_want() {
        let [reader, writer] = [const { Waiter::<Linux>::NEW }; 2];
        writer.wants.store(1, Relaxed);
        let [reader, writer] = [&reader, &writer].map(Waiting::of);
        let (readers, writers) = (GroupReaders, GroupWriters);
        assert!(readers.groups(reader, reader) && writers.groups(writer, writer));
        for (one, other) in [(reader, writer), (writer, reader)] {
            assert!(!readers.groups(one, other) && !writers.groups(one, other));
        }
        assert!(!readers.groups(writer, writer) && !writers.groups(reader, reader));
    }
}
