//! Process namespaces: in which the ids mean something by which the kernel names threads.

use std::os::unix::fs::MetadataExt as _;

/// The process namespace of the calling process, by the kernel's number of it. `None` where
/// `/proc` does not say.
#[must_use]
pub fn namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()).ok()
}

/// Whether the ids of a process in that namespace, 0 if it could not say, are known to mean others
/// here, or none.
pub(crate) fn is_elsewhere(theirs: u64) -> bool {
    theirs != 0 && namespace().is_some_and(|ours| ours != theirs)
}
