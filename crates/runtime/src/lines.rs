//! Padding of data that some threads write and others read, to keep it apart from its neighbours.

/// Placed on two cache lines of its own, because prefetchers fetch lines in pairs.
#[repr(C, align(128))]
pub(crate) struct Lines<T>(pub(crate) T);
