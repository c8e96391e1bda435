//! Process namespaces, in which the kernel's ids of threads are valid.

use std::os::unix::fs::MetadataExt as _;

/// The process namespace of the calling process, by its inode number. `None` if `/proc` does not
/// show it.
#[must_use]
pub fn namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()).ok()
}

/// Returns whether the namespace `theirs` (0: unknown) is known to differ from ours, so that ids of
/// its processes name others here, or none.
pub(crate) fn is_elsewhere(theirs: u64) -> bool {
    theirs != 0 && namespace().is_some_and(|ours| ours != theirs)
}
